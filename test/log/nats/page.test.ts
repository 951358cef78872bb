import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Names } from '../../../src/log/nats/server/names.ts'
import { codeIn, rowsOf } from '../../support/markdown-table.ts'

const root = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(root, 'docs/internals/nats.md'), 'utf8')

describe('docs/internals/nats.md', () => {
  it('names the streams of a log, and each kind of subject that they have', () => {
    const names = new Names('NAME', 64)
    const kinds = [names.allEntries, ...names.allState].map((subject) => subject.replace(/[*>]$/, ''))
    expect([names.events, names.state, names.leaseStream, ...kinds]).toHaveLength(14)
    const missing = [names.events, names.state, names.leaseStream, ...kinds].filter(
      (name) => !page.includes(`\`${name}`),
    )
    expect(missing).toEqual([])
  })

  it('has a row for each header of a log, and for no other', () => {
    const files = globSync('src/log/nats/**/*.ts', { cwd: root })
    const headers = files.flatMap(
      (file) => readFileSync(join(root, file), 'utf8').match(/(?<=')Rv-\w+(?=')/g) ?? [],
    )
    const rows = rowsOf('docs/internals/nats.md', 'Header')
    expect(rows.flatMap(([header]) => codeIn(header)).toSorted()).toEqual(headers.toSorted())
  })
})
