import { request as httpRequest } from 'node:http'
import { ArgumentError, groupEvent, monitorEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { createDashboard } from 'rivulet/dashboard'
import { defineRules, runRules } from 'rivulet/rules'
import type { Rule } from 'rivulet/rules'
import { firstValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { append } from '../log/append.ts'
import { cookieOf, served } from './served.ts'

/** A request with headers that `fetch` does not let a program set. */
function rawRequest(
  url: string,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(new URL(path, url), { headers }, (response) => {
      let body = ''
      response.setEncoding('utf8').on('data', (text: string) => (body += text))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
    })
    sent.on('error', reject).end()
  })
}

const running = groupEvent(
  'tgrp_1',
  {
    type: 'task_group_status',
    event_id: '1',
    status: {
      num_task_runs: 1,
      task_run_status_counts: { running: 1 },
      is_active: true,
      status_message: null,
      modified_at: null,
    },
  },
  'stream',
)

describe('the key of a dashboard', () => {
  it('opens the page by a cookie that no script reads and no other site sends', async () => {
    const { dashboard, url, fetch: fetchPage } = await served()
    const welcome = await fetch(dashboard.address(url))
    const [cookie = ''] = welcome.headers.getSetCookie()

    expect(welcome.status).toBe(200)
    expect(welcome.headers.get('refresh')).toBe('0; url=/')
    expect(cookie).toMatch(/^rivulet-dashboard-\d+=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/$/)
    const key = new URL(dashboard.address(url)).searchParams.get('key') ?? ''
    expect(key).toMatch(/^[\w-]{43}$/)
    expect(cookie).not.toContain(key)
    const page = await fetchPage('/')
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<div id="root"></div>')
  })

  it.each(['/', '/?key=', '/?key=wrong', '/?key=%00'])('is asked for at %s', async (path) => {
    const { url } = await served()
    const response = await fetch(new URL(path, url))

    expect(response.status).toBe(401)
    expect(response.headers.getSetCookie()).toEqual([])
    expect(await response.text()).toMatch(/Open the address that the command has printed/)
  })

  it.each([
    ['GET', '/status'],
    ['POST', '/token'],
    ['GET', '/document?url=x'],
    ['GET', '/assets/icon.svg'],
    ['GET', '/nothing'],
    ['POST', '/'],
  ])('is needed for %s %s', async (method, path) => {
    const { url } = await served()
    const response = await fetch(new URL(path, url), { method })

    expect(response.status).toBe(401)
    expect(await response.json()).toMatchObject({ error: { code: 'unauthenticated' } })
  })

  it('is another one for each dashboard, and so is the cookie', async () => {
    const one = await served()
    const other = await served()
    const cookie = cookieOf(await fetch(one.dashboard.address(one.url)))
    const renamed = cookie.replace(/-\d+=/, `-${new URL(other.url).port}=`)

    expect(one.dashboard.address(one.url)).not.toBe(other.dashboard.address(one.url))
    expect((await fetch(new URL('/status', other.url), { headers: { cookie: renamed } })).status).toBe(401)
  })

  it('can be given, and must be long', async () => {
    const log = await openLog(memoryStore())
    onTestFinished(() => log.close())

    expect(() => createDashboard({ log, key: 'short_secret' })).toThrow(ArgumentError)
    expect(() => createDashboard({ log, key: 'short_secret' })).not.toThrow('short_secret')
    const { dashboard } = await served({ key: 'a key of the test & more' })
    expect(dashboard.address('http://127.0.0.1:80')).toBe('http://127.0.0.1/?key=a+key+of+the+test+%26+more')
  })
})

describe('a request to a dashboard', () => {
  it.each(['attacker.example', 'attacker.example:80', '127.0.0.1.attacker.example', '10.0.0.1', '[::2]'])(
    'is refused at the host %s',
    async (host) => {
      const { dashboard, url } = await served()
      const key = new URL(dashboard.address(url)).search
      for (const path of ['/', `/${key}`, '/status', '/live/stream', '/assets/icon.svg']) {
        expect((await rawRequest(url, path, { host })).status).toBe(421)
      }
    },
  )

  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.8.8.8', '[::1]', 'rivulet.localhost'])(
    'is taken at the host %s of this machine',
    async (name) => {
      const { dashboard, url } = await served()
      const host = `${name}:${new URL(url).port}`

      expect((await rawRequest(url, new URL(dashboard.address(url)).search, { host })).status).toBe(200)
    },
  )

  it('is taken at the origin where it is served, and from there', async () => {
    const { dashboard, url } = await served({ origins: ['https://logs.example'] })
    const { search } = new URL(dashboard.address(url))

    expect((await rawRequest(url, search, { host: 'logs.example' })).status).toBe(200)
    expect((await rawRequest(url, search, { host: 'other.example' })).status).toBe(421)
  })

  it.each([
    ['origin', 'https://attacker.example'],
    ['origin', 'null'],
    // Of another server on this machine, to which browsers send the cookie, too.
    ['origin', 'http://127.0.0.1:1'],
    ['origin', 'http://localhost'],
    ['sec-fetch-site', 'cross-site'],
    ['sec-fetch-site', 'same-site'],
  ])('is refused from another page, as its header %s: %s says', async (name, value) => {
    const headers = { [name]: value }
    const { fetch: fetchPage } = await served()

    expect((await fetchPage('/token', { method: 'POST', headers })).status).toBe(403)
    expect((await fetchPage('/status', { headers })).status).toBe(403)
    // A link to the page.
    expect((await fetchPage('/', { headers })).status).toBe(200)
  })

  it('finds nothing at other paths and with other methods', async () => {
    const { fetch: fetchPage } = await served()
    const paths = [
      '/nothing',
      '/assets/',
      '/assets/nothing.js',
      '/assets/a/b',
      '/assets/..%2Fpackage.json',
      '/token',
    ]
    for (const path of paths) expect((await fetchPage(path)).status).toBe(404)
    expect((await fetchPage('/status', { method: 'POST' })).status).toBe(404)
    expect((await fetchPage('/status', { method: 'DELETE' })).status).toBe(404)
  })
})

describe('the page of a dashboard', () => {
  it('may load only from its server, be in no frame, and send its address nowhere', async () => {
    const { url, fetch: fetchPage } = await served()
    const responses = [
      await fetchPage('/'),
      await fetchPage('/status'),
      await fetchPage('/assets/icon.svg'),
      await fetchPage('/nothing'),
      await fetch(new URL('/', url)),
      await fetch(new URL('/live/stream', url)),
    ]
    for (const { headers } of responses) {
      const policy = headers.get('content-security-policy')
      expect(policy?.split('; ')).toEqual([
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
      ])
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
      expect(headers.get('cross-origin-resource-policy')).toBe('same-origin')
    }
  })

  it('has its script and its style sheet in files that never change', async () => {
    const { fetch: fetchPage } = await served()
    const response = await fetchPage('/')
    const html = await response.text()
    const names = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name = '']) => name)

    expect(response.headers.get('cache-control')).toBe('no-store')
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=|https?:/)
    expect(names).toEqual([
      '/assets/icon.svg',
      expect.stringMatching(/^\/assets\/page-[\da-f]{16}\.css$/),
      expect.stringMatching(/^\/assets\/page-[\da-f]{16}\.js$/),
    ])
    for (const [name, type] of [
      [names[1] ?? '', 'text/css; charset=utf-8'],
      [names[2] ?? '', 'text/javascript; charset=utf-8'],
    ] as const) {
      const asset = await fetchPage(name)
      expect(asset.headers.get('content-type')).toBe(type)
      expect(asset.headers.get('cache-control')).toBe('private, max-age=31536000, immutable')
      expect((await asset.text()).length).toBeGreaterThan(1_000)
      const etag = asset.headers.get('etag') ?? ''
      expect((await fetchPage(name, { headers: { 'if-none-match': etag } })).status).toBe(304)
    }
  })

  it('follows the views of the log with the token of its server', async () => {
    const { store, fetch: fetchPage, url } = await served({}, [running])
    const { token } = await (await fetchPage('/token', { method: 'POST' })).json()
    const response = await fetch(new URL('/live/stream', url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ views: [{ view: 'groups' }, { view: 'monitors' }] }),
    })
    if (response.body === null) throw new Error('it has no body')
    const frames = response.body.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const until = async (part: string) => {
      while (!text.includes(part)) text += (await frames.read()).value
    }
    await until('tgrp_1')
    await append(store, [monitorEvent('monitor_1', { timestamp: '2026-01-01T00:00:00Z' }, 'poll')])
    await until('monitor_1')
    await frames.cancel()

    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    expect(text).not.toContain('event: denied')
  })

  it('reads all views that the page has, and has no other rights', async () => {
    const { fetch: fetchPage } = await served()
    const { token } = await (await fetchPage('/token', { method: 'POST' })).json()
    const claims = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())

    expect(JSON.stringify(claims)).toContain('"activity"')
    expect(JSON.stringify(claims)).not.toContain('addRuns')
  })

  it('has no rows and no error over an empty log', async () => {
    const { fetch: fetchPage } = await served()

    expect((await fetchPage('/')).status).toBe(200)
    expect(await (await fetchPage('/status')).json()).toMatchObject({
      log: { entries: 0, oldest: null },
      can: { search: false, addRuns: false, documents: false },
    })
  })
})

describe('the status of a dashboard', () => {
  it('has how far readers are behind, and its view has the pending alerts', async () => {
    const store = memoryStore()
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const busy: Rule = {
      alert: 'Busy',
      on: ['task_group.status'],
      when: 'data.status.is_active',
      for: '10m',
      lateness: 0,
    }
    const rules = runRules(log, defineRules([busy]), { startAt: 'start', name: 'own-rules' })
    await append(store, [running])
    const { fetch: fetchPage } = await served({ log })
    await fetchPage('/token', { method: 'POST' })

    const { state } = await firstValueFrom(log.state('view:dashboard/alerts').changes())
    expect(state).toMatchObject({ alert: 'Busy', state: 'pending' })
    const status = await (await fetchPage('/status')).json()
    expect(status.log.readers.map(({ name }: { name: string }) => name)).toEqual(
      expect.arrayContaining(['own-rules', 'view:dashboard/groups', 'view:dashboard/activity']),
    )
    await rules.stop()
  })

  it('is read once for pages that ask at the same time', async () => {
    const log = await openLog(memoryStore())
    onTestFinished(() => log.close())
    const stats = vi.spyOn(log, 'stats')
    const { fetch: fetchPage } = await served({ log })
    stats.mockClear()
    await Promise.all(Array.from({ length: 20 }, () => fetchPage('/status')))

    expect(stats).toHaveBeenCalledTimes(1)
  })
})

describe('the documents of a dashboard', () => {
  const documents = (url: string) =>
    url === 'https://a.example/?b=c&d' ? { title: 'A', text: 'x'.repeat(3_000_000) } : undefined

  it('are found by their URLs, and cut where they are too long', async () => {
    const { fetch: fetchPage } = await served({ documents })
    const url = 'https://a.example/?b=c&d'
    const found = await (await fetchPage(`/document?${new URLSearchParams({ url })}`)).json()

    expect(found).toMatchObject({ url, title: 'A', truncated: true })
    expect(found.text).toHaveLength(2_000_000)
    expect((await fetchPage('/document?url=https://b.example')).status).toBe(404)
    expect((await fetchPage('/document?url=')).status).toBe(404)
    expect((await fetchPage('/document')).status).toBe(404)
  })

  it('are not found where there are none', async () => {
    const { fetch: fetchPage } = await served()

    expect((await fetchPage('/document?url=https://a.example')).status).toBe(404)
  })
})

describe('createDashboard', () => {
  it.each([
    [{ origins: ['logs.example'] }, 'origins'],
    [{ documents: 'folder' }, 'documents'],
    [{ rules: '' }, 'rules'],
    [{ client: 'https://api.example' }, 'client'],
    [{ host: '0.0.0.0' }, 'host'],
  ])('refuses %o', async (options, name) => {
    const log = await openLog(memoryStore())
    onTestFinished(() => log.close())
    const create = () => createDashboard({ log, ...JSON.parse(JSON.stringify(options)) })

    expect(create).toThrow(ArgumentError)
    expect(create).toThrow(name)
  })

  it('leaves no process of the log when it is closed', async () => {
    const store = memoryStore()
    const log = await openLog(store)
    onTestFinished(() => log.close())
    await append(store, [running])
    const { dashboard, fetch: fetchPage } = await served({ log })
    await fetchPage('/token', { method: 'POST' })
    await firstValueFrom(log.state('view:dashboard/groups').changes())
    await dashboard.close()

    expect((await log.stats()).readers.filter(({ owner }) => owner !== null)).toEqual([])
    expect((await fetchPage('/live/stream', { method: 'POST' })).status).toBe(503)
    expect((await fetchPage('/token', { method: 'POST' })).status).toBe(503)
    await dashboard.done
  })

  it('processes nothing before a page has a token', async () => {
    const log = await openLog(memoryStore())
    onTestFinished(() => log.close())
    const { fetch: fetchPage } = await served({ log })
    await fetchPage('/')
    const status = (await fetchPage('/live/stream', { method: 'POST' })).status

    expect(status).toBe(401)
    expect((await log.stats()).readers).toEqual([])
  })
})
