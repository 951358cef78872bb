import type { IncomingMessage, ServerResponse } from 'node:http'
import * as fc from 'fast-check'
import { createClient } from 'rivulet'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { answer, openStream, queryOf, serve, sse } from '../../support/serve.ts'
import { endOf, eventsOf, isStream, statusEvent } from './find-all-log.ts'
import type { Wire } from './find-all-log.ts'

/** What one connection sends before it ends. */
interface Connection {
  /** Earlier events that it sends first, each an index modulo the number of sent events. */
  readonly repeats: readonly number[]
  /** New events that it sends after them. */
  readonly sends: number
  /** Whether it repeats the last status after them, as a heartbeat. */
  readonly beats: boolean
  readonly ends: 'cut' | 'close' | 'torn' | 'rejected' | 'busy'
}

const connection: fc.Arbitrary<Connection> = fc.record({
  repeats: fc.array(fc.nat(20), { maxLength: 6 }),
  sends: fc.nat(4),
  beats: fc.boolean(),
  ends: fc.constantFrom('cut', 'close', 'torn', 'rejected', 'busy'),
})

/** A service that follows a script, connection by connection, and then sends all events after the position. */
function listener(log: readonly Wire[], script: readonly Connection[]) {
  let connections = 0
  return (request: IncomingMessage, response: ServerResponse) => {
    if (!isStream(request)) return answer(response, endOf(log))
    const number = connections++
    const { repeats = [], sends = log.length, beats = false, ends = 'close' } = script[number] ?? {}
    const after = queryOf(request).get('last_event_id')
    if (ends === 'rejected' && after !== null) return answer(response, { detail: [] }, 422)
    if (ends === 'busy') return answer(response, { error: { ref_id: 'r', message: 'busy' } }, 429)
    // A heartbeat has the position of the event before it.
    const at = after?.replace(/ beat \d+$/, '')
    const from = log.findIndex(({ event_id }) => event_id === at) + 1
    const earlier = from === 0 ? [] : repeats.flatMap((n) => log[n % from] ?? [])
    const fresh = log.slice(from, from + sends)
    const until = log.slice(0, from + sends)
    const state = until.findLast(({ type }) => type === 'findall.status')
    const last = until.at(-1)?.event_id
    const beat = beats && state !== undefined ? [{ ...state, event_id: `${last ?? ''} beat ${number}` }] : []
    const text = [...earlier, ...fresh, ...beat].map(sse).join('')
    openStream(response)
    if (ends === 'cut') return response.write(`${text}:\n\n`, () => response.destroy())
    const next = log[from + sends]
    response.end(ends === 'torn' && next !== undefined ? text + sse(next).slice(0, -1) : text)
  }
}

const settings = { apiKey: 'key', initialDelay: 0, maxDelay: 1, patience: 20 } as const

describe('the stream of a FindAll run whose service repeats events, breaks connections and rejects positions', () => {
  it('emits every candidate change once, and no status twice in a row, before it completes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(6), fc.array(connection, { maxLength: 8 }), async (candidates, script) => {
        const log = [statusEvent('begin', 0, 0, true), ...eventsOf(candidates)]
        const baseUrl = await serve(listener(log, script))
        const client = createClient({ ...settings, baseUrl })

        const events = await lastValueFrom(client.findAll.events('f').pipe(toArray()))

        const changes = events.filter(({ type }) => type.startsWith('findall.candidate'))
        const expected = log.filter(({ type }) => type.startsWith('findall.candidate'))
        expect(changes.map(({ cursor }) => cursor)).toEqual(expected.map(({ event_id }) => event_id))
        const statuses = events.filter(({ type }) => type === 'findall.status')
        expect(statuses.filter(({ id }, n) => id === statuses[n - 1]?.id)).toEqual([])
        expect(statuses.at(-1)?.data).toMatchObject({ data: endOf(log) })
      }),
      {
        numRuns: 150,
        interruptAfterTimeLimit: 10_000,
        examples: [
          // The first status comes again after a rejected position, and once more after the last status.
          [
            0,
            [
              { repeats: [], sends: 1, beats: false, ends: 'cut' },
              { repeats: [], sends: 0, beats: false, ends: 'rejected' },
              { repeats: [], sends: 2, beats: false, ends: 'cut' },
              { repeats: [0], sends: 0, beats: false, ends: 'cut' },
            ],
          ],
        ],
      },
    )
  })
})
