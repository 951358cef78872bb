import { checkOptions } from '../../protocol/check.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import type { EventOf, ResearchEvent, ResearchEventData, ResearchEventType } from '../../protocol/event.ts'
import { tickEvent } from '../../protocol/log-event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import { MemoryProcess } from '../memory-process.ts'
import type { ProcessError } from '../process-error.ts'
import { FUNCTION_DEFAULTS } from '../process-functions.ts'
import type { StreamEntry } from '../process-functions.ts'
import { asInLog } from '../representation.ts'
import { Definition } from './define.ts'
import type { ResultEvent } from './define.ts'

/** An event of a test. What is left out has a default. */
export type TestEvent = {
  [Type in ResearchEventType]: {
    readonly type: Type
    readonly data: ResearchEventData[Type]
    /** When it happened: RFC 3339, or Unix ms; null if the event has no time. Default: the watermark, or 1970 before the first tick. */
    readonly time?: string | number | null
    /** Default `/test`. */
    readonly source?: string
    /** Default: a number that counts the events. */
    readonly id?: string
    /** When it came, in Unix ms. Default: its time, and not before the event or the tick before it. */
    readonly recorded?: number
    /** Default 1. */
    readonly revision?: number
    /** Whether it comes from a first walk into the past of its source. Default false. */
    readonly backfill?: boolean
  }
}[ResearchEventType]

/** What a definition emits. */
type Output<Result> = ResultEvent<Result> | EventOf<'stage.dropped'>

const EVENT_FIELDS = ['type', 'data', 'time', 'source', 'id', 'recorded', 'revision', 'backfill']

/** Runs a definition step by step, with times that the test sets. Made by {@link testStream}. */
export interface StreamTest<Result> {
  /**
   * Takes events, in this order. Returns what they make the definition emit.
   *
   * @throws ProcessError if a function of the definition throws.
   */
  send(...events: readonly TestEvent[]): readonly Output<Result>[]
  /**
   * All events up to this time have come: the watermark is so far, less `lateness`. Returns what this makes the definition emit.
   *
   * @param through RFC 3339, or Unix ms.
   * @param complete Whether nothing is missing, as in `log.tick`. Default true.
   */
  tick(through: string | number, complete?: boolean): readonly Output<Result>[]
  /** No more events come: all windows end. Returns what this makes the definition emit. */
  end(): readonly Output<Result>[]
  /** What the definition has emitted so far. */
  readonly outputs: readonly Output<Result>[]
  /** The watermark, in Unix ms; null before the first tick. */
  readonly watermark: number | null
  /** The rows of state by their keys, as JSON values. */
  readonly state: ReadonlyMap<string, unknown>
}

/**
 * Runs a definition without a log and without waiting, for tests: events with times go in, results come out.
 *
 * ```ts
 * import { aggregate, count, define, from, keyBy, testStream, tumbling } from 'rivulet/streams'
 *
 * const errors = define(
 *   'errors',
 *   { version: 1 },
 *   from('monitor.error').pipe(
 *     keyBy(({ source }) => source),
 *     aggregate('per-minute', tumbling('1m'), { errors: count() }),
 *   ),
 * )
 * const test = testStream(errors)
 * const data = { type: 'error', error_message: 'timeout', timestamp: '2026-01-01T00:00:20Z' } as const
 * test.send({ type: 'monitor.error', time: data.timestamp, data })
 * const [result] = test.tick('2026-01-01T00:01:00Z')
 * console.log(result?.data) // { stage: 'per-minute', key: '/test', …, values: { errors: 1 } }
 * ```
 */
export function testStream<Result>(definition: Definition<Result>): StreamTest<Result> {
  if (!(definition instanceof Definition))
    throw new ArgumentError('definition', 'what `define` makes', definition)
  const { name, functions, reads } = definition
  const process = new MemoryProcess<unknown, StreamEntry, string, ResearchEvent>({
    name,
    functions: { ...FUNCTION_DEFAULTS, ...functions, reads },
    representation: asInLog(),
    maxKeys: Infinity,
    full: () => {},
    failed: (error: ProcessError) => {
      throw error
    },
  })
  const outputs: Output<Result>[] = []
  let recorded = 0
  let count = 0
  const taken = (events: readonly ResearchEvent[]) => {
    const ours = events.filter(
      (event): event is ResearchEvent & Output<Result> => event.cause?.process === name,
    )
    outputs.push(...ours)
    return ours
  }
  const next = (event: ResearchEvent, at: number, rest: Pick<StreamEntry, 'revision' | 'backfill'>) => {
    recorded = Math.max(recorded, at)
    return process.next({ ...event, received: rfc3339(recorded), recorded, ...rest })
  }
  return {
    outputs,
    send: (...events) =>
      taken(
        events.flatMap((event) => {
          checkOptions('event', event, EVENT_FIELDS)
          count += 1
          const { type, data, source = '/test', id = String(count), revision = 1, backfill = false } = event
          const { time: given = Math.max(process.watermark, 0) } = event
          const own = given === null ? null : timeOf('time', given)
          const time = typeof given === 'number' ? rfc3339(given) : given
          const at = timeOf('recorded', event.recorded ?? own ?? recorded)
          // `type` and `data` belong together by the type of the argument.
          const whole = { id, source, type, time, data, received: '', via: 'app' } as ResearchEvent
          return next(whole, at, { revision, backfill })
        }),
      ),
    tick(through, complete = true) {
      const at = timeOf('through', through)
      count += 1
      return taken(
        next(tickEvent(count, Math.max(at, recorded), { through: at, complete }), at, {
          revision: 1,
          backfill: false,
        }),
      )
    },
    end: () => taken(process.end()),
    get watermark() {
      return Number.isFinite(process.watermark) ? process.watermark : null
    },
    get state() {
      return new Map(Array.from(process.states, ([key, json]) => [key, JSON.parse(json)]))
    },
  }
}

/** The greatest time that a Date has, in Unix ms. */
const MAX_TIME = 8.64e15

/** A time in Unix ms. @throws ArgumentError for what is none. */
function timeOf(argument: string, time: string | number): number {
  const at = typeof time === 'string' ? Date.parse(time) : time
  if (typeof at === 'number' && Math.abs(at) <= MAX_TIME) return at
  throw new ArgumentError(argument, 'an RFC 3339 time or Unix time in ms', time)
}
