import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sqliteStore } from 'rivulet/log/sqlite'
import { createResearchService } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { leavesOf, nameOf } from '../../build/tables/commands.ts'
import { VARIABLES } from '../../src/cli/environment.ts'
import { EXIT } from '../../src/cli/exit-codes.ts'
import { createProgram } from '../../src/cli/program.ts'
import { plain, rowsOf } from '../support/markdown-table.ts'
import { DOCUMENTS, folderOf, rivulet } from './command.ts'

const PAGE = readFileSync('docs/reference/command.md', 'utf8')

const program = createProgram(new AbortController().signal)
const commands = leavesOf(program).map((command) => ({
  name: nameOf(command),
  json: command.options.find(({ long }) => long === '--json')?.description ?? '',
}))

/** The cells of a table of the page without their backticks, by the heading of its first column. */
const rowsBelow = (column: string) => rowsOf('docs/reference/command.md', column).map((row) => row.map(plain))

/** The names `RIVULET_…` in files, without those of comments. */
function namesIn(pattern: string): Set<string> {
  const texts = globSync(pattern).map((file) =>
    readFileSync(file, 'utf8').replaceAll(/^\s*(?:\*|\/\/).*$/gm, ''),
  )
  return new Set(texts.flatMap((text) => text.match(/\bRIVULET_[A-Z_]+\b/g) ?? []))
}

const help = program.helpInformation()

describe('docs/reference/command.md', () => {
  it('says what each command prints with --json, in the words of its help', () => {
    expect(rowsBelow('Command')).toEqual(
      commands.map(({ name, json }) => [
        `rivulet ${name}`,
        json.replace(/,? as one line of JSON/, '').replace(/\bprint,? /, ''),
      ]),
    )
    // What begins with "each" is a line for each, everything else is one value.
    for (const { json } of commands) expect(json).toMatch(/\bprint,? .* as one line of JSON/)
  })

  it('has the exit codes', () => {
    const codes = Object.values(EXIT).map(({ code, meaning }) => [String(code), meaning])

    expect(rowsBelow('Exit code')).toEqual(codes)
    expect(new Set(codes.map(([code]) => code)).size).toBe(codes.length)
  })

  it('has the environment variables that the sources read, and no other', () => {
    expect(rowsBelow('Variable')).toEqual(
      Object.entries(VARIABLES).map(([name, { meaning, usedBy, defaultValue, isSecret }]) => [
        name,
        meaning,
        usedBy,
        defaultValue,
        isSecret ? 'yes' : '',
      ]),
    )
    expect([...namesIn('src/**/*.{ts,tsx}')].toSorted()).toEqual(Object.keys(VARIABLES).toSorted())
  })

  it('has each variable that a page or a program names', () => {
    for (const pattern of ['README.md', 'docs/**/*.md', 'examples/**/*.{js,jsx}', 'test/recipes/*.ts'])
      for (const name of namesIn(pattern)) expect(PAGE).toContain(`\`${name}\``)
  })
})

describe('the help of rivulet', () => {
  it('has the exit codes and the environment variables', async () => {
    let shown = ''
    program.configureOutput({ writeOut: (text) => void (shown += text) })
    await program.parseAsync(['--help'], { from: 'user' }).catch(() => {})
    const text = shown.replaceAll(/\s+/g, ' ')

    expect(text).toContain(help.replaceAll(/\s+/g, ' ').trim())
    for (const { code, meaning } of Object.values(EXIT)) expect(text).toContain(`${code} ${meaning}`)
    for (const [name, { meaning }] of Object.entries(VARIABLES))
      expect(text).toContain(`${name} ${meaning}; `)
  })
})

it('ends with each of the exit codes', async () => {
  const folder = await folderOf({ ...DOCUMENTS, 'bad.yaml': 'version: 1\nrules: none\n' })
  await using service = await createResearchService({ docs: [folder] })
  const url = await service.listen()
  const env = { RIVULET_BASE_URL: url, RIVULET_API_KEY: service.apiKey }
  const file = join(folder, 'log.db')
  const store = sqliteStore(file)
  await using _ = { [Symbol.asyncDispose]: () => store.close() }
  await store.claim('monitors/m')

  /** Ends with a signal after its first line on stderr, which says that it listens to signals. */
  const ended = async (signal: 'SIGINT' | 'SIGTERM') => {
    const tail = rivulet(['log', 'tail', '--log', file, '--verbose'])
    await tail.stderrLine((line) => line.includes('following'))
    tail.child.kill(signal)
    return tail.ended
  }
  const endings = await Promise.all([
    rivulet(['search', 'rivulet', '--json'], env).ended,
    rivulet(['rules', 'check', join(folder, 'bad.yaml'), '--json']).ended,
    rivulet(['search', 'rivulet', '--json'], { RIVULET_BASE_URL: url }).ended,
    rivulet(['search', 'rivulet', '--json'], { ...env, RIVULET_API_KEY: 'wrong' }).ended,
    rivulet(['group', 'status', 'tgrp_none', '--json'], env).ended,
    rivulet(['search', 'rivulet', '--json'], { ...env, RIVULET_BASE_URL: 'http://127.0.0.1:1' }).ended,
    rivulet(['log', 'migrate', '--log', file, '--to', join(folder, 'new.db'), '--json']).ended,
    rivulet(['log', 'read', '--log', join(folder, 'none.db'), '--json']).ended,
    ended('SIGINT'),
    ended('SIGTERM'),
  ])

  expect(endings.map(({ code }) => code)).toEqual(Object.values(EXIT).map(({ code }) => code))
  // Results are on stdout, everything else is on stderr.
  expect(endings.map(({ stdout }) => stdout !== '')).toEqual([true, true, ...Array(8).fill(false)])
  expect(endings.slice(0, 8).map(({ stderr }) => stderr !== '')).toEqual([
    false,
    false,
    ...Array(6).fill(true),
  ])
})
