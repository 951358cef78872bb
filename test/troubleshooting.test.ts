import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { plain, tablesOf } from './support/markdown-table.ts'

const PAGE = 'docs/troubleshooting.md'
const read = (file: string) => readFileSync(file, 'utf8')

/** All matches of the first group. */
function found(text: string, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map(([, match = '']) => match)
}

/** The sources as one line each, with the texts that were cut into several joined. */
const sources = globSync('src/**/*.{ts,tsx}').map((file) => read(file).replaceAll(/['`] \+\s+['`]/g, ''))

/** The codes of errors by docs/reference/errors.md, which test/errors.test.ts compares with the classes, with what to do. */
const errors = new Map(
  tablesOf('docs/reference/errors.md').flatMap(({ head, rows }) => {
    const [code, advice] = ['`code`', 'What to do'].map((column) => head.indexOf(column))
    return rows.map((row) => [plain(row[code ?? -1]), row[advice ?? -1] ?? ''] as const)
  }),
)

const refusals = [
  ...found(read('src/webhooks/refusal.ts'), /^ {2}(\w+): \[\d{3}, /gm),
  ...found(read('src/gateway/http-answer.ts'), /^ {2}(\w+): \d{3},$/gm),
  ...found(read('src/live/live-error.ts'), /'(\w+)'/g),
]
const eventTypes = found(read('src/protocol/event.ts'), /^ {2}'([\w.]+)'\??:/gm)

/** The entries of the page: their headings, and what follows each. */
const entries = read(PAGE)
  .split(/^### /m)
  .slice(1)
  .map((text) => {
    const [heading = '', ...items] = text.split(/\n(?=- )|\n\n/)
    return { heading, lines: items.filter((item) => item.startsWith('- ')) }
  })

/** The codes that the heading of an entry has in parentheses at its end. */
const codesOf = (heading: string) => found(/\((`[^)]*)\)$/.exec(heading)?.[1] ?? '', /`([\w.]+)`/g)
/** The messages that an entry quotes outside of code. */
const quotesOf = ({ heading, lines }: (typeof entries)[number]) =>
  [heading, ...lines].flatMap((text) => found(text.replaceAll(/`[^`]+`/g, ''), /"([^"]+)"/g))

describe('docs/troubleshooting.md', () => {
  it('has a cause, a check and a remedy in each of its entries', () => {
    const kinds = entries.map(({ heading, lines }) => [
      heading,
      ...lines.map((line) => /^- \*\*(\w+)\*\*: \S/.exec(line)?.[1]),
    ])

    expect(kinds).toEqual(entries.map(({ heading }) => [heading, 'Cause', 'Check', 'Remedy']))
    expect(entries.length).toBeGreaterThan(25)
  })

  it('names codes that errors, refusals and events have', () => {
    const known = new Set([...errors.keys(), ...refusals, ...eventTypes])
    const codes = entries.flatMap(({ heading }) => codesOf(heading))

    expect(codes.filter((code) => !known.has(code))).toEqual([])
    expect(codes).toEqual(expect.arrayContaining(['log_file', 'bad_signature', 'unknown_view', 'timeout']))
  })

  it('quotes messages that the sources have', () => {
    const quotes = entries.flatMap(quotesOf)

    expect(quotes.filter((quote) => !sources.some((source) => source.includes(quote)))).toEqual([])
    expect(quotes).toEqual(expect.arrayContaining(['is on a network file system', 'not running']))
  })

  it('is beside docs/reference/errors.md, which says what to do about each code', () => {
    expect([...errors].filter(([, advice]) => advice === '')).toEqual([])
    expect(errors.get('log_in_use')).toMatch(/^End that process/)
  })
})
