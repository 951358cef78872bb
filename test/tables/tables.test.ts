import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { interfaceTable, memberNames } from '../../build/tables/interfaces.ts'
import { filled } from '../../build/tables/page.ts'
import { codeIn } from '../support/markdown-table.ts'

const marked = (mark: string) => `# Page\n\n<!-- ${mark} -->\n<!-- end -->\n`

describe('a page with marks', () => {
  it('gets the tables of interfaces, with the names and types of their members and the first paragraph about them', () => {
    const page = filled(marked('options IterateOptions'), 'page.md')

    expect(page).toMatch(/^# Page\n\n<!-- options IterateOptions -->\n/)
    expect(page).toContain(
      '| Option | Type | What it does |\n| --- | --- | --- |\n| `highWaterMark` | `number` | ',
    )
    expect(filled(page, 'page.md')).toBe(page)
  })

  it.each([
    ['a mistyped mark', marked('option IterateOptions')],
    ['a mark without its end', marked('options IterateOptions').replace('end', 'and')],
    ['an end without its mark', '<!-- end -->\n'],
    ['an end that the next mark has', `<!-- options IterateOptions -->\n${marked('options IterateOptions')}`],
  ])('is refused with %s', (_, text) => {
    expect(() => filled(text, 'page.md')).toThrow('page.md: <!-- ')
  })

  it.each(['options', 'options NoSuchOptions', 'options IterateOptions -noSuchOption'])(
    'is refused with a mark that names nothing: %s',
    (mark) => {
      expect(() => filled(marked(mark), 'page.md')).toThrow(/no (interface|member)|no such/i)
    },
  )
})

describe('a table of an interface', () => {
  it('leaves out what is internal', () => {
    expect(memberNames('ProcessContext')).toContain('append')
    expect(memberNames('ProcessContext')).not.toContain('waiting')
  })

  it('is refused if a member has no doc comment, or cannot be read', () => {
    const tableOf = (name: string) => interfaceTable('Option', { name, file: undefined, omitted: [] })

    expect(() => tableOf('LogStats')).toThrow('LogStats.entries has no doc comment')
    expect(() => tableOf('LiveObservable')).toThrow('no members are found in [Symbol.observable]')
  })
})

/** Pages of docs/reference that describe options without a table of them. */
const IN_SENTENCES: Readonly<Record<string, readonly string[]>> = {
  LogOptions: ['log'],
  LogReadOptions: ['log'],
  ExportOptions: ['log'],
  StatePageOptions: ['processes'],
  InMemoryOptions: ['processes'],
  ConsumerJobOptions: ['log', 'operators'],
  UseSearchOptions: ['live'],
  AlertLoggerOptions: ['notifiers'],
  ListenOptions: ['service'],
  ModelOptions: ['service'],
  EntitySearchOptions: ['client'],
  ExecuteOptions: ['client'],
  SourceOptions: ['client'],
  GroupStreamOptions: ['client'],
  GroupProgressOptions: ['client'],
  GroupRunsOptions: ['client'],
}

describe('the options in the types of the package', () => {
  // Users write neither: one gives its fields to other options, the other belongs to the package.
  const INTERNAL = new Set(['CorpusOptions', 'ProtocolErrorOptions'])
  const exported = globSync('etc/api/*.md').flatMap((file) =>
    Array.from(
      readFileSync(file, 'utf8').matchAll(/^export (?:interface|type) (\w+Options)\b/gm),
      ([, name = '']) => name,
    ),
  )
  const texts = globSync('docs/**/*.md').map((file) => readFileSync(file, 'utf8'))
  const inTables = new Set(texts.join('\n').match(/(?<=^<!-- options )\w+/gm))

  it('have a table on a page, or are described in sentences', () => {
    const others = exported.filter((name) => !inTables.has(name) && !INTERNAL.has(name))

    expect(others.toSorted()).toEqual(Object.keys(IN_SENTENCES).toSorted())
  })

  it.each(Object.entries(IN_SENTENCES))('are named there, each of them: %s', (name, pages) => {
    const text = pages.map((page) => readFileSync(`docs/reference/${page}.md`, 'utf8')).join('\n')
    const code = new Set(codeIn(text.replaceAll(/^```[^]*?^```/gm, '')).flatMap((each) => each.match(/\w+/g)))

    expect(memberNames(name).filter((option) => !code.has(option))).toEqual([])
  })
})
