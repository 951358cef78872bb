import { globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import MarkdownIt from 'markdown-it'
import { describe, expect, it } from 'vitest'
import { anchorOf } from '../../build/site/pages.ts'
import { MANIFEST } from '../package/build.ts'

const root = resolve(import.meta.dirname, '../..')
const pages = globSync(['*.md', 'docs/**/*.md', 'examples/**/*.md'], { cwd: root }).toSorted()

/** A link within the repository, and its position. */
interface Link {
  readonly page: string
  readonly target: string
}

const parse = (page: string) => new MarkdownIt().parse(readFileSync(join(root, page), 'utf8'), {})
const parsed = new Map<string, ReturnType<typeof parse>>()

/** The tokens of a page, parsed once. */
function tokensOf(page: string) {
  const tokens = parsed.get(page) ?? parse(page)
  parsed.set(page, tokens)
  return tokens
}

/** The anchors of a page: of its headings, as on GitHub, and explicit ones. */
function anchorsOf(page: string): string[] {
  const tokens = tokensOf(page)
  const headings = tokens
    .filter((_, index) => tokens[index - 1]?.type === 'heading_open')
    .map(({ children }) => (children ?? []).map(({ content }) => content).join(''))
    .map(anchorOf)
  const contents = tokens.map(({ content }) => content).join('\n')
  const own = [...contents.matchAll(/<a id="([^"]+)"/g)]
  return [...headings, ...own.map(([, id = '']) => id)]
}

function linksOf(page: string): Link[] {
  return tokensOf(page)
    .flatMap(({ children }) => children ?? [])
    .flatMap((token) => token.attrGet('href') ?? token.attrGet('src') ?? [])
    .map(String)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => ({ page, target }))
}

/** Whether npm packs a file of the repository. */
function isPacked(file: string): boolean {
  const packed = ['package.json', 'README.md', 'LICENSE', ...MANIFEST.files]
  const isIn = (name: string) => file === name || file.startsWith(`${name}/`)
  return packed.some(isIn) && !packed.some((name) => name.startsWith('!') && isIn(name.slice(1)))
}

/** The problem of a link; undefined for a valid one. */
function faultOf({ page, target }: Link): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : join(dirname(page), path)
  if (statSync(join(root, file), { throwIfNoEntry: false }) === undefined) return `${page}: no file ${target}`
  if (isPacked(page) && !isPacked(file)) return `${page}: not in the package: ${target}`
  if (anchor === undefined || anchorsOf(file).includes(anchor)) return undefined
  return `${page}: no heading ${target}`
}

describe('a link within the repository', () => {
  const links = pages.flatMap(linksOf)

  it('points to a file and a heading in it, and from a page of the package to a file of the package', () => {
    expect(links.flatMap((link) => faultOf(link) ?? [])).toEqual([])
    expect(links.map(({ page }) => page)).toEqual(
      expect.arrayContaining(['README.md', 'docs/reference/wire.md']),
    )
  })

  it('is reported if it does not', () => {
    expect(faultOf({ page: 'docs/reference/wire.md', target: '../../README.md#services' })).toBeUndefined()
    expect(faultOf({ page: 'README.md', target: 'docs/none.md' })).toBe('README.md: no file docs/none.md')
    expect(faultOf({ page: 'README.md', target: 'docs/reference/wire.md#s4.9' })).toContain('no heading')
    expect(faultOf({ page: 'README.md', target: 'docs/reference/log.md#all-figures-for-people' })).toContain(
      'no heading',
    )
    expect(faultOf({ page: 'README.md', target: 'src/client.ts' })).toBe(
      'README.md: not in the package: src/client.ts',
    )
    expect(faultOf({ page: 'CONTRIBUTING.md', target: 'src/client.ts' })).toBeUndefined()
  })
})

it("a link to the project's repository has the address that package.json has", () => {
  const { homepage, bugs, repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, address = ''] = /^git\+(https:.+)\.git$/.exec(repository.url) ?? []
  const links = pages
    .flatMap(tokensOf)
    .flatMap(({ children }) => children ?? [])
    .map((token) => String(token.attrGet('href')))
    .filter((target) => /^https:.*\/rivulet\b/.test(target))

  expect([homepage, bugs]).toEqual([`${address}#readme`, `${address}/issues`])
  expect(new Set(links)).toEqual(new Set([address, `${address}/issues`]))
})
