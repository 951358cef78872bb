import { setImmediate as turn } from 'node:timers/promises'
import * as rx from 'rxjs'
import type { Observable, OperatorFunction } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { deliver, ofType, keepPosition } from 'rivulet/operators'
import { openLog } from 'rivulet/log'
import type { Entry } from 'rivulet/log'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

const ENTRIES = 60
const MAX_UNACKNOWLEDGED = 8

type Between = (scheduler: rx.VirtualTimeScheduler) => OperatorFunction<Entry, unknown>

/** An operator between a consumer and `deliver`, and how the pipeline ends in its first life. */
const OPERATORS: readonly (readonly [
  name: string,
  ends: 'runs' | 'stalls' | 'is refused',
  between: Between,
])[] = [
  ['tap', 'runs', () => rx.tap(() => {})],
  ['map with the position kept', 'runs', () => rx.map((entry) => keepPosition(entry, { id: entry.id }))],
  ['map with a copy', 'runs', () => rx.map((entry) => ({ ...entry, more: true }))],
  ['map without the position', 'is refused', () => rx.map(({ id }) => ({ id }))],
  ['materialize', 'is refused', () => rx.materialize()],
  ['ofType', 'runs', () => ofType('monitor.event_stream')],
  ['filter', 'stalls', () => rx.filter(({ id }) => Number(id) % 3 === 0)],
  ['skip', 'stalls', () => rx.skip(3)],
  ['take', 'runs', () => rx.take(5)],
  ['first', 'runs', () => rx.first()],
  ['ignoreElements', 'stalls', () => rx.ignoreElements()],
  ['distinct', 'stalls', () => rx.distinct(({ type }) => type)],
  ['distinctUntilChanged', 'stalls', () => rx.distinctUntilKeyChanged('type')],
  ['throttleTime', 'stalls', (scheduler) => rx.throttleTime(10, scheduler)],
  ['debounceTime', 'stalls', (scheduler) => rx.debounceTime(10, scheduler)],
  ['auditTime', 'stalls', (scheduler) => rx.auditTime(10, scheduler)],
  ['sampleTime', 'stalls', (scheduler) => rx.sampleTime(10, scheduler)],
  ['delay', 'runs', (scheduler) => rx.delay(10, scheduler)],
  ['delayWhen', 'runs', (scheduler) => rx.delayWhen(({ id }) => rx.timer(Number(id) % 7, scheduler))],
  ['observeOn', 'runs', () => rx.observeOn(rx.asapScheduler)],
  ['subscribeOn', 'runs', () => rx.subscribeOn(rx.asapScheduler)],
  ['bufferCount', 'runs', () => rx.bufferCount(4)],
  ['bufferCount with gaps', 'stalls', () => rx.bufferCount(2, 3)],
  ['bufferTime', 'runs', (scheduler) => rx.bufferTime(10, scheduler)],
  [
    'windowCount',
    'runs',
    () => (source) =>
      source.pipe(
        rx.windowCount(4),
        rx.mergeMap((window) => window.pipe(rx.toArray())),
      ),
  ],
  ['toArray', 'stalls', () => rx.toArray()],
  ['scan', 'runs', () => rx.scan((all: Entry[], entry) => [...all.slice(-5), entry], [])],
  ['pairwise', 'runs', () => rx.pairwise()],
  ['mergeMap', 'runs', () => rx.mergeMap(async (entry) => entry)],
  [
    'mergeMap of some',
    'runs',
    () => rx.mergeMap((entry) => (Number(entry.id) % 9 === 0 ? later(entry) : rx.of(entry))),
  ],
  ['mergeMap with a limit', 'runs', () => rx.mergeMap(later, 2)],
  ['concatMap', 'runs', () => rx.concatMap(later)],
  ['switchMap', 'stalls', () => rx.switchMap(later)],
  ['exhaustMap', 'stalls', () => rx.exhaustMap(later)],
  [
    'groupBy',
    'runs',
    () => (source) =>
      source.pipe(
        rx.groupBy(({ id }) => id.length),
        rx.mergeMap((group) => group.pipe(rx.map((entry) => entry))),
      ),
  ],
  ['share', 'runs', () => rx.share()],
  ['shareReplay', 'runs', () => rx.shareReplay(1)],
  ['connect', 'runs', () => rx.connect((shared) => shared)],
  ['endWith', 'runs', () => rx.endWith({ id: 'none' })],
  ['mergeWith', 'is refused', () => rx.mergeWith(later({ id: 'none' }))],
  ['withLatestFrom', 'is refused', () => rx.withLatestFrom(rx.of(1))],
  ['combineLatestWith', 'is refused', () => rx.combineLatestWith(rx.of(1))],
  ['timeout', 'runs', (scheduler) => rx.timeout({ each: 1e9, scheduler })],
  ['retry', 'runs', () => rx.retry(2)],
  ['catchError', 'runs', () => rx.catchError(() => rx.EMPTY)],
]

/** The entry in a later turn of the event loop. */
function later<T>(entry: T): Observable<T> {
  return rx.from(turn(entry))
}

const idsOf = (value: unknown): string[] =>
  (Array.isArray(value) ? value : [value]).flatMap((each: Partial<Entry>) => each.id ?? [])

describe.each(OPERATORS)('%s between a consumer and deliver', (_, ends, between) => {
  it(`${ends}, and after a restart every entry was handled or comes again`, async () => {
    const store = simulatedStore()
    const ids = Array.from({ length: ENTRIES }, (_entry, n) => `${n + 1}`)
    await append(
      store,
      ids.map((id) => change(id)),
    )
    const scheduler = new rx.VirtualTimeScheduler(undefined, 0)
    const log = await openLog(store)
    const handled = new Set<string>()
    let emitted = 0
    let end: unknown = 'none'
    const subscription = log
      .consume('c', { maxUnacknowledged: MAX_UNACKNOWLEDGED, stallTimeout: 1_000, scheduler })
      .pipe(
        rx.tap(() => (emitted += 1)),
        between(scheduler),
        deliver((value) => idsOf(value).forEach((id) => handled.add(id))),
      )
      .subscribe({ error: (error: unknown) => (end = error), complete: () => (end = 'complete') })
    for (let turns = 0; turns < 400; turns++) {
      await turn()
      scheduler.maxFrames += 10
      scheduler.flush()
    }

    const errors = { runs: undefined, stalls: 'StalledConsumerError', 'is refused': 'AcknowledgementError' }
    expect(end instanceof Error ? end.name : undefined).toBe(errors[ends])
    // Whatever an operator buffers is bounded.
    expect(emitted - handled.size).toBeLessThanOrEqual(MAX_UNACKNOWLEDGED)

    // The process is killed, and its successor has no operator between.
    store.loseClaims()
    const successor = await openLog(store.connect())
    const again = new Set<string>()
    const job = successor.consume('c', {}, ({ id }) => void again.add(id))
    for (let turns = 0; turns < 50; turns++) await turn()
    await job.stop()
    subscription.unsubscribe()
    expect(ids.filter((id) => !handled.has(id) && !again.has(id))).toEqual([])
  })
})
