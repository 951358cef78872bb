import { cp, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { defineConfig } from 'vitepress'
import { addressOf, anchorOf, EXCLUDED, llmsText, repository, sections } from '../pages.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
/** The one of the dashboard. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="none" stroke="#2f7fd1" stroke-width="2" stroke-linecap="round" d="M1 4c3-3 4 3 7 0s4 3 7 0M1 9c3-3 4 3 7 0s4 3 7 0M1 14c3-3 4 3 7 0s4 3 7 0"/></svg>'
const kinds = sections()
const linkTo = (path: string) => `/${path.replace(/\.md$/, '')}`

export default defineConfig({
  title: 'Rivulet',
  description: 'A web-research service as RxJS streams',
  lang: 'en',
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  srcDir: join(ROOT, 'docs'),
  srcExclude: [EXCLUDED],
  outDir: join(ROOT, 'site'),
  rewrites: { 'README.md': 'index.md' },
  // Where typedoc writes the API reference.
  vite: { publicDir: resolve(import.meta.dirname, 'public') },
  markdown: {
    anchor: { slugify: anchorOf },
    // Colours with a contrast of at least 4.5.
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    config(md) {
      // A cell above the names of rows has no text, so it is no heading.
      md.core.ruler.push('cells', ({ tokens }) => {
        for (const [index, { type, content }] of tokens.entries()) {
          const around = [tokens[index - 1], tokens[index + 1]]
          if (type !== 'inline' || content !== '' || around[0]?.type !== 'th_open') continue
          for (const cell of around) if (cell !== undefined) cell.tag = 'td'
        }
      })
      md.core.ruler.push('repository', ({ tokens, env }) => {
        for (const token of tokens.flatMap(({ children }) => children ?? [])) {
          const href = token.attrGet('href')
          if (href !== null)
            token.attrSet(
              'href',
              addressOf(String(env.realPath ?? env.path).slice(join(ROOT, 'docs').length + 1), href),
            )
        }
      })
    },
  },
  themeConfig: {
    nav: [
      ...kinds.flatMap(({ title, pages: [first] }) =>
        first === undefined ? [] : [{ text: title, link: linkTo(first.path) }],
      ),
      { text: 'API', link: '/api/index.html', target: '_self' },
    ],
    sidebar: kinds.map(({ title, pages }) => ({
      text: title,
      items: pages.map(({ title: text, path }) => ({ text, link: linkTo(path) })),
    })),
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: repository() }],
  },
  // A page's Markdown is beside it, for language models.
  async buildEnd({ srcDir, outDir, pages }) {
    await writeFile(join(outDir, 'llms.txt'), llmsText())
    for (const page of pages.filter((path) => path !== 'README.md'))
      await cp(join(srcDir, page), join(outDir, page))
  },
})
