import { execFile } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { JSDOM } from 'jsdom'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sections } from '../../build/site/pages.ts'
import { startChromium } from './browser.ts'
import { findings, withAxe } from './dashboard/axe.ts'

const PROJECT = resolve(import.meta.dirname, '../..')
const SITE = join(PROJECT, 'site')
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
}

let chromium: Awaited<ReturnType<typeof startChromium>>
let base: string
let closeServer: () => Promise<void>

beforeAll(async () => {
  const node = (script: string, ...options: string[]) =>
    promisify(execFile)(process.execPath, [join(PROJECT, 'build', script), ...options], { cwd: PROJECT })
  // As `npm run docs:build` does.
  await node(
    'reference/node_modules/typedoc/bin/typedoc',
    '--options',
    'build/reference/typedoc.json',
    '--out',
    'build/site/.vitepress/public/api',
  )
  // A dead link is an error.
  await node('site/node_modules/vitepress/bin/vitepress.js', 'build', 'build/site')
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://site')
    const file = fileOf(pathname)
    if (file === undefined) response.writeHead(404).end()
    else {
      response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream')
      response.end(await readFile(file))
    }
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  closeServer = async () => {
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
  }
  chromium = await startChromium()
}, 600_000)

afterAll(async () => {
  await chromium[Symbol.asyncDispose]()
  await closeServer()
})

/** The file of an address of the site; undefined if there is none. */
function fileOf(pathname: string): string | undefined {
  const path = join(SITE, decodeURIComponent(pathname))
  return [path, `${path}.html`, join(path, 'index.html')].find(
    (file) => existsSync(file) && extname(file) !== '',
  )
}

/** A page that collects the errors of its console. */
async function open(path: string, colorScheme: 'light' | 'dark' = 'light') {
  const page = await chromium.context.newPage()
  onTestFinished(() => page.close())
  const errors: string[] = []
  page.on('console', (message) => {
    // A browser asks for the icon of a page of the API reference, which names none, whenever it likes.
    if (message.type() !== 'error' || message.location().url.endsWith('/favicon.ico')) return
    errors.push(`${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', ({ message }) => void errors.push(message))
  await withAxe(page)
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
  await page.goto(base + path)
  return { page, errors }
}

/** The documents of the pages, by their addresses. Those of the API reference are checked by TypeDoc. */
const documents = () =>
  globSync('{*,{tutorials,guides,reference,explanation}/*}.html', { cwd: SITE })
    .filter((file) => file !== '404.html')
    .map((file) => ({
      address: `http://site/${file}`,
      document: new JSDOM(readFileSync(join(SITE, file), 'utf8')).window.document,
    }))

const PAGES = globSync('docs/**/*.md', { cwd: PROJECT, exclude: ['docs/internals/**'] }).map((file) =>
  file
    .replace(/^docs/, '')
    .replace(/README\.md$/, '')
    .replace(/\.md$/, ''),
)

describe('the site of the documentation', () => {
  it('has a page for each page of the documentation, and no dead link', () => {
    const all = documents()
    const byFile = new Map(all.map(({ address, document }) => [new URL(address).pathname, document]))
    const links = all.flatMap(({ address, document }) =>
      [...document.querySelectorAll('a[href], img[src]')].map((element) => ({
        page: address,
        target: new URL(element.getAttribute('href') ?? element.getAttribute('src') ?? '', address),
      })),
    )
    const dead = links
      .filter(({ target }) => target.host === 'site')
      .filter(({ target }) => {
        const file = fileOf(target.pathname)
        const document = byFile.get(file?.slice(SITE.length) ?? '')
        const anchor = decodeURIComponent(target.hash.slice(1))
        return (
          file === undefined ||
          (anchor !== '' && document !== undefined && document.getElementById(anchor) === null)
        )
      })

    expect(PAGES.filter((path) => fileOf(path) === undefined)).toEqual([])
    expect(dead.map(({ page, target }) => `${page}: ${target.pathname}${target.hash}`)).toEqual([])
    expect(links.length).toBeGreaterThan(PAGES.length)
  })

  it('finds "dead letter" without a server', async () => {
    const { page, errors } = await open('/')
    await page.locator('#local-search button').click()
    await page.locator('#localsearch-input').fill('dead letter')
    await page.locator('.results a').first().waitFor()
    const result = (await page.locator('.results a').first().getAttribute('href')) ?? ''
    await page.locator('.results a').first().click()
    await page.waitForFunction(`location.href.endsWith(${JSON.stringify(result)})`)
    await page.locator('main h1').waitFor()

    expect((await page.locator('main').innerText()).toLowerCase()).toContain('dead letter')
    expect(errors).toEqual([])
  })

  it('leads to the API reference', async () => {
    const { page, errors } = await open('/')
    await page.locator('.VPNavBarMenu a').last().click()
    await page.waitForFunction(`location.pathname.startsWith('/api/')`)
    await page.getByText('rivulet/operators', { exact: true }).first().waitFor()

    expect(errors).toEqual([])
  })

  it('lists its pages for language models, each with its text as Markdown', async () => {
    const text = await readFile(join(SITE, 'llms.txt'), 'utf8')
    const paths = [...text.matchAll(/\]\((\/[^)]+\.md)\)/g)].map(([, path = '']) => path)

    expect(paths).toHaveLength(PAGES.length - 1)
    expect(paths.filter((path) => fileOf(path) === undefined)).toEqual([])
  })

  // What is dark differs in its colours, which are alike in all pages of a kind.
  const first = sections().flatMap(({ pages: [page] }) =>
    page === undefined ? [] : [`/${page.path.replace(/\.md$/, '')}`],
  )
  describe.each([
    ['light', PAGES],
    ['dark', ['/', ...first]],
  ] as const)('in %s', (scheme, pages) => {
    it.each(pages)('is accessible and without an error at %s', async (path) => {
      const { page, errors } = await open(path, scheme)
      await page.locator('main h1').waitFor()

      expect(await findings(page)).toEqual([])
      expect(errors).toEqual([])
    })
  })
})
