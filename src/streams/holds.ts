import { hash, hashString } from '../protocol/identity-hash.ts'
import { isObject } from '../protocol/json.ts'

/** Maximum number of sources that are held at once: 1 % of 100,000 streams. A checkpoint has room for them. */
const MAX_HOLDS = 1_000

/** A source that is behind the watermark, from `source.behind` to `source.caught_up`. */
export interface Hold {
  /** The time up to which its events have come, in Unix ms. */
  readonly through: number
  /** When it is no longer waited for, by the clock `recorded`; `Infinity` for never. */
  readonly until: number
  /** Set if the source has caught up, and other processes may not have. The hold ends once they have passed this time, in Unix ms. */
  readonly leaves?: number
}

/** The sources that are behind, by {@link sourceKey}. */
export type Holds = ReadonlyMap<string, Hold>

/** No source is behind. */
export const NO_HOLDS: Holds = new Map()

/** A short text for a source: the checkpoint of a process may have a thousand of them. */
export function sourceKey(source: string): string {
  hashString(source)
  const [high = 0, low = 0] = hash
  return [high, low].map((word) => (word >>> 0).toString(36)).join('.')
}

/** Whether the source is still waited for at this time of recording. */
export function isAwaited({ until }: Hold, recorded: number): boolean {
  return recorded < until
}

/**
 * The holds after an entry of a log.
 *
 * @param watermark The time up to which all events have come before the entry, in Unix ms. A hold does not set it back.
 */
export function holdsAfter(
  holds: Holds,
  { type, source, data }: { readonly type: string; readonly source: string; readonly data: unknown },
  watermark: number,
): Holds {
  if (type === 'source.caught_up') return without(holds, sourceKey(source))
  // What has ended them may be among the entries that were deleted.
  if (type === 'log.gap') return NO_HOLDS
  if (type !== 'source.behind' || !isObject(data)) return holds
  const key = sourceKey(source)
  if (holds.size >= MAX_HOLDS && !holds.has(key)) return holds
  const through = Math.max(timeIn(data['through'], -Infinity), watermark)
  const until = timeIn(data['until'], Infinity)
  return new Map(holds).set(key, { through, until })
}

/**
 * The holds after a source has caught up, for a process that comes after others: their output because of the source is still to come.
 *
 * @param leaves The time that the others have to pass, in Unix ms.
 */
export function leaving(holds: Holds, source: string, leaves: number): Holds {
  const key = sourceKey(source)
  const hold = holds.get(key)
  if (hold === undefined || !Number.isFinite(leaves)) return without(holds, key)
  return new Map(holds).set(key, { through: hold.through, until: Infinity, leaves })
}

/**
 * The holds without those that end because other processes have passed their time.
 *
 * @param through The time up to which all of them have come, in Unix ms.
 */
export function holdsPast(holds: Holds, through: number): Holds {
  let left = holds
  for (const [key, { leaves = Infinity }] of holds) if (leaves < through) left = without(left, key)
  return left
}

function without(holds: Holds, key: string): Holds {
  if (!holds.has(key)) return holds
  const left = new Map(holds)
  left.delete(key)
  return left
}

/** The holds as a text. */
export function holdsText(holds: Holds): string {
  return Array.from(holds, ([key, { through, until, leaves = NaN }]) =>
    [key, ...[through, until, leaves].map(timeText)].join(':'),
  ).join(' ')
}

/** Reads the text of {@link holdsText}. */
export function holdsOf(text: unknown): Holds {
  if (typeof text !== 'string' || text === '') return NO_HOLDS
  return new Map(
    text.split(' ').map((each) => {
      const [key = '', through = '', until = '', leaves = ''] = each.split(':')
      const hold = { through: timeOf(through, -Infinity), until: timeOf(until, Infinity) }
      return [key, leaves === '' ? hold : { ...hold, leaves: timeOf(leaves, Infinity) }]
    }),
  )
}

function timeIn(value: unknown, unknown: number): number {
  const time = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isNaN(time) ? unknown : time
}

function timeText(time: number): string {
  return Number.isFinite(time) ? Math.floor(time).toString(36) : ''
}

function timeOf(text: string, unknown: number): number {
  const time = Number.parseInt(text, 36)
  return Number.isNaN(time) ? unknown : time
}
