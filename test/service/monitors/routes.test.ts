/* oxlint-disable no-await-in-loop -- pages follow one another */
import type { Monitor, MonitorEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { startMonitors } from './service.ts'

interface MonitorPage {
  readonly monitors: readonly Monitor[]
  readonly next_cursor?: string
}

type Service = Awaited<ReturnType<typeof startMonitors>>

/** A monitor with `count` executions after its first one, each of which reported one event. */
async function monitorWithEvents(service: Service, count: number): Promise<string> {
  const id = await service.create()
  for (let n = 1; n <= count; n++) {
    service.corpus.put(`https://example.org/${n}`, [`solid battery ${n}`])
    await service.trigger(id)
  }
  return id
}

function ids(events: readonly MonitorEvent[]): string[] {
  return events.map((event) => ('event_id' in event ? event.event_id : event.timestamp))
}

describe('any monitor endpoint', () => {
  it.each([
    ['GET', '/monitor_x'],
    ['GET', '/monitor_x/events'],
    ['POST', '/monitor_x/cancel'],
    ['POST', '/monitor_x/trigger'],
  ])('answers 404 with an ErrorResponse when there is no such monitor: %s %s', async (method, path) => {
    const { get, post } = await startMonitors()

    const { status, body } = await (method === 'GET' ? get(path) : post(path))

    expect(status).toBe(404)
    expect(body).toEqual({
      type: 'error',
      error: {
        ref_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        message: expect.stringContaining('monitor_x'),
        detail: null,
      },
    })
  })
})

describe('POST /v1/monitors/{id}/cancel', () => {
  it('answers with the cancelled monitor, and it never runs again', async () => {
    const { create, post, corpus, advance, events } = await startMonitors()
    const id = await create()

    const { status, body } = await post<Monitor>(`/${id}/cancel`)
    corpus.put('https://example.org/late', ['solid battery'])
    await advance(30 * 86_400_000)

    expect(status).toBe(200)
    expect(body).toMatchObject({ monitor_id: id, status: 'cancelled' })
    expect(await events(id)).toHaveLength(1)
  })

  it('changes nothing the second time', async () => {
    const { create, post } = await startMonitors()
    const id = await create()
    const first = await post<Monitor>(`/${id}/cancel`)

    const second = await post<Monitor>(`/${id}/cancel`)

    expect(second).toEqual(first)
  })

  it('discards a running execution', async () => {
    const { create, post, corpus, monitors, events } = await startMonitors()
    const id = await create()
    const release = corpus.hold()
    await post(`/${id}/trigger`)
    corpus.put('https://example.org/late', ['solid battery'])

    await post(`/${id}/cancel`)
    release()
    await monitors.settled()

    expect(await events(id)).toHaveLength(1)
  })

  it('keeps the events', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 2)

    await service.post(`/${id}/cancel`)

    expect(await service.events(id, '')).toHaveLength(2)
  })
})

describe('POST /v1/monitors/{id}/trigger', () => {
  it('answers 204 and runs once, without moving the schedule', async () => {
    const { create, post, monitors, clock, advance, events } = await startMonitors()
    const id = await create()
    clock.advance(1_800_000)

    const { status } = await post(`/${id}/trigger`)
    await monitors.settled()
    expect(await events(id)).toHaveLength(2)
    await advance(1_800_000)

    expect(status).toBe(204)
    expect(await events(id)).toHaveLength(3)
    expect(clock.next).toBe(clock.now() + 3_600_000)
  })

  it('refuses a cancelled monitor with 409', async () => {
    const { create, post } = await startMonitors()
    const id = await create()
    await post(`/${id}/cancel`)

    const { status, body } = await post(`/${id}/trigger`)

    expect(status).toBe(409)
    expect(body.error.message).toContain('cancelled')
  })
})

describe('GET /v1/monitors', () => {
  it('pages through all monitors, newest first, while new ones appear', async () => {
    const { create, get } = await startMonitors()
    const created: string[] = []
    for (let n = 0; n < 5; n++) created.push(await create())

    const listed: string[] = []
    let cursor: string | undefined
    do {
      const { body } = await get<MonitorPage>(`?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      listed.push(...body.monitors.map(({ monitor_id }) => monitor_id))
      cursor = body.next_cursor
      await create()
    } while (cursor !== undefined)

    expect(listed).toEqual(created.toReversed())
  })

  it('filters by status and by type, each of which may repeat', async () => {
    const { create, get, post } = await startMonitors()
    const active = await create()
    const cancelled = await create()
    await post(`/${cancelled}/cancel`)
    const list = async (query: string) =>
      (await get<MonitorPage>(`?${query}`)).body.monitors.map(({ monitor_id }) => monitor_id)

    expect(await list('status=active')).toEqual([active])
    expect(await list('status=cancelled&type=event_stream')).toEqual([cancelled])
    expect(await list('status=active&status=cancelled')).toEqual([cancelled, active])
    expect(await list('type=snapshot')).toEqual([])
  })

  it.each(['limit=0', 'limit=10001', 'limit=x', 'cursor=x', 'status=asleep', 'type=diary'])(
    'answers 422 to %s',
    async (query) => {
      const { get } = await startMonitors()

      const { status, body } = await get(`?${query}`)

      expect(status).toBe(422)
      expect(body.type).toBe('error')
    },
  )

  it('takes a limit of 10,000', async () => {
    const { get } = await startMonitors()

    expect((await get('?limit=10000')).status).toBe(200)
  })
})

describe('GET /v1/monitors/{id}/events', () => {
  it('lists 20 events when no limit is given, newest first, and a cursor to the rest', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 21)

    const first = await service.page(id, '')
    const second = await service.page(id, `cursor=${first.next_cursor}`)

    expect(first.events).toHaveLength(20)
    expect(first.events[0]).toMatchObject({ output: { content: 'solid battery 21' } })
    expect(second.events).toMatchObject([{ output: { content: 'solid battery 1' } }])
    expect(second).not.toHaveProperty('next_cursor')
  })

  it('has no cursor on a page that ends with the last event', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 4)

    const first = await service.page(id, 'limit=2')
    const second = await service.page(id, `limit=2&cursor=${first.next_cursor}`)

    expect(second.events).toHaveLength(2)
    expect(second).not.toHaveProperty('next_cursor')
  })

  it('neither loses nor repeats events that appear while it is paged', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 11)
    const before = ids(await service.events(id, 'limit=100'))

    const read: string[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const page = await service.page(id, `limit=3${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      read.push(...ids(page.events))
      cursor = page.next_cursor ?? undefined
      pages += 1
      service.corpus.put(`https://example.org/during-${pages}`, [`solid battery during ${pages}`])
      await service.trigger(id)
    } while (cursor !== undefined)

    expect(pages).toBe(4)
    expect(read).toEqual(before)
    const after = ids(await service.events(id, 'limit=100'))
    expect(after.slice(pages)).toEqual(before)
  })

  it('leaves completions out unless they are asked for', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 1)

    const kinds = async (query: string) =>
      (await service.events(id, query)).map(({ event_type }) => event_type)

    expect(await kinds('')).toEqual(['event_stream'])
    expect(await kinds('include_completions=false')).toEqual(['event_stream'])
    expect(await kinds('include_completions=true')).toEqual(['event_stream', 'completion'])
  })

  it.each(['event_group_id', 'monitor_group_id'])(
    'restricts the list to one execution, with any paging parameters: %s',
    async (name) => {
      const service = await startMonitors()
      const id = await service.create()
      service.corpus.put('https://example.org/1', ['solid battery 1', 'solid battery 2', 'solid battery 3'])
      await service.trigger(id)
      service.corpus.put('https://example.org/2', ['solid battery 4'])
      await service.trigger(id)
      const [, oldest] = await service.events(id, 'limit=2')
      const group = oldest !== undefined && 'event_group_id' in oldest ? oldest.event_group_id : ''

      const page = await service.page(id, `${name}=${group}&limit=0&cursor=nonsense`)

      expect(page.events).toHaveLength(3)
      expect(page.events.every((event) => 'event_group_id' in event && event.event_group_id === group)).toBe(
        true,
      )
      expect(page).not.toHaveProperty('next_cursor')
    },
  )

  it('has no events of an execution that belongs to another monitor', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 1)
    const other = await service.create()
    const [event] = await service.events(id, '')
    const group = event !== undefined && 'event_group_id' in event ? event.event_group_id : ''

    expect(await service.events(other, `event_group_id=${group}&include_completions=true`)).toEqual([])
  })

  it.each(['limit=0', 'limit=101', 'limit=-1', 'limit=1.5', 'cursor=nonsense', 'include_completions=maybe'])(
    'answers 422 with an ErrorResponse to %s',
    async (query) => {
      const { create, get } = await startMonitors()
      const id = await create()

      const { status, body } = await get(`/${id}/events?${query}`)

      expect(status).toBe(422)
      expect(body).toMatchObject({
        type: 'error',
        error: { message: expect.stringContaining(query.split('=')[0] ?? '') },
      })
    },
  )

  it('answers 422 to the cursor of another monitor', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 2)
    const other = await service.create()
    const { next_cursor } = await service.page(id, 'limit=1')

    const { status } = await service.get(`/${other}/events?cursor=${next_cursor}`)

    expect(status).toBe(422)
  })

  it.each(['limit=1', 'limit=100', 'limit=', 'cursor='])('takes %s', async (query) => {
    const { create, get } = await startMonitors()
    const id = await create()

    expect((await get(`/${id}/events?${query}`)).status).toBe(200)
  })

  it('reaches back over 300 executions, and what was reported before is still no news', async () => {
    const service = await startMonitors()
    const { corpus, create, trigger, monitors } = service
    const id = await create()
    corpus.put('https://example.org/old', ['solid battery old'])
    await trigger(id)
    for (let n = 0; n < 300; n++) await trigger(id)

    const stored = monitors.records()

    expect(stored).toHaveLength(300)
    expect(stored.every(({ event }) => event.event_type === 'completion')).toBe(true)
  })

  it('warns when the events before a cursor are no longer listed, and only then', async () => {
    const service = await startMonitors()
    const id = await monitorWithEvents(service, 3)
    const old = (await service.page(id, 'limit=2')).next_cursor
    for (let n = 0; n < 297; n++) await service.trigger(id)
    const atTheReach = await service.page(id, `cursor=${old}`)
    await service.trigger(id)

    const missed = await service.page(id, `cursor=${old}`)
    const last = await service.page(id, 'limit=100&include_completions=true')
    const beginning = await service.page(id, '')

    expect(atTheReach.events).toHaveLength(1)
    expect(beginning.events).toHaveLength(2)
    expect(missed.events).toEqual([])
    expect(missed.warnings).toEqual([
      { type: 'warning', message: expect.stringContaining('no longer listed') },
    ])
    for (const page of [atTheReach, last, beginning]) expect(page).not.toHaveProperty('warnings')
  })
})
