import { createServer } from 'node:http'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { memoryStore, openLog } from 'rivulet/log'
import { createGateway, nodeListener } from 'rivulet/gateway'
import { rolldown } from 'rolldown'
import { expect, it, onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { everything, SECRET, setItem } from '../gateway/fixture.ts'
import { startChromium } from './browser.ts'
import type { Context, Page } from './browser.ts'

/** All that an application writes. */
const PAGE = `
  import { connect } from 'rivulet/live'
  const live = connect({
    url: '/live',
    getToken: async () => (await fetch('/token', { method: 'POST' })).text(),
  })
  const view = live.view('everything')
  view.subscribe(({ rows, status }) => {
    window.rows = Object.fromEntries([...rows].map(([key, row]) => [key, row.value]))
    window.state = status.state
  })
  window.live = live
`

/** The page's script as a bundler makes it, by file. */
async function bundledPage(): Promise<ReadonlyMap<string, string>> {
  const bundle = await rolldown({
    input: 'page',
    platform: 'browser',
    resolve: { conditionNames: ['rivulet-source'] },
    plugins: [
      {
        name: 'page',
        resolveId: (id) => (id === 'page' ? id : undefined),
        load: (id) => (id === 'page' ? PAGE : undefined),
      },
    ],
  })
  const { output } = await bundle.generate({ format: 'esm', entryFileNames: 'page.js' })
  await bundle.close()
  return new Map(output.flatMap((part) => (part.type === 'chunk' ? [[`/${part.fileName}`, part.code]] : [])))
}

/** An application over HTTP/1.1: its page, its tokens, and a gateway, which can be restarted at the same address. */
async function application(timeToLive = 60_000) {
  const files = await bundledPage()
  const store = memoryStore()
  let running: { readonly server: Server; readonly stop: () => Promise<void> } | undefined
  let open = 0
  let opened = 0
  const start = async (port = 0): Promise<number> => {
    const log = await openLog(store.connect())
    const gateway = createGateway({ log, views: { everything }, tokens: { secret: SECRET } })
    const listener = nodeListener(gateway)
    const server = createServer((request, response) => {
      const { url = '' } = request
      const file = files.get(url)
      if (url === '/live/stream') {
        open++
        opened++
        response.on('close', () => open--)
      }
      if (url.startsWith('/live/')) listener(request, response)
      else if (url === '/token') {
        void gateway
          .grant({ sub: 'user_1', views: ['everything'], sources: ['*'], timeToLive })
          .then((token) => response.end(token))
      } else if (file !== undefined) {
        response.writeHead(200, { 'content-type': 'text/javascript' }).end(file)
      } else {
        response.writeHead(200, { 'content-type': 'text/html' })
        response.end('<!doctype html><title>live</title><script type="module" src="/page.js"></script>')
      }
    })
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
    const stop = async () => {
      const closed = new Promise((resolve) => server.close(resolve))
      await gateway.close()
      server.closeAllConnections()
      await closed
      await log.close()
    }
    running = { server, stop }
    return (server.address() as AddressInfo).port
  }
  const port = await start()
  onTestFinished(async () => running?.stop())
  return {
    url: `http://127.0.0.1:${port}/`,
    set: (item: string, value: string) => append(store, [setItem('list', item, value)]),
    /** Streams that are open, and all so far. */
    streams: () => ({ open, opened }),
    stop: async () => {
      await running?.stop()
      running = undefined
    },
    restart: () => start(port),
  }
}

async function startBrowser(): Promise<Context> {
  const chromium = await startChromium()
  onTestFinished(() => chromium[Symbol.asyncDispose]())
  return chromium.context
}

/** Counts the messages with all rows of a view that come to a page. */
const COUNT_COPIES = `
  window.copies = 0
  globalThis.BroadcastChannel = class extends BroadcastChannel {
    constructor(name) {
      super(name)
      super.addEventListener('message', ({ data }) => data.sent?.rows && window.copies++)
    }
  }
`

async function openPage(context: Context, url: string): Promise<Page> {
  const page = await context.newPage()
  await page.addInitScript({ content: COUNT_COPIES })
  await page.goto(url)
  return page
}

/** Resolves when the page shows these rows and says that they are live. */
function shows(page: Page, rows: Readonly<Record<string, string>>, timeout = 10_000): Promise<unknown> {
  const entries = Object.entries(rows).map(([item, value]) => [`list/${item}`, value])
  const expected = JSON.stringify(Object.fromEntries(entries.toSorted()))
  const actual = 'JSON.stringify(Object.fromEntries(Object.entries(window.rows ?? {}).sort()))'
  return page.waitForFunction(`window.state === 'live' && ${actual} === '${expected}'`, undefined, {
    timeout,
  })
}

const roleOf = (page: Page) => page.evaluate<string>('live.inspect.getSnapshot().role')

async function leaderOf(pages: readonly Page[]): Promise<Page> {
  const roles = await Promise.all(pages.map(roleOf))
  expect(roles.filter((role) => role === 'leader')).toHaveLength(1)
  const leader = pages[roles.indexOf('leader')]
  if (leader === undefined) throw new Error('there is no leader')
  return leader
}

it('eight tabs hold one connection, and another follows within 2 s when the leader is closed or crashes', async () => {
  const app = await application()
  await app.set('a', '1')
  const context = await startBrowser()
  let pages: Page[] = []
  for (let count = 0; count < 8; count++) {
    const page = await openPage(context, app.url)
    await shows(page, { a: '1' })
    pages.push(page)
  }
  await expect.poll(app.streams).toEqual({ open: 1, opened: 1 })
  // The rows of each tab that joined came to it alone.
  const copies = await Promise.all(pages.map((page) => page.evaluate<number>('window.copies')))
  expect(copies.toSorted()).toEqual([0, 1, 1, 1, 1, 1, 1, 1])
  await app.set('a', '2')
  await Promise.all(pages.map((page) => shows(page, { a: '2' })))

  const closed = await leaderOf(pages)
  pages = pages.filter((page) => page !== closed)
  await closed.close()
  await app.set('b', '3')
  await Promise.all(pages.map((page) => shows(page, { a: '2', b: '3' }, 2_000)))
  await expect.poll(app.streams).toEqual({ open: 1, opened: 2 })

  const crashed = await leaderOf(pages)
  const session = await context.newCDPSession(crashed)
  // The browser may run several tabs in one process, which crash together.
  const isAlive = new Map(pages.map((page) => [page, page !== crashed]))
  for (const page of pages) page.on('crash', () => isAlive.set(page, false))
  const crash = new Promise<void>((resolve) => crashed.on('crash', () => resolve()))
  session.send('Page.crash').catch(() => {})
  await crash
  await app.set('c', '4')
  const left = pages.filter((page) => isAlive.get(page))
  expect(left.length).toBeGreaterThan(0)
  await Promise.all(left.map((page) => shows(page, { a: '2', b: '3', c: '4' }, 2_000)))
  await leaderOf(left)
  await expect.poll(app.streams).toEqual({ open: 1, opened: 3 })
})

it.each([
  [
    // As where its browser or its machine sleeps: nothing of it runs, and no event says so. A page under test is always visible, and
    // Chromium freezes only hidden ones.
    'stopped',
    async (context: Context, page: Page) => {
      const session = await context.newCDPSession(page)
      await session.send('Debugger.enable')
      await session.send('Debugger.pause')
      return () => session.send('Debugger.resume')
    },
  ],
  [
    'without a network',
    async (context: Context) => {
      await context.setOffline(true)
      return () => context.setOffline(false)
    },
  ],
] as const)(
  'a tab that is %s beyond the end of its token and through a restart of the gateway shows the exact state when it wakes',
  async (_, putToSleep) => {
    const timeToLive = 2_000
    const app = await application(timeToLive)
    await app.set('a', '1')
    await app.set('b', '1')
    const context = await startBrowser()
    const page = await openPage(context, app.url)
    await shows(page, { a: '1', b: '1' })

    const asleepAt = Date.now()
    const wake = await putToSleep(context, page)
    await app.stop()
    await app.set('a', '')
    await app.set('c', '2')
    // The end of a token is a moment of the clock of the day.
    await wait(Math.max(0, asleepAt + timeToLive + 1_000 - Date.now()))
    await app.restart()
    await app.set('d', '3')
    await wake()
    await expect(shows(page, { b: '1', c: '2', d: '3' })).resolves.toBeDefined()
  },
)
