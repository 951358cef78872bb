import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { addressOf, llmsText, sections } from '../../build/site/pages.ts'

const pages = globSync('docs/**/*.md', { exclude: ['docs/internals/**', 'docs/README.md'] })

describe('the list of pages for language models', () => {
  it('has each page of users once, with a line about it', () => {
    const rows = llmsText()
      .split('\n')
      .filter((line) => line.startsWith('- '))
    const listed = rows.map((row) => /^- \[[^\]]+\]\(\/([^)]+)\): .+\.$/.exec(row)?.[1])

    expect(listed.map((path) => `docs/${path}`).toSorted()).toEqual(pages.toSorted())
  })
})

describe('the sections of the site', () => {
  it('are the folders of the pages, each in the order of the index', () => {
    const [first] = sections()
    const folders = sections().map(({ pages: [page] }) => page?.path.split('/')[0])

    expect(folders).toEqual(expect.arrayContaining(['guides', 'reference', 'explanation']))
    const index = readFileSync('docs/README.md', 'utf8')
    const places = sections().map(({ pages: each }) => each.map(({ path }) => index.indexOf(`](${path})`)))
    expect(places).toEqual(places.map((each) => each.toSorted((a, b) => a - b)))
    expect(places.flat()).not.toContain(-1)
    expect(first?.pages.every(({ path }) => path.startsWith(`${first.title.toLowerCase()}/`))).toBe(true)
  })
})

describe('a link of a page', () => {
  it('stays as it is within the site', () => {
    expect(addressOf('guides/tools.md', '../reference/log.md#retention')).toBe(
      '../reference/log.md#retention',
    )
    expect(addressOf('guides/tools.md', '#a-heading')).toBe('#a-heading')
    expect(addressOf('guides/tools.md', 'https://example.com/')).toBe('https://example.com/')
  })

  it("leads to the project's repository if its target is not on the site", () => {
    const repository = 'https://github.com/rivulet-streams/rivulet'

    expect(addressOf('guides/tools.md', '../../README.md#install')).toBe(
      `${repository}/blob/HEAD/README.md#install`,
    )
    expect(addressOf('README.md', '../examples/rules')).toBe(`${repository}/tree/HEAD/examples/rules`)
    expect(addressOf('README.md', 'internals/performance.md')).toBe(
      `${repository}/blob/HEAD/docs/internals/performance.md`,
    )
  })
})
