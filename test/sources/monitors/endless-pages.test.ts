import { createClient, ProtocolError } from 'rivulet'
import type { Diagnostic, ResearchClient } from 'rivulet'
import { lastValueFrom } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { ImpatientScheduler } from '../../support/impatient-scheduler.ts'
import { answer, queryOf, serve } from '../../support/serve.ts'

const eventOf = (id: string) => ({ event_id: id, event_group_id: 'g', event_date: null, output: {} })

/** A service whose lists have one more page each time. */
async function endless(eventsOf: (page: number) => readonly object[]) {
  let requests = 0
  const baseUrl = await serve((request, response) => {
    requests += 1
    const page = Number(queryOf(request).get('cursor') ?? 0)
    answer(response, {
      events: eventsOf(page),
      monitors: eventsOf(page),
      next_cursor: String(page + 1),
    })
  })
  const scheduler = new ImpatientScheduler()
  const client = createClient({ baseUrl, apiKey: 'key', scheduler })
  const diagnostics: Diagnostic[] = []
  client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
  return { client, scheduler, diagnostics, requests: () => requests }
}

const lists: readonly [string, (client: ResearchClient) => Observable<unknown>][] = [
  ['monitors.follow', (client) => client.monitors.follow('m')],
  ['monitors.events', (client) => client.monitors.events('m')],
  ['monitors.list', (client) => client.monitors.list()],
]
const barren: readonly [string, (page: number) => readonly object[]][] = [
  ['are empty', () => []],
  ['repeat their entries', () => [eventOf('e')]],
]

describe('a list whose pages never end', () => {
  it.each(
    lists.flatMap(([name, list]) => barren.map(([kind, eventsOf]) => ({ name, list, kind, eventsOf }))),
  )('is requested slowly, is reported and ends $name where the pages $kind', async ({ list, eventsOf }) => {
    const { client, scheduler, diagnostics, requests } = await endless(eventsOf)

    const error: unknown = await lastValueFrom(list(client)).then(null, (thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(ProtocolError)
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining('nothing new') })
    expect(requests()).toBeLessThan(1_100)
    expect(scheduler.now()).toBeGreaterThan(90_000)
    expect(diagnostics.filter(({ kind }) => kind === 'barren_pages')).toHaveLength(1)
  })

  it.each(lists.slice(0, 2))('ends %s where a monitor has more events than it can have', async (_, list) => {
    const { client, requests } = await endless((page) => [eventOf(`e${page}`)])

    const error: unknown = await lastValueFrom(list(client)).then(null, (thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(ProtocolError)
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining('3000 pages') })
    expect(requests()).toBeLessThan(3_100)
  })

  it.each(lists)('ends %s where a cursor is huge', async (_, list) => {
    const baseUrl = await serve((_request, response) =>
      answer(response, { events: [], monitors: [], next_cursor: 'c'.repeat(100_000) }),
    )
    const client = createClient({ baseUrl, apiKey: 'key' })

    await expect(lastValueFrom(list(client))).rejects.toBeInstanceOf(ProtocolError)
  })
})
