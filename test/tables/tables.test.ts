import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { interfaceTable } from '../../build/tables/interfaces.ts'
import { filled } from '../../build/tables/page.ts'
import { tablesOf } from '../support/markdown-table.ts'

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
  it('is refused if a member has no doc comment, or cannot be read', () => {
    const tableOf = (name: string) => interfaceTable('Option', { name, file: undefined, omitted: [] })

    expect(() => tableOf('LogStats')).toThrow('LogStats.entries has no doc comment')
    expect(() => tableOf('LiveObservable')).toThrow('no members are found in [Symbol.observable]')
  })
})

describe('the pages', () => {
  it('have a table for each interface of options that the package exports', () => {
    const exported = globSync('etc/api/*.md').flatMap((file) =>
      Array.from(
        readFileSync(file, 'utf8').matchAll(/^export (?:interface|type) (\w+Options)\b/gm),
        ([, name]) => name,
      ),
    )
    const texts = globSync('docs/**/*.md')
      .map((file) => readFileSync(file, 'utf8'))
      .join('\n')
    const shown = new Set(Array.from(texts.matchAll(/^<!-- options (\w+)/gm), ([, name]) => name))

    expect(exported.filter((name) => !shown.has(name))).toEqual([])
  })

  it('have no table of options that is written by hand', () => {
    const byHand = globSync('docs/{reference,guides}/*.md').flatMap((page) =>
      tablesOf(page)
        .filter(
          ({ head: [first, second] }) => first === 'Option' && !['Type', 'Meaning'].includes(second ?? ''),
        )
        .map(({ headings }) => `${page}: ${headings.at(-1)}`),
    )

    expect(byHand).toEqual([])
  })
})
