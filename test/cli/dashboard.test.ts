import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createClient, monitorEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { firstValueFrom, lastValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { append } from '../log/append.ts'
import { DOCUMENTS, folderOf, rivulet, serveDocuments } from './command.ts'

// Several child processes, one after the other.
vi.setConfig({ testTimeout: 60_000 })

const EVENT = monitorEvent(
  'monitor_1',
  {
    event_id: 'mevt_1',
    event_group_id: 'mevtgrp_1',
    event_date: null,
    output: { type: 'text', content: 'news', basis: [] },
  },
  'poll',
)

/** A log in a file, with an event of a monitor, that no process has open. */
async function logFile(): Promise<string> {
  const file = join(await folderOf({}), 'rivulet.db')
  const store = sqliteStore(file)
  const log = await openLog(store)
  await append(store, [EVENT])
  await log.close()
  return file
}

/** A browser at a printed address. */
async function browser(address: string) {
  const url = new URL(address)
  const welcome = await fetch(url)
  const cookie = welcome.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const request = (path: string, init: RequestInit = {}) =>
    fetch(new URL(path, url), { ...init, headers: { cookie, ...init.headers } })
  const { token } = await (await request('/token', { method: 'POST' })).json()
  const post = (path: string, body: unknown) =>
    fetch(new URL(path, url), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  return {
    request,
    post,
    /** Resolves when the views have sent this text. */
    async shows(text: string, ...views: readonly object[]): Promise<void> {
      const { body } = await post('/live/stream', { views })
      if (body === null) throw new Error('the stream has no body')
      let seen = ''
      for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
        seen += chunk
        if (seen.includes(text)) return
      }
      throw new Error(`the stream ended without ${text}: ${seen}`)
    },
  }
}

describe('rivulet dashboard', () => {
  it.each(['SIGINT', 'SIGTERM'] as const)(
    'serves a log until %s, and leaves nothing of it behind',
    async (signal) => {
      const file = await logFile()
      const dashboard = rivulet(['dashboard', '--log', file])
      const line = await dashboard.stdoutLine()
      const [address = ''] = /http:\/\/127\.0\.0\.1:\d+\/\?key=[\w-]{43}$/.exec(line) ?? []
      const page = await browser(address)
      const html = await (await page.request('/')).text()
      await page.shows('monitor_1', { view: 'monitors' })
      // A stream that is open does not keep it alive.
      const { body } = await page.post('/live/stream', { views: [{ view: 'monitors' }] })
      const frames = body?.pipeThrough(new TextDecoderStream()).getReader()
      await frames?.read()
      dashboard.child.kill(signal)
      const { code, stderr } = await dashboard.ended
      let text = ''
      for (;;) {
        const { done, value = '' } = (await frames?.read()) ?? { done: true }
        text += value
        if (done) break
      }

      expect(line).toContain(file)
      expect(html).toContain('<div id="root">')
      expect(code).toBe(0)
      expect(stderr).toBe('')
      expect(text).toMatch(/event: close\ndata: .*"shutdown"/)
      await expect(fetch(address)).rejects.toThrow('fetch failed')
      const log = await openLog(sqliteStore(file, { create: false }))
      onTestFinished(() => log.close())
      const { readers } = await log.stats()
      expect(readers.filter(({ name }) => name.startsWith('view:')).length).toBeGreaterThan(5)
      expect(readers.filter(({ owner }) => owner !== null)).toEqual([])
    },
  )

  it('asks for the key, and has it in no log', async () => {
    const dashboard = rivulet(['dashboard', '--json', '--verbose', '--log', await logFile()])
    const { dashboard: printed } = JSON.parse(await dashboard.stdoutLine())
    const key = new URL(printed.url).searchParams.get('key') ?? ''
    await browser(printed.url)
    const without = await fetch(new URL('/', printed.url))
    dashboard.child.kill('SIGTERM')
    const { stdout, stderr } = await dashboard.ended

    expect(without.status).toBe(401)
    expect(stdout.trimEnd().split('\n')).toHaveLength(1)
    expect(stderr).toContain('closing')
    expect(stderr).not.toContain(key)
  })

  it('refuses a file that does not exist, and does not create it', async () => {
    const file = join(await folderOf({}), 'missing.db')
    const { code, stdout, stderr } = await rivulet(['dashboard', '--log', file]).ended

    expect(code).toBe(7)
    expect(stdout).toBe('')
    expect(stderr).toContain('missing.db')
    expect(existsSync(file)).toBe(false)
  })

  it('needs the key of a service whose address it has', async () => {
    const file = await logFile()
    const { code, stderr } = await rivulet(['dashboard', '--log', file, '--base-url', 'http://127.0.0.1:1'])
      .ended

    expect(code).toBe(2)
    expect(stderr).toContain('RIVULET_API_KEY is not set')
  })

  it('says which port it cannot have', async () => {
    const file = await logFile()
    const first = rivulet(['dashboard', '--json', '--log', file])
    const { port } = new URL(JSON.parse(await first.stdoutLine()).dashboard.url)
    const { code, stderr } = await rivulet(['dashboard', '--log', file, '--port', port]).ended

    expect(code).toBe(1)
    expect(stderr).toMatch(new RegExp(`EADDRINUSE.*:${port}`))
  })

  it('shows what another process records meanwhile, also in a second dashboard, and a log without entries', async () => {
    const { env, printed } = await serveDocuments()
    const client = createClient({ baseUrl: printed.url, apiKey: printed.api_key })
    const { taskgroup_id: group } = await firstValueFrom(client.taskGroups.create())
    const file = join(await folderOf({}), 'rivulet.db')
    await (await openLog(sqliteStore(file))).close()
    const command = ['dashboard', '--json', '--log', file]
    const [one, other] = [rivulet(command), rivulet(command)]
    const pages = await Promise.all(
      [one, other].map(async (each) => browser(JSON.parse(await each.stdoutLine()).dashboard.url)),
    )
    const empty = await (await pages[0]?.request('/status'))?.json()
    await lastValueFrom(client.taskGroups.addRuns(group, { inputs: [{ input: 'What is a rivulet?' }] }))
    const shown = pages.map((page) =>
      page.shows('small stream of water', { view: 'groups' }, { view: 'group', params: { group } }),
    )
    const recorder = rivulet(['record', '--log', file, '--group', group], env)
    await Promise.all(shown)

    expect(empty.log.entries).toBe(0)
    expect((await recorder.ended).code).toBe(0)
  })

  it('searches and adds runs with a service, and shows documents of a folder', async () => {
    const { env, printed } = await serveDocuments()
    const client = createClient({ baseUrl: printed.url, apiKey: printed.api_key })
    const { taskgroup_id: group } = await firstValueFrom(client.taskGroups.create())
    const docs = await folderOf(DOCUMENTS)
    const args = ['dashboard', '--json', '--log', await logFile(), '--site', `https://docs.example=${docs}`]
    const dashboard = rivulet(args, env)
    const page = await browser(JSON.parse(await dashboard.stdoutLine()).dashboard.url)
    const { can } = await (await page.request('/status')).json()
    const found = await page.post('/live/search', { search_queries: ['rivulet'] })
    const { results } = await found.json()
    const added = await page.post('/live/runs', { group, inputs: [{ input: 'What is a rivulet?' }] })
    const document = await page.request('/document?url=https://docs.example/river.md')

    expect(can).toEqual({ search: true, addRuns: true, documents: true })
    expect(results).toMatchObject([{ title: 'Rivers' }])
    expect(added.status).toBe(200)
    expect((await added.json()).run_ids).toHaveLength(1)
    expect(await document.json()).toMatchObject({
      title: 'Rivers',
      text: expect.stringContaining('small stream'),
    })
    expect((await page.request('/document?url=file:///etc/passwd')).status).toBe(404)
    await page.shows('rivulet', { view: 'searches' })
  })
})
