import { getEventListeners } from 'node:events'
import type { RequestListener } from 'node:http'
import { lastValueFrom } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { answer, queryOf, serve } from '../support/serve.ts'

/** A service that never responds to the requests of `hangs`. Reports when one arrives and when its socket closes. */
async function hanging(hangs: (request: Parameters<RequestListener>[0]) => boolean, otherwise: unknown) {
  let arrived = () => {}
  let closed = () => {}
  const requested = new Promise<void>((resolve) => (arrived = resolve))
  const disconnected = new Promise<void>((resolve) => (closed = resolve))
  const baseUrl = await serve((request, response) => {
    if (!hangs(request)) return answer(response, otherwise)
    response.on('close', closed)
    arrived()
  })
  return { client: createClient({ baseUrl, apiKey: 'key' }), requested, disconnected }
}

const event = {
  event_type: 'event_stream',
  event_id: 'e1',
  event_group_id: 'x',
  event_date: null,
  output: {},
}
const firstPage = { events: [event], next_cursor: 'older' }

describe('unsubscribing', () => {
  it.each<[string, (client: ResearchClient) => Observable<unknown>]>([
    ['a search', (client) => client.search({ search_queries: ['x'] })],
    [
      'adding runs',
      (client) => client.taskGroups.addRuns('g', { inputs: [{ input: 'x', processor: 'base' }] }),
    ],
    ['an untyped request', (client) => client.get('/v1/memory')],
    ['the first page of a monitor', (client) => client.monitors.events('m')],
    ['the poll of a monitor', (client) => client.monitors.follow('m')],
    ['the poll of memories', (client) => client.memory.follow()],
    ['a group stream', (client) => client.taskGroups.events('g')],
    ['a retry of a group', (client) => client.taskGroups.retry('g')],
    ['the errors of a group', (client) => client.taskGroups.errors('g')],
    ['an untyped stream', (client) => client.stream('/v1/memory/events')],
  ])('from %s destroys the socket of a request in flight', async (_, call) => {
    const { client, requested, disconnected } = await hanging(() => true, undefined)
    const received: unknown[] = []
    const subscription = call(client).subscribe({
      next: (value) => received.push(value),
      error: (error) => received.push(error),
      complete: () => received.push('completed'),
    })

    await requested
    subscription.unsubscribe()

    await disconnected
    expect(received).toEqual([])
  })

  it.each(['events', 'follow'] as const)(
    'from monitors.%s between two pages destroys the socket of the next one',
    async (call) => {
      const { client, requested, disconnected } = await hanging(
        (request) => queryOf(request).has('cursor'),
        firstPage,
      )
      let ended = false
      const subscription = client.monitors[call]('m').subscribe({ complete: () => (ended = true) })

      await requested
      subscription.unsubscribe()

      await disconnected
      expect(ended).toBe(false)
    },
  )
})

describe('a signal that outlives its sources', () => {
  it('has no listener of a source that has completed', async () => {
    const { client } = await hanging(() => false, { results: [] })
    const { signal } = new AbortController()

    for (let n = 0; n < 20; n++) await lastValueFrom(client.search({ search_queries: ['x'] }, { signal }))

    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('has no listener of a source that was unsubscribed from', async () => {
    const { client } = await hanging(() => true, undefined)
    const { signal } = new AbortController()
    const subscriptions = Array.from({ length: 20 }, (_, n) =>
      client.taskGroups.runs(`g${n}`, { signal }).subscribe(),
    )
    const whileSubscribed = getEventListeners(signal, 'abort').length

    for (const subscription of subscriptions) subscription.unsubscribe()

    expect(whileSubscribed).toBe(20)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})
