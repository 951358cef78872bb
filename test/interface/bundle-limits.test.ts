import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { PARTS } from '../../bench/bundle.ts'
import { rowsOf } from '../support/markdown-table.ts'

const limitOf = (name: string) => PARTS.find((part) => part.name === name)?.boundKb

it('docs/internals/performance.md has each limit of a browser bundle, and a size below it', () => {
  const rows = rowsOf('docs/internals/performance.md', 'Part')
  const kB = (cell = '') => Number(/^([\d.]+) kB$/.exec(cell)?.[1])
  const named = rows.map(([name, , limit]) => ({ name, limit: kB(limit) }))
  const above = rows.filter(([, size, limit]) => !(kB(size) <= kB(limit)))

  expect(named).toEqual(PARTS.map(({ name, boundKb }) => ({ name, limit: boundKb })))
  expect(above).toEqual([])
})

it('docs/reference/client.md has the limits of the client and of a page that follows one monitor', () => {
  const page = readFileSync('docs/reference/client.md', 'utf8')

  expect(page).toContain(`at most ${limitOf('rivulet and rivulet/operators')} kB with the operators`)
  expect(page).toContain(`This program has at most ${limitOf('a page that follows one monitor')} kB`)
})
