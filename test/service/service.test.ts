import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { AddRunsResponse, Monitor } from '../../src/protocol/index.ts'
import { ArgumentError } from '../../src/protocol/index.ts'
import {
  createResearchService,
  ManualClock,
  type ResearchService,
  type ResearchServiceOptions,
  systemClock,
} from '../../src/service/index.ts'
import { DataFileError, openDatabase } from '../../src/service/database.ts'
import { persistentClock } from '../../src/service/persistent-clock.ts'
import { documentFolder, HeldProcessor, running, temporaryFolder } from './running.ts'

async function opened(options: Partial<ResearchServiceOptions> = {}) {
  const service = await createResearchService({ docs: await documentFolder(), ...options })
  onTestFinished(() => service.close())
  return service
}

const MONITOR = { type: 'event_stream', frequency: '1h', settings: { query: 'tides' } }

/** Blocks requests that create a monitor until they are released. */
function holdMonitors({ corpus }: ResearchService) {
  const [begun, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  vi.spyOn(corpus, 'settled').mockImplementation(() => {
    begun.resolve()
    return release.promise
  })
  return { begun: begun.promise, release: () => release.resolve() }
}

describe('a research service', () => {
  it('listens on a free loopback port and returns its base URL', async () => {
    const service = await opened()
    const before = service.url
    const url = await service.listen()
    expect(before).toBeUndefined()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(service.url).toBe(url)
  })

  it.each(['0.0.0.0', '::', '192.168.1.5', 'example.org', '127.evil.example'])(
    'refuses to listen on %s, which others may reach',
    async (host) => {
      const service = await opened()
      await expect(service.listen({ host })).rejects.toThrow(ArgumentError)
    },
  )

  it('listens for other machines with allowRemote', async () => {
    const service = await opened()
    const url = await service.listen({ host: '0.0.0.0', allowRemote: true })
    const response = await fetch(`${url}/v1/monitors`, { headers: { 'x-api-key': service.apiKey } })
    await response.body?.cancel()
    expect(response.status).toBe(200)
  })

  it('rejects for a port that is in use, and can then listen on another one', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const address = other.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const service = await opened()
    await expect(service.listen({ port })).rejects.toThrow(/EADDRINUSE/)
    await expect(service.listen()).resolves.toMatch(/^http:/)
  })

  it('listens only once, and not after it is closed', async () => {
    const service = await opened()
    await service.listen()
    await expect(service.listen()).rejects.toThrow(/listens already/)
    await service.close()
    await expect(service.listen()).rejects.toThrow(/closed/)
  })

  it('generates a random key and secret', async () => {
    const [one, two] = [await opened(), await opened()]
    expect(one.apiKey).toMatch(/^key_.{32}$/)
    expect(one.webhookSecret).toMatch(/^whsec_[\w+/]{32}$/)
    expect(one.apiKey).not.toBe(two.apiKey)
    expect(one.webhookSecret).not.toBe(two.webhookSecret)
  })

  it('exposes the first of several keys and secrets', async () => {
    const service = await opened({ apiKey: ['new', 'old'], webhookSecret: ['fresh', 'stale'] })
    expect([service.apiKey, service.webhookSecret]).toEqual(['new', 'fresh'])
  })

  it('answers runs from its documents by default', async () => {
    const { group, post, events } = await running({ processor: undefined })
    const id = await group()
    await post<AddRunsResponse>(`/v1/tasks/groups/${id}/runs`, {
      inputs: [{ input: 'What do solid state batteries replace?' }],
    })
    const [event] = await events(`/v1/tasks/groups/${id}/runs?include_output=true`)
    expect(event?.data.run?.status).toBe('completed')
    expect(
      event?.data.output?.basis.flatMap(({ citations = [] }) => citations.map(({ url }) => url)),
    ).toContain('https://cells.example.com/solid-state.md')
  })

  it('can be closed repeatedly and concurrently, and waits for responses that are nearly complete', async () => {
    const { service, post } = await running()
    const held = holdMonitors(service)
    const answer = post<Monitor>('/v1/monitors', MONITOR)
    await held.begun
    const closing = Promise.all([service.close(), service.close()])
    held.release()
    expect((await answer).status).toBe(201)
    await closing
    await expect(service.close()).resolves.toBeUndefined()
  })

  it('closes its database after the last request, even if its caller has disconnected', async () => {
    const errors: unknown[] = []
    const { service, url } = await running({ onError: (error) => errors.push(error) })
    const held = holdMonitors(service)
    const caller = new AbortController()
    const gone = fetch(`${url}/v1/monitors`, {
      method: 'POST',
      headers: { 'x-api-key': service.apiKey },
      body: JSON.stringify(MONITOR),
      signal: caller.signal,
    })
    await held.begun
    caller.abort()
    await expect(gone).rejects.toThrow(/aborted/)

    const ends: string[] = []
    const closing = service.close().then(() => ends.push('closed'))
    for (let turn = 0; turn < 1_000; turn++) await new Promise((resolve) => setImmediate(resolve))
    ends.push('released')
    held.release()
    await closing
    expect(ends).toEqual(['released', 'closed'])
    expect(errors).toEqual([])
  })

  it('closes without having listened, and at the end of its scope', async () => {
    const docs = await documentFolder()
    let inner
    {
      await using service = await createResearchService({ docs })
      inner = service
    }
    await expect(inner.listen()).rejects.toThrow(/closed/)
  })

  it('returns the contents of its database', async () => {
    const processor = new HeldProcessor()
    const { service, group, add, events } = await running({ processor })
    const id = await group()
    const { run_ids } = await add(id, 'one', 'two')
    const runs = [await processor.next(), await processor.next()]
    runs[0]?.complete()
    runs[1]?.fail('no luck')
    await events(`/v1/tasks/groups/${id}/runs`)
    expect(service.records()).toEqual({
      runs: [
        { run_id: run_ids[0], taskgroup_id: id, status: 'completed' },
        { run_id: run_ids[1], taskgroup_id: id, status: 'failed' },
      ],
      monitor_events: [],
    })
  })
})

describe('options of a research service', () => {
  it.each<[string, object]>([
    ['nothing', { docs: undefined }],
    ['no folder', { docs: [] }],
    ['an empty folder name', { docs: '' }],
    ['a folder without a path', { docs: { site: 'https://docs.example' } }],
    ['a site that is no URL', { docs: { folder: '.', site: 'docs.example' } }],
    ['a site that is not http or https', { docs: [{ folder: '.', site: 'file:///docs' }] }],
    ['a site with a query', { docs: { folder: '.', site: 'https://docs.example/?a=b' } }],
    ['a site with a password', { docs: { folder: '.', site: 'https://me:secret@docs.example' } }],
    ['an empty key', { apiKey: '' }],
    ['no key at all', { apiKey: [] }],
    ['an empty secret among others', { webhookSecret: ['one', ''] }],
    ['a clock that runs backwards', { speed: -1 }],
    ['a clock that stands still', { speed: 0 }],
    ['a speed for a clock of its own', { speed: 2, clock: new ManualClock() }],
    ['no run at once', { concurrency: 0 }],
    ['half a run at once', { concurrency: 1.5 }],
    ['a stream that ends before it begins', { streamDuration: -1 }],
    ['an empty data file name', { data: '' }],
  ])('with %s are refused', async (_, options) => {
    await expect(createResearchService({ docs: '.', ...options })).rejects.toThrow(ArgumentError)
  })

  it('with a missing folder are refused, with its name', async () => {
    await expect(createResearchService({ docs: '/no/such/folder' })).rejects.toThrow('/no/such/folder')
  })

  it('with an invalid data file are refused, with its name', async () => {
    const docs = await documentFolder()
    const file = join(docs, 'sea.example.edu', 'tides.md')
    await expect(createResearchService({ docs, data: file })).rejects.toThrow(`${file} cannot be used`)
    await expect(createResearchService({ docs, data: join(docs, 'no', 'such.db') })).rejects.toThrow(
      'such.db cannot be used',
    )
  })
})

describe('a second research service over a data file', () => {
  it('is refused at once, and the first continues', async () => {
    const data = join(await temporaryFolder(), 'service.db')
    const first = await running({ data })
    const docs = await documentFolder()
    await expect(createResearchService({ docs, data })).rejects.toThrow(DataFileError)
    await expect(createResearchService({ docs, data })).rejects.toThrow('in use by another research service')
    const id = await first.group()
    await first.add(id, 'one')
    expect(await first.events(`/v1/tasks/groups/${id}/runs`)).toHaveLength(1)
    await first.service.close()
    const second = await createResearchService({ docs, data })
    onTestFinished(() => second.close())
    expect(second.records().runs).toHaveLength(1)
  })
})

describe('a research service that fails to start', () => {
  it('leaves its data file closed', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const database = openDatabase(data)
    database.exec('CREATE VIEW webhooks AS SELECT 1 AS one')
    database.close()
    await expect(createResearchService({ docs, data })).rejects.toThrow(/views/)
    // SQLite removes it with the last connection.
    expect(existsSync(`${data}-wal`)).toBe(false)
  })
})

describe('the clock of a service that runs fast', () => {
  it('continues when the database fails, and reports it', () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const database = openDatabase(':memory:')
    onTestFinished(() => database.close())
    const errors: unknown[] = []
    const { clock, close } = persistentClock(database, 60, (error) => errors.push(error))
    onTestFinished(close)
    const began = clock.now()
    database.exec('DROP TABLE service_clock')
    vi.advanceTimersByTime(1_000)
    expect(errors).toEqual([expect.objectContaining({ message: expect.stringContaining('service_clock') })])
    expect(clock.now()).toBeGreaterThan(began)
  })

  it('does not go back when the service is restarted', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const first = await createResearchService({ docs, data, speed: 1_000_000 })
    await first.close()
    const ended = first.clock.now()
    const second = await createResearchService({ docs, data, speed: 2 })
    onTestFinished(() => second.close())
    expect(second.clock.now()).toBeGreaterThan(Date.now())
    expect(second.clock.now()).toBeLessThanOrEqual(ended)
  })
})

describe('clocks', () => {
  it('the system clock runs tasks when they are due, and not cancelled ones', async () => {
    const clock = systemClock(1_000)
    const began = clock.now()
    const cancelled: number[] = []
    const cancel = clock.schedule(100, () => cancelled.push(clock.now()))
    cancel()
    const due = await new Promise<number>((resolve) => clock.schedule(5_000, () => resolve(clock.now())))
    expect(due).toBeGreaterThanOrEqual(began + 5_000)
    expect(cancelled).toEqual([])
  })

  it('the manual clock runs due tasks in order of time, including those that tasks schedule', () => {
    const clock = new ManualClock(0)
    const ran: string[] = []
    clock.schedule(20, () => ran.push(`second at ${clock.now()}`))
    clock.schedule(10, () => {
      ran.push(`first at ${clock.now()}`)
      clock.schedule(5, () => ran.push(`nested at ${clock.now()}`))
    })
    clock.schedule(31, () => ran.push('late'))
    clock.advance(30)
    expect(ran).toEqual(['first at 10', 'nested at 15', 'second at 20'])
    expect([clock.now(), clock.next]).toEqual([30, 31])
  })
})
