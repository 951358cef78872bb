import type { ResearchEvent } from 'rivulet'
import { aggregate, collect, count, define, from, keyBy, map, sum, testStream } from 'rivulet/streams'
import type { DefinitionOptions, TestEvent, Windows } from 'rivulet/streams'
import type { Reading } from './reference.ts'

/** The begin of time in the tests, in Unix ms: the start of a day. */
export const T = Date.parse('2026-01-01T00:00:00Z')

/** So many seconds after the begin, in Unix ms. */
export const at = (seconds: number) => T + seconds * 1_000

/** An event, some seconds after the begin, whose number is these seconds if none is given. */
export function reading(
  seconds: number,
  { number = seconds, key = 'a', ...rest }: Partial<Reading> & EventFields = {},
): TestEvent {
  return { type: 'unknown', time: at(seconds), data: { key, number }, ...rest }
}

type EventFields = Pick<TestEvent, 'time' | 'recorded' | 'revision' | 'backfill' | 'id' | 'source'>

/** The readings of a stream. Tests declare no type of their own: it would be one for all programs of the tests. */
export const fromReadings = () => from('unknown').pipe(map(({ data }) => data as Reading))

/** A definition of one stage over readings, which counts, adds and collects them. */
export function readings(windows: Windows, options: Partial<DefinitionOptions> = {}) {
  return define(
    'readings',
    { version: 1, ...options },
    fromReadings().pipe(
      keyBy(({ key }) => key),
      aggregate('windows', windows, {
        events: count(),
        sum: sum(({ number }) => number),
        all: collect(({ number }) => number),
      }),
    ),
  )
}

/** The driver of {@link readings}. */
export const testOf = (windows: Windows, options?: Partial<DefinitionOptions>) =>
  testStream(readings(windows, options))

/** What is emitted, short: the key, the window in seconds after the begin, and the numbers in it, or the number of dropped events. */
export function short(events: readonly Pick<ResearchEvent, 'type' | 'data'>[]): readonly string[] {
  return events.map(({ type, data }) => {
    const { key, start, end, values, reason, count: dropped } = data as ShortData
    const span = `${key} ${secondsOf(start)}-${secondsOf(end)}`
    return type === 'window.result' ? `${span}: ${values?.all.join(' ')}` : `${span} ${reason}: ${dropped}`
  })
}

interface ShortData {
  readonly key: string
  readonly start: string
  readonly end: string
  readonly values?: { readonly all: readonly (number | null)[] }
  readonly reason?: string
  readonly count?: number
}

function secondsOf(text: string): number {
  return (Date.parse(text) - T) / 1_000
}
