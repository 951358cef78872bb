import { globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import MarkdownIt from 'markdown-it'
import { describe, expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const pages = globSync(['*.md', 'docs/*.md', 'examples/**/*.md'], { cwd: root }).toSorted()

/** A link within the repository, and where it stands. */
interface Link {
  readonly page: string
  readonly target: string
}

/** The names that a page can be entered at: its headings' as GitHub makes them, and its own. */
function anchorsOf(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8')
  const headings = [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
  return [...headings, ...[...text.matchAll(/<a id="([^"]+)"/g)].map(([, id = '']) => id)]
}

function linksOf(page: string): Link[] {
  const blocks = new MarkdownIt().parse(readFileSync(join(root, page), 'utf8'), {})
  return blocks
    .flatMap(({ children }) => children ?? [])
    .flatMap((token) => token.attrGet('href') ?? token.attrGet('src') ?? [])
    .map(String)
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => ({ page, target }))
}

/** What is wrong with a link; undefined when it leads somewhere. */
function faultOf({ page, target }: Link): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : join(dirname(page), path)
  if (statSync(join(root, file), { throwIfNoEntry: false }) === undefined) return `${page}: no file ${target}`
  if (anchor === undefined || anchorsOf(file).includes(anchor)) return undefined
  return `${page}: no heading ${target}`
}

describe('a link within the repository', () => {
  const links = pages.flatMap(linksOf)

  it('leads to a file, and to a heading of it', () => {
    expect(links.flatMap((link) => faultOf(link) ?? [])).toEqual([])
    expect(links.map(({ page }) => page)).toEqual(expect.arrayContaining(['README.md', 'docs/interface.md']))
  })

  it('would be found out if it did not', () => {
    expect(faultOf({ page: 'docs/interface.md', target: '../README.md#which-services' })).toBeUndefined()
    expect(faultOf({ page: 'README.md', target: 'docs/none.md' })).toBe('README.md: no file docs/none.md')
    expect(faultOf({ page: 'README.md', target: 'docs/interface.md#s4.9' })).toContain('no heading')
  })
})
