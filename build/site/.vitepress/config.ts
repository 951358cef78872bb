import { cp, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { defineConfig } from 'vitepress'
import { addressOf, anchorOf, EXCLUDED, llmsText, repository, sections } from '../pages.ts'

const ROOT = resolve(import.meta.dirname, '../../..')
const kinds = sections()
const linkTo = (path: string) => `/${path.replace(/\.md$/, '')}`

export default defineConfig({
  title: 'Rivulet',
  description: 'A web-research service as RxJS streams',
  lang: 'en',
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
