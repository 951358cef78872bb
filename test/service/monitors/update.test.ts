import type { Monitor } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { BATTERY, startMonitors, summaries } from './service.ts'
import { json } from './tracked-runs.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const HOOK = { url: 'http://127.0.0.1:9/hook', event_types: ['monitor.event.detected'] }
const SOURCES = { source_policy: { include_domains: ['example.org'] } }

/** Monitors, and one that is created from the request. */
async function startWith(request: object = {}) {
  const service = await startMonitors()
  const id = await service.create({ ...BATTERY, ...request })
  return {
    ...service,
    id,
    update: (changes: unknown) => service.post<Monitor>(`/${id}/update`, changes),
    refuse: (changes: unknown) => service.post(`/${id}/update`, changes),
    monitor: async () => (await service.get<Monitor>(`/${id}`)).body,
    executions: async () => (await service.events(id)).length,
  }
}

describe('POST /v1/monitors/{id}/update', () => {
  it.each<[string, object]>([
    ['frequency', { frequency: '2d' }],
    ['webhook', { webhook: { ...HOOK, url: 'http://127.0.0.1:9/other' } }],
    ['metadata', { metadata: { a: 'b' } }],
    ['settings', { type: 'event_stream', settings: { advanced_settings: { location: 'ch' } } }],
    ['nothing', {}],
    ['nothing, with the type alone', { type: 'event_stream' }],
  ])('changes %s and nothing else, and answers with the monitor', async (_, changes) => {
    const { update, monitor } = await startWith({ webhook: HOOK, metadata: { team: 'cells' } })
    const before = await monitor()

    const { status, body } = await update(changes)

    expect(status).toBe(200)
    const { settings = {}, ...others } = changes as Partial<Monitor>
    expect(body).toEqual({ ...before, ...others, settings: { ...before.settings, ...settings } })
    expect(await monitor()).toEqual(body)
  })

  it('removes webhook and metadata with null', async () => {
    const { update, monitor } = await startWith({ webhook: HOOK, metadata: { team: 'cells' } })

    await update({ webhook: null, metadata: null })

    expect(await monitor()).not.toHaveProperty('webhook')
    expect(await monitor()).not.toHaveProperty('metadata')
  })

  it.each<[string, unknown, string]>([
    ['no body', undefined, 'body'],
    ['an invalid frequency', { frequency: '90m' }, 'body.frequency'],
    ['an invalid webhook', { webhook: { url: 'nowhere' } }, 'body.webhook.url'],
    ['metadata with a long key', { metadata: { ['k'.repeat(17)]: 'v' } }, 'body.metadata'],
    ['settings without a type', { settings: { advanced_settings: SOURCES } }, 'body.type'],
    ['the type snapshot', { type: 'snapshot' }, 'body.type'],
  ])('answers 422 to %s, and changes nothing', async (_, changes, loc) => {
    const { refuse, monitor } = await startWith()
    const before = await monitor()

    const { status, body } = await refuse(changes)

    expect(status).toBe(422)
    const errors = body.error.detail?.['errors'] as { loc: string[] }[]
    expect(errors.map((error) => error.loc.join('.')).join()).toContain(loc)
    expect(await monitor()).toEqual(before)
  })

  it('answers 404 when there is no such monitor', async () => {
    const { post } = await startMonitors()

    expect((await post('/monitor_x/update', { frequency: '1d' })).status).toBe(404)
  })

  it('answers 422 when the monitor is cancelled', async () => {
    const { post, id, refuse, monitor } = await startWith()
    await post(`/${id}/cancel`)

    const { status, body } = await refuse({ frequency: '2d' })

    expect([status, body.error.message]).toEqual([422, expect.stringContaining('is cancelled')])
    expect((await monitor()).frequency).toBe('1h')
  })

  it('answers 422 to settings of a snapshot monitor, and changes its frequency', async () => {
    const service = await startMonitors()
    service.runs.add('trun_1', json({ a: 1 }))
    const id = await service.create({
      type: 'snapshot',
      frequency: '1d',
      settings: { task_run_id: 'trun_1' },
    })

    for (const changes of [
      { settings: {} },
      { type: 'event_stream', settings: {} },
      { type: 'event_stream' },
    ])
      expect((await service.post(`/${id}/update`, changes)).status).toBe(422)
    const { body } = await service.post<Monitor>(`/${id}/update`, { frequency: '1h' })

    expect(body).toMatchObject({
      type: 'snapshot',
      frequency: '1h',
      output: { latest_snapshot: json({ a: 1 }) },
    })
    await service.advance(HOUR)
    expect(await service.events(id)).toHaveLength(2)
  })
})

describe('another frequency', () => {
  it('counts from the last execution when it is lower', async () => {
    const { update, advance, executions } = await startWith({ frequency: '1h' })
    await advance(HOUR / 2)

    await update({ frequency: '2h' })

    await advance(1.5 * HOUR - 1)
    expect(await executions()).toBe(1)
    await advance(1)
    expect(await executions()).toBe(2)
    await advance(2 * HOUR)
    expect(await executions()).toBe(3)
  })

  it('counts from the last execution when it is higher', async () => {
    const { update, advance, executions } = await startWith({ frequency: '1d' })
    await advance(HOUR / 2)

    await update({ frequency: '1h' })

    await advance(HOUR / 2)
    expect(await executions()).toBe(2)
  })

  it('executes once, at once, when that time is in the past', async () => {
    const { update, advance, executions, monitors } = await startWith({ frequency: '1d' })
    await advance(20.5 * HOUR)

    await update({ frequency: '1h' })
    await monitors.settled()

    expect(await executions()).toBe(2)
    await advance(HOUR / 2)
    expect(await executions()).toBe(3)
  })

  it('does not count from a triggered execution', async () => {
    const { update, advance, executions, trigger, id } = await startWith({ frequency: '1d' })
    await advance(6 * HOUR)
    await trigger(id)

    await update({ frequency: '12h' })

    await advance(6 * HOUR)
    expect(await executions()).toBe(3)
  })

  it('does not delay an execution that is due', async () => {
    const { update, corpus, clock, events, id, monitors } = await startWith({ frequency: '1h' })
    const release = corpus.hold()
    clock.advance(HOUR)

    await update({ frequency: '30d' })
    release()
    await monitors.settled()

    expect(await events(id)).toHaveLength(2)
    expect(clock.next).toBe(clock.now() + 30 * DAY)
  })
})

describe('other sources', () => {
  const both = { type: 'event_stream', settings: { advanced_settings: {} } }

  it('report no documents that were excluded before, but new ones of either', async () => {
    const { update, corpus, advance, events, id } = await startWith({
      settings: { query: 'solid battery', advanced_settings: SOURCES },
    })
    corpus.put('https://other.example/old', ['solid battery of the old archive'])
    await advance(HOUR)
    corpus.put('https://example.org/new', ['solid battery new, before the update'])

    await update(both)
    corpus.put('https://other.example/new', ['solid battery new, after the update'])
    await advance(HOUR)

    expect(summaries(await events(id, '')).toSorted()).toEqual([
      'solid battery new, after the update',
      'solid battery new, before the update',
    ])
  })

  it('report nothing again that was reported before they were excluded', async () => {
    const { update, corpus, advance, events, id } = await startWith()
    corpus.put('https://other.example/old', ['solid battery'])
    await advance(HOUR)

    await update({ type: 'event_stream', settings: { advanced_settings: SOURCES } })
    await advance(HOUR)
    await update(both)
    await advance(HOUR)

    expect(summaries(await events(id, ''))).toEqual(['solid battery'])
  })

  it('are not changed when the documents cannot be read', async () => {
    const { update, corpus, monitor } = await startWith({
      settings: { query: 'solid battery', advanced_settings: SOURCES },
    })
    corpus.settled = () => Promise.reject(new Error('no such folder'))

    const { status } = await update(both)

    expect(status).toBe(500)
    expect((await monitor()).settings).toMatchObject({ advanced_settings: SOURCES })
  })
})
