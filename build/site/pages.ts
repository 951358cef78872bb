import { globSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import MarkdownIt from 'markdown-it'

const ROOT = resolve(import.meta.dirname, '../..')
/** The index, which lists the other pages in the order that they are shown in. */
const INDEX = 'README.md'
/** Pages for maintainers, which are not on the site. */
export const EXCLUDED = 'internals/**'

/** A page of the documentation. */
interface Page {
  /** Within `docs`. */
  readonly path: string
  readonly title: string
  /** The first sentence, as text. */
  readonly summary: string
}

/** Pages of one kind, in a folder of their own. */
interface Section {
  readonly title: string
  readonly pages: readonly Page[]
}

const markdown = new MarkdownIt()

/** The pages of a folder `docs` by kind, in the order of its index; those of no folder come last. */
export function sections(docs = join(ROOT, 'docs')): readonly Section[] {
  const index = pageOf(docs, INDEX)
  const order = linksOf(readFileSync(join(docs, INDEX), 'utf8'))
  const place = (path: string) => (order.includes(path) ? order.indexOf(path) : order.length)
  const pages = globSync('**/*.md', { cwd: docs, exclude: [EXCLUDED] })
    .filter((path) => path !== INDEX)
    .toSorted((a, b) => place(a) - place(b) || (a < b ? -1 : 1))
    .map((path) => pageOf(docs, path))
  const folders = Map.groupBy(pages, ({ path }) => dirname(path))
  const kinds = [...folders].filter(([folder]) => folder !== '.')
  return [
    ...kinds.map(([folder, of]) => ({
      title: `${folder.charAt(0).toUpperCase()}${folder.slice(1)}`,
      pages: of,
    })),
    ...(folders.has('.') ? [{ title: index.title, pages: folders.get('.') ?? [] }] : []),
  ]
}

/** The pages that a text links to. */
function linksOf(text: string): string[] {
  return markdown
    .parse(text, {})
    .flatMap(({ children }) => children ?? [])
    .flatMap((token) => token.attrGet('href') ?? [])
    .map((href) => String(href).replace(/#.*/, ''))
}

function pageOf(docs: string, path: string): Page {
  const tokens = markdown.parse(readFileSync(join(docs, path), 'utf8'), {})
  const after = (opening: string) => textOf(tokens[tokens.findIndex(({ type }) => type === opening) + 1])
  const [summary = ''] = /^.*?[.:](?=\s|$)|^.*/s.exec(after('paragraph_open')) ?? []
  return { path, title: after('heading_open'), summary: summary.replaceAll(/\s+/g, ' ').replace(/:$/, '.') }
}

function textOf(inline: ReturnType<typeof markdown.parse>[number] | undefined): string {
  return (inline?.children ?? []).map(({ type, content }) => (type === 'softbreak' ? ' ' : content)).join('')
}

/** The address of a link of a page on the site: a file that is not on it is in the project's repository. */
export function addressOf(page: string, target: string): string {
  if (/^[a-z]+:|^#/.test(target)) return target
  const [path = '', anchor] = target.split('#')
  const file = join('docs', dirname(page), path)
  if (!relative('docs', file).startsWith('..') && !file.startsWith(join('docs', 'internals'))) return target
  const kind = statSync(join(ROOT, file), { throwIfNoEntry: false })?.isDirectory() ? 'tree' : 'blob'
  return `${repository()}/${kind}/HEAD/${file}${anchor === undefined ? '' : `#${anchor}`}`
}

/** The address of the project's repository. */
export function repository(): string {
  const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  return String(manifest.repository.url).replace(/^git\+|\.git$/g, '')
}

/** The anchor of a heading, as on GitHub. */
export function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')
}

/** A list of all pages for language models: https://llmstxt.org/. Each is a link to its Markdown, with a line. */
export function llmsText(docs?: string): string {
  const { description } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const lists = sections(docs).map(
    ({ title, pages }) =>
      `## ${title}\n\n${pages.map((page) => `- [${page.title}](/${page.path}): ${page.summary}`).join('\n')}\n`,
  )
  return [`# Rivulet\n\n> ${description}\n`, ...lists].join('\n')
}
