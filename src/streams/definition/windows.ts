import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkObject } from '../../protocol/check.ts'
import { MAX_DURATION, parseDuration } from '../../protocol/duration.ts'

/** A time span: text such as `90s`, `5m` or `1h30m`, or a number of ms. */
export type TimeSpan = string | number

/** Maximum number of windows of one event. */
const MAX_OVERLAP = 1_000

const DAY = 86_400_000

/** Windows of one length, from each multiple of `every`. */
export interface FixedWindows {
  readonly kind: 'tumbling' | 'hopping'
  /** Length of a window, in ms. */
  readonly size: number
  /** Time between the starts of two windows, in ms. */
  readonly every: number
}

/** A window for each run of events without a longer pause. */
export interface SessionWindows {
  readonly kind: 'session'
  /** The pause that ends a session, in ms. */
  readonly gap: number
}

/** How the time of a key is divided. */
export type Windows = FixedWindows | SessionWindows

/**
 * Windows that follow each other without gaps. They begin at multiples of their length since 1970 (UTC), include their start and exclude
 * their end.
 *
 *     events:    -a-b-|--c-d-|
 *     windows:   [ab ][ cd   ]
 *
 * ```ts
 * import { aggregate, count, define, from, keyBy, tumbling } from 'rivulet/streams'
 *
 * define(
 *   'changes',
 *   { version: 1 },
 *   from('monitor.event_stream').pipe(
 *     keyBy(({ source }) => source),
 *     aggregate('per-hour', tumbling('1h'), { changes: count() }),
 *   ),
 * )
 * ```
 *
 * @param size Length of a window, from 1 ms to 366 days.
 * @throws ArgumentError for an invalid time span.
 */
export function tumbling(size: TimeSpan): Windows {
  const length = spanOf('size', size)
  return { kind: 'tumbling', size: length, every: length }
}

/**
 * Windows that overlap: one of `size` begins at each multiple of `every` since 1970 (UTC). An event is in all that contain its time, at most
 * 1,000.
 *
 *     events:    -a-b---c--|
 *     windows:   [ab  ]
 *                   [b c  ]
 *                      [c   ]
 *
 * ```ts
 * import { aggregate, average, define, from, hopping, keyBy } from 'rivulet/streams'
 *
 * define(
 *   'sizes',
 *   { version: 1 },
 *   from('monitor.event_stream').pipe(
 *     keyBy(({ source }) => source),
 *     aggregate('last-hour', hopping('1h', '5m'), { sources: average(({ data }) => data.output.basis?.length) }),
 *   ),
 * )
 * ```
 *
 * @param size Length of a window, from 1 ms to 366 days.
 * @param every Time between the starts of two windows, at most `size`.
 * @throws ArgumentError for an invalid time span.
 */
export function hopping(size: TimeSpan, every: TimeSpan): Windows {
  const [length, step] = [spanOf('size', size), spanOf('every', every)]
  if (step > length)
    throw new ArgumentError('every', 'at most `size`: events between two windows would be lost', every)
  if (length / step > MAX_OVERLAP) {
    throw new ArgumentError(
      'every',
      `at least a ${MAX_OVERLAP}th of \`size\`: an event is in at most so many windows`,
      every,
    )
  }
  return { kind: 'hopping', size: length, every: step }
}

/**
 * A window for each run of events that follow each other within less than `gap`. It begins with its first event, and ends `gap` after the last one.
 * An event between two sessions makes them one.
 *
 *     events:    -a-b-------c-|
 *     windows:    [ab  ]    [c   ]
 *
 * ```ts
 * import { aggregate, count, define, from, keyBy, session } from 'rivulet/streams'
 *
 * define(
 *   'visits',
 *   { version: 1 },
 *   from('gateway.search').pipe(
 *     keyBy(({ data }) => data.sub),
 *     aggregate('visit', session('30m'), { searches: count() }),
 *   ),
 * )
 * ```
 *
 * @param gap The pause that ends a session, from 1 ms to 366 days.
 * @throws ArgumentError for an invalid time span.
 */
export function session(gap: TimeSpan): Windows {
  return { kind: 'session', gap: spanOf('gap', gap) }
}

/** The windows as `tumbling`, `hopping` and `session` make them. @throws ArgumentError for others: they may be an object of the caller. */
export function checkedWindows(windows: Windows): Windows {
  checkObject('windows', windows)
  if (windows.kind === 'session') return session(windows.gap)
  if (windows.kind === 'tumbling') return tumbling(windows.size)
  if (windows.kind === 'hopping') return hopping(windows.size, windows.every)
  throw new ArgumentError('windows', 'what `tumbling`, `hopping` or `session` makes', windows)
}

/** The time span in ms. @throws ArgumentError for one that is malformed, 0 or too long. */
export function spanOf(argument: string, given: unknown, least = 1): number {
  const span = typeof given === 'string' || typeof given === 'number' ? parseDuration(given) : undefined
  if (span !== undefined && span >= least && span <= MAX_DURATION) return span
  throw new ArgumentError(argument, `a time span from ${least} ms to 366 days, such as '5m' or 300000`, given)
}

/** The starts of the windows that contain a time, in Unix ms, the latest first. */
export function startsOf({ size, every }: FixedWindows, at: number): readonly number[] {
  const starts: number[] = []
  for (let start = Math.floor(at / every) * every; start > at - size; start -= every) starts.push(start)
  return starts
}

/** Whether each window consists of whole days (UTC), so that an event of a whole day has its place in them. */
export function areWholeDays(windows: Windows): boolean {
  return windows.kind !== 'session' && windows.size % DAY === 0 && windows.every % DAY === 0
}
