import type { IncomingMessage, ServerResponse } from 'node:http'
import * as fc from 'fast-check'
import { createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { lastValueFrom, toArray } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { entriesOf } from '../../log/entries.ts'
import { answer, openStream, queryOf, serve, sse } from '../../support/serve.ts'

/** How a connection ends: dropped, closed, or closed within an event. */
const anyEnd = fc.constantFrom('cut', 'close', 'torn')

/** What one connection sends before it ends. */
interface Connection {
  /** Earlier events that it sends first, each an index modulo the number of sent events. */
  readonly repeats: readonly number[]
  /** New events that it sends after them. */
  readonly sends: number
  /** Whether it repeats an event after the new ones. */
  readonly repeatsLast: boolean
  readonly ends: 'cut' | 'close' | 'torn'
}

const connection: fc.Arbitrary<Connection> = fc.record({
  repeats: fc.oneof(
    { weight: 1, arbitrary: fc.constant<number[]>([]) },
    { weight: 2, arbitrary: fc.array(fc.nat(20), { maxLength: 6 }) },
  ),
  sends: fc.oneof(
    { weight: 1, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 4 }) },
  ),
  repeatsLast: fc.boolean(),
  ends: anyEnd,
})

interface Wire {
  readonly type: string
  readonly event_id: string
  readonly run?: object
  readonly status?: object
}

function runEvent(n: number): Wire {
  const run = { run_id: `run_${n}`, status: 'completed', is_active: false, processor: 'base' }
  return { type: 'task_run.state', event_id: `at ${n}`, run }
}

function statusEvent(name: string, runs: number, ended: number): Wire {
  return { type: 'task_group_status', event_id: name, status: statusOf(runs, ended) }
}

function statusOf(runs: number, ended: number) {
  return {
    num_task_runs: runs,
    task_run_status_counts: { completed: ended, running: runs - ended },
    is_active: ended < runs,
    status_message: '',
    modified_at: '2026-01-01T00:00:00Z',
  }
}

/** The events of a group's stream with this many runs, all ended. */
function logOf(stream: 'events' | 'runs', runs: number): readonly Wire[] {
  const numbers = Array.from({ length: runs }, (_, n) => n + 1)
  if (stream === 'runs') return numbers.map(runEvent)
  const middle = numbers.flatMap((n) => [runEvent(n), statusEvent(`status ${n}`, runs, n)])
  return [statusEvent('status 0', runs, 0), ...middle]
}

/**
 * A group's service that follows a script, connection by connection, and then sends all events after the position. New events
 * come in order, repeated ones in any order.
 */
function listener(log: readonly Wire[], runs: number, script: readonly Connection[]) {
  let connections = 0
  return (request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').split('?')[0] ?? ''
    if (!/\/(events|runs)$/.test(path)) {
      return answer(response, { taskgroup_id: 'g', status: statusOf(runs, runs), created_at: 'c' })
    }
    const step = script[connections++]
    const after = queryOf(request).get('last_event_id')
    const from = log.findIndex(({ event_id }) => event_id === after) + 1
    const { repeats = [], sends = log.length, repeatsLast = false, ends = 'close' } = step ?? {}
    const earlier = from === 0 ? [] : repeats.map((n) => log[n % from])
    const fresh = log.slice(from, from + sends)
    const last = repeatsLast && from > 0 ? [log[0]] : []
    const events = [...earlier, ...fresh, ...last].flatMap((event) =>
      event === undefined ? [] : [sse(event)],
    )
    openStream(response)
    if (ends === 'close') return response.end(events.join(''))
    const next = log[from + sends]
    const torn = ends === 'torn' && next !== undefined ? sse(next).slice(0, -1) : ''
    if (ends === 'torn') return response.end(events.join('') + torn)
    response.write(`${events.join('')}:\n\n`, () => response.destroy())
  }
}

const settings = { apiKey: 'key', initialDelay: 0 } as const

describe.each(['events', 'runs'] as const)(
  'the stream of %s of a service that repeats events and breaks connections',
  (stream) => {
    it('emits every event before it completes', async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 1, max: 8 }),
          fc.array(connection, { maxLength: 8 }),
          async (runs, script) => {
            const log = logOf(stream, runs)
            const baseUrl = await serve(listener(log, runs, script))
            const client = createClient({ ...settings, baseUrl })

            const events = await lastValueFrom(client.taskGroups[stream]('g').pipe(toArray()))

            const emitted = new Set(events.map(({ cursor }) => cursor))
            expect(log.filter(({ event_id }) => !emitted.has(event_id))).toEqual([])
            expect(events.filter(({ type }) => type === 'stream.gap')).toEqual([])
          },
        ),
        { numRuns: 300, interruptAfterTimeLimit: 12_000 },
      )
    })
  },
)

describe('log.record over a service that repeats events and breaks connections', () => {
  it('has every run recorded once before it is done, over restarts too', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(connection, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 4 }),
        async (runs, script, lives) => {
          const runsListener = listener(logOf('runs', runs), runs, script)
          const eventsListener = listener(logOf('events', runs), runs, [])
          const baseUrl = await serve((request, response) =>
            request.url?.includes('/events')
              ? eventsListener(request, response)
              : runsListener(request, response),
          )
          const root = memoryStore()
          const ends: string[] = []
          for (const events of [...lives, Infinity]) {
            const store = root.connect()
            const append = store.append.bind(store)
            let recorded = 0
            // A process that is killed once it has recorded this many events.
            store.append = async (appends, ...rest) => {
              if (recorded >= events) throw new Error('killed')
              const appended = await append(appends, ...rest)
              recorded += appends.flatMap(({ entries }) => entries).length
              return appended
            }
            const log = await openLog(store)
            const client = createClient({ ...settings, baseUrl })
            const recording = log.record({ client, taskGroups: ['g'] })
            const [end] = await Promise.allSettled([recording.done])
            ends.push(end.status)
            await log.close()
          }

          expect(ends.at(-1)).toBe('fulfilled')
          await using log = await openLog(root.connect())
          const runIds = Array.from({ length: runs }, (_, n) => `run_${n + 1}:completed`)
          const entries = await entriesOf(log)
          const recorded = entries.filter(({ type }) => type === 'task_run.state')
          expect(recorded.map(({ id }) => id)).toEqual(runIds)
        },
      ),
      { numRuns: 150, interruptAfterTimeLimit: 12_000 },
    )
  })
})
