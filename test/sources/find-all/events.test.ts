import type { IncomingMessage, ServerResponse } from 'node:http'
import { createClient, IncompleteStreamError } from 'rivulet'
import type { ClientOptions, FindAllEvent, ResearchEvent } from 'rivulet'
import { firstValueFrom, lastValueFrom, take, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { answer, openStream, queryOf, serve, sse } from '../../support/serve.ts'
import {
  candidateEvent,
  eventsOf,
  findAllRun,
  isStream,
  sendAfter,
  service,
  statusEvent,
} from './find-all-log.ts'

async function clientOf(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  options: ClientOptions = {},
) {
  return createClient({
    apiKey: 'key',
    baseUrl: await serve(listener),
    initialDelay: 0,
    maxDelay: 1,
    ...options,
  })
}

function typesOf(events: readonly ResearchEvent[]): string[] {
  return events.map(({ type }) => type.replace('findall.', ''))
}

const cursors = (events: readonly ResearchEvent[]) => events.map(({ cursor }) => cursor)

describe('findAll.events', () => {
  it('emits every event of a run once, in order, and completes', async () => {
    const log = eventsOf(3)
    const { findAll } = await clientOf(service(log))

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(cursors(events)).toEqual(log.map(({ event_id }) => event_id))
    expect(events.map(({ data }) => data)).toEqual(log)
  })

  it('asks for the beta feature in each request', async () => {
    const betas: unknown[] = []
    const respond = service(eventsOf(1))
    const { findAll } = await clientOf((request, response) => {
      betas.push(request.headers['service-beta'])
      respond(request, response)
    })

    await lastValueFrom(findAll.events('f'))

    expect(betas).toEqual(['findall-2025-09-15', 'findall-2025-09-15'])
  })

  it('resumes after the last event when a connection breaks within an event', async () => {
    const log = eventsOf(2)
    const positions: (string | null)[] = []
    const { findAll } = await clientOf((request, response) => {
      if (!isStream(request)) return answer(response, findAllRun(2, 1, false))
      positions.push(queryOf(request).get('last_event_id'))
      if (positions.length > 1) return sendAfter(request, response, log)
      openStream(response)
      const text = log.map(sse).join('')
      response.write(text.slice(0, text.indexOf('id: s1') + 20), () => response.destroy())
    })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(positions).toEqual([null, 'g1'])
    expect(cursors(events)).toEqual(log.map(({ event_id }) => event_id))
  })

  it('begins after the position of the caller', async () => {
    const log = eventsOf(2)
    const { findAll } = await clientOf(service(log))

    const events = await lastValueFrom(findAll.events('f', { last_event_id: 's0' }).pipe(toArray()))

    expect(cursors(events)).toEqual(log.map(({ event_id }) => event_id).slice(2))
  })

  it('goes on after a clean close while the run is active, without a status event', async () => {
    const log = eventsOf(2)
    let connections = 0
    const { findAll } = await clientOf((request, response) => {
      if (isStream(request)) return sendAfter(request, response, log.slice(0, (connections += 3)))
      answer(response, findAllRun(2, 1, connections < log.length))
    })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(cursors(events)).toEqual(log.map(({ event_id }) => event_id))
  })

  it('does not trust a status event that contradicts the run, which was extended meanwhile', async () => {
    const first = [...eventsOf(1).slice(0, 3), statusEvent('over', 1, 0, false)]
    const extended = [...first, statusEvent('again', 1, 0, true), ...eventsOf(3).slice(3)]
    let connections = 0
    const { findAll } = await clientOf((request, response) => {
      if (isStream(request)) return sendAfter(request, response, connections++ === 0 ? first : extended)
      answer(response, findAllRun(3, 1, connections < 2))
    })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(cursors(events)).toEqual(extended.map(({ event_id }) => event_id))
  })

  it("follows a run that is over with until: 'closed', since it can be extended", async () => {
    const first = eventsOf(1)
    const extended = [...first, statusEvent('again', 1, 0, true)]
    let connections = 0
    const { findAll } = await clientOf((request, response) => {
      if (isStream(request)) return sendAfter(request, response, connections++ < 3 ? first : extended)
      answer(response, findAllRun(1, 0, false))
    })
    const all = findAll.events('f', { until: 'closed' }).pipe(take(extended.length), toArray())

    expect(cursors(await lastValueFrom(all))).toEqual(extended.map(({ event_id }) => event_id))
  })

  it('emits a heartbeat only where it changes something', async () => {
    const beats = (id: string, generated: number) =>
      ['', 'b', 'c'].map((suffix) => statusEvent(id + suffix, generated, 0, true))
    const log = [
      ...beats('0', 0),
      candidateEvent('g', 'generated', 'c1'),
      ...beats('1', 1),
      ...beats('2', 0),
      statusEvent('end', 1, 0, false),
    ]
    const { findAll } = await clientOf(service(log))

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(cursors(events)).toEqual(['0', 'g', '1', '2', 'end'])
  })

  it('moves its position with a heartbeat, so that a long quiet run resumes from a recent one', async () => {
    const log = [statusEvent('0', 0, 0, true), statusEvent('1', 0, 0, true), statusEvent('2', 0, 0, false)]
    const positions: (string | null)[] = []
    const { findAll } = await clientOf((request, response) => {
      if (!isStream(request)) return answer(response, findAllRun(0, 0, positions.length < 2))
      positions.push(queryOf(request).get('last_event_id'))
      sendAfter(request, response, positions.length === 1 ? log.slice(0, 2) : log)
    })

    await lastValueFrom(findAll.events('f'))

    expect(positions).toEqual([null, '1'])
  })

  it('backs off from a service that sends only heartbeats and closes', async () => {
    let connections = 0
    const { findAll, diagnostics } = await clientOf(
      (request, response) => {
        if (!isStream(request)) return answer(response, findAllRun(0, 0, true))
        openStream(response)
        response.end(sse(statusEvent(`beat ${connections++}`, 0, 0, true)))
      },
      { initialDelay: 1, maxDelay: 1_000, random: () => 1 },
    )
    const delays = firstValueFrom(diagnostics.pipe(take(8), toArray()))
    const subscription = findAll.events('f').subscribe()

    const waits = (await delays).map((each) => (each.kind === 'reconnect' ? each.delay : -1))
    subscription.unsubscribe()

    expect(waits.at(-1)).toBeGreaterThan(16)
  })

  it('ends the connection of a run that is over where the service keeps it open with heartbeats', async () => {
    const log = [...eventsOf(1), statusEvent('beat', 1, 0, false)]
    const { findAll } = await clientOf((request, response) => {
      if (!isStream(request)) return answer(response, findAllRun(1, 0, false))
      openStream(response)
      response.write(log.map(sse).join(''))
    })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(typesOf(events)).toEqual(['candidate.generated', 'status', 'candidate.unmatched', 'status'])
  })

  it('drops repeats, in any order, also of events with another event id', async () => {
    const log = eventsOf(2)
    const [first, , third, fourth] = log
    const repeats = [first, third, fourth && { ...fourth, event_id: 'other' }].filter(
      (event) => event !== undefined,
    )
    const repeated = [...log.slice(0, 5), ...repeats]
    const { findAll } = await clientOf(service([...repeated, ...log.slice(5)], findAllRun(2, 1, false)))

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(events.map(({ id }) => id)).toEqual(Array.from(new Set(events.map(({ id }) => id))))
    expect(typesOf(events).filter((type) => type !== 'status')).toEqual([
      'candidate.generated',
      'candidate.unmatched',
      'candidate.generated',
      'candidate.matched',
    ])
  })

  it('emits a candidate again where a later copy has the output that the first lacked', async () => {
    const output = { founded: { value: 1, type: 'match_condition' } }
    const log = [
      candidateEvent('1', 'matched', 'c1', { output: null }),
      candidateEvent('2', 'matched', 'c1', { output }),
      candidateEvent('3', 'matched', 'c1', { output: null }),
      statusEvent('end', 1, 1, false),
    ]
    const { findAll } = await clientOf(service(log))

    expect(cursors(await lastValueFrom(findAll.events('f').pipe(toArray())))).toEqual(['1', '2', 'end'])
  })

  it('errors when candidates that the run counts are missing', async () => {
    const log = eventsOf(4).filter(({ event_id }) => event_id !== 'g2' && event_id !== 'j2')
    const { findAll } = await clientOf(service(log), { patience: 20 })
    const events: FindAllEvent[] = []

    const failed = await new Promise((resolve) => {
      findAll
        .events('f')
        .subscribe({ next: (event) => events.push(event), error: resolve, complete: () => resolve('done') })
    })

    expect(failed).toBeInstanceOf(IncompleteStreamError)
    expect(failed).toMatchObject({
      missing: 1,
      expected: 4,
      message: expect.stringContaining('findAll.result'),
    })
    expect(events).toHaveLength(log.length)
  })

  it('errors when a match is missing although its candidate was generated', async () => {
    const log = eventsOf(2).filter(({ event_id }) => event_id !== 'j1')
    const { findAll } = await clientOf(service(log), { patience: 20 })

    await expect(lastValueFrom(findAll.events('f'))).rejects.toMatchObject({
      name: 'IncompleteStreamError',
      missing: 1,
    })
  })

  it('errors when the last status is missing', async () => {
    const { findAll } = await clientOf(service(eventsOf(2).slice(0, -1), findAllRun(2, 1, false)), {
      patience: 20,
    })

    await expect(lastValueFrom(findAll.events('f'))).rejects.toMatchObject({
      name: 'IncompleteStreamError',
      missing: 0,
    })
  })

  it('waits for missing candidates that come later', async () => {
    const log = eventsOf(2)
    let connections = 0
    const { findAll } = await clientOf((request, response) => {
      if (!isStream(request)) return answer(response, findAllRun(2, 1, false))
      connections += 1
      sendAfter(request, response, connections < 4 ? log.slice(0, 3) : log)
    })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(cursors(events)).toEqual(log.map(({ event_id }) => event_id))
  })

  it('reports a gap and restarts when the service rejects its position, without a candidate twice', async () => {
    const log = eventsOf(2)
    const positions: (string | null)[] = []
    const { findAll } = await clientOf((request, response) => {
      if (!isStream(request)) return answer(response, findAllRun(2, 1, false))
      const after = queryOf(request).get('last_event_id')
      positions.push(after)
      if (after === 's0') return answer(response, { detail: [] }, 422)
      if (positions.length > 1) return sendAfter(request, response, log)
      openStream(response)
      response.write(log.slice(0, 2).map(sse).join(''), () => response.destroy())
    })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(positions).toEqual([null, 's0', null])
    const types = typesOf(events)
    expect(types.filter((type) => type === 'stream.gap')).toHaveLength(1)
    expect(types.filter((type) => type.startsWith('candidate'))).toHaveLength(4)
  })

  it('completes after a gap where candidates are lost, and reads a cursor that means another event now', async () => {
    const lost = [candidateEvent('g0', 'generated', 'c1'), statusEvent('s0', 1, 0, true)]
    const left = [
      candidateEvent('g1', 'generated', 'c2'),
      statusEvent('s0', 2, 0, true),
      statusEvent('end', 3, 0, false),
    ]
    let connections = 0
    const { findAll } = await clientOf(
      (request, response) => {
        if (!isStream(request)) return answer(response, findAllRun(3, 0, false))
        connections += 1
        if (connections === 2) return answer(response, { detail: [] }, 422)
        if (connections > 2) return sendAfter(request, response, left)
        openStream(response)
        response.write(lost.map(sse).join(''), () => response.destroy())
      },
      { patience: 0 },
    )

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(typesOf(events)).toEqual([
      'candidate.generated',
      'status',
      'stream.gap',
      'candidate.generated',
      'status',
      'status',
    ])
  })

  it("errors when the service rejects the caller's own position", async () => {
    const { findAll } = await clientOf((_, response) => answer(response, { detail: [] }, 422))

    await expect(lastValueFrom(findAll.events('f', { last_event_id: 'x' }))).rejects.toMatchObject({
      status: 422,
    })
  })

  it('goes on after 429 and 503', async () => {
    const statuses = [429, 503]
    const respond = service(eventsOf(1))
    const { findAll } = await clientOf((request, response) => {
      const status = statuses.shift()
      if (status === undefined) return respond(request, response)
      answer(response, { type: 'error', error: { ref_id: 'r', message: 'later' } }, status)
    })

    await expect(lastValueFrom(findAll.events('f').pipe(toArray()))).resolves.toHaveLength(4)
  })

  it.each([
    ['an unknown type', { type: 'findall.other', event_id: '1', data: {} }],
    ['no data', { type: 'findall.candidate.matched', event_id: '1', data: null }],
    ['a candidate without an id', { type: 'findall.candidate.matched', event_id: '1', data: { name: 'x' } }],
    ['a status that is null', { type: 'findall.status', event_id: '1', data: { status: null } }],
    ['no type', { type: 'message', event_id: '1' }],
  ])('passes on an event with %s as unknown', async (_, odd) => {
    const { findAll } = await clientOf(service([odd, ...eventsOf(1)]))

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(events[0]).toMatchObject({ type: 'unknown', data: odd })
    expect(events).toHaveLength(5)
  })

  it('passes on the errors of a run, which have no event id, once', async () => {
    const error = { type: 'error', error: { ref_id: 'r', message: 'slow' } }
    const { findAll } = await clientOf(service([error, error, ...eventsOf(1)]))

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(typesOf(events)).toEqual([
      'error',
      'candidate.generated',
      'status',
      'candidate.unmatched',
      'status',
    ])
  })

  it.each([
    ['null', null],
    ['no object', 5],
    ['counts that are null', { generated_candidates_count: null, matched_candidates_count: null }],
  ])('is done with the last status where its metrics are %s', async (_, metrics) => {
    const status = { status: 'completed', is_active: false, metrics }
    const run = { ...findAllRun(0, 0, false), status }
    const end = { type: 'findall.status', event_id: 'e', timestamp: '', data: run }
    const { findAll } = await clientOf(service([candidateEvent('1', 'matched', 'c1'), end]))

    await expect(lastValueFrom(findAll.events('f').pipe(toArray()))).resolves.toHaveLength(2)
  })

  it('is done with the last status event where the service lacks the run itself', async () => {
    const log = eventsOf(1)
    const { findAll } = await clientOf((request, response) => {
      if (isStream(request)) sendAfter(request, response, log)
      else answer(response, { type: 'error', error: { ref_id: 'r', message: 'none' } }, 404)
    })

    await expect(lastValueFrom(findAll.events('f').pipe(toArray()))).resolves.toHaveLength(log.length)
  })

  it('skips an event that is too long, and does not count it as missing', async () => {
    const long = candidateEvent('g1', 'generated', 'c2', { description: 'x'.repeat(5_000) })
    const [generated, , , , , , end] = eventsOf(2)
    const judged = [generated, long, end].filter((event) => event !== undefined)
    const { findAll } = await clientOf(service(judged), { maxEventLength: 2_000, patience: 1 })

    const events = await lastValueFrom(findAll.events('f').pipe(toArray()))

    expect(typesOf(events)).toContain('stream.oversized')
  })

  it('errors after five wrong answers in a row', async () => {
    let requests = 0
    const { findAll } = await clientOf((_, response) => {
      requests += 1
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>proxy')
    })

    await expect(lastValueFrom(findAll.events('f'))).rejects.toMatchObject({ name: 'ProtocolError' })
    expect(requests).toBe(5)
  })

  it('errors at once for a run that the service does not know', async () => {
    const { findAll } = await clientOf((_, response) => answer(response, { detail: 'none' }, 404))

    await expect(lastValueFrom(findAll.events('f'))).rejects.toMatchObject({ name: 'NotFoundError' })
  })

  it.each<[string, string, object]>([
    ['an empty id', '', {}],
    ['a timeout of 0', 'f', { timeout: 0 }],
    ['an unknown option', 'f', { cursor: 'x' }],
  ])('refuses %s at the call', async (_, id, options) => {
    const { findAll } = createClient({ apiKey: 'key', baseUrl: 'http://127.0.0.1:1' })

    expect(() => findAll.events(id, options)).toThrow(/timeout|findAllId|cursor/)
  })
})
