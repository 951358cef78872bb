import { Readable } from 'node:stream'
import {
  buffer,
  concatMap,
  count,
  delayWhen,
  filter,
  firstValueFrom,
  from,
  groupBy,
  map,
  merge,
  mergeMap,
  of,
  range,
  Subject,
  switchMap,
  take,
  tap,
  toArray,
  windowCount,
  zip,
} from 'rxjs'
import type { Observable } from 'rxjs'
import { createClient } from 'rivulet'
import type { Diagnostic } from 'rivulet'
import { deliver, iterate, ofType } from 'rivulet/operators'
import { describe, expect, it } from 'vitest'
import { reportRunAhead } from '../../../src/sources/shapes/run-ahead.ts'
import { answer, openStream, serve, sse } from '../../support/serve.ts'

/** A pipeline between a source and its consumer. Each value of `release` completes its slow tasks. */
type Pipeline = (source: Observable<number>, release: Observable<number>) => Observable<unknown>

/** Returns the reports of a pipeline that receives this many events synchronously, and then `release`. */
function reports(pipeline: Pipeline, events: number): readonly Diagnostic[] {
  const diagnostics: Diagnostic[] = []
  const events$ = new Subject<number>()
  const release = new Subject<number>()
  const source = reportRunAhead({ report: (each) => diagnostics.push(each) }, events$, '/v1/x')
  const subscription = pipeline(source, release).subscribe()
  for (let n = 0; n < events; n++) events$.next(n)
  for (let n = 0; n < 3; n++) release.next(n)
  events$.next(events)
  events$.complete()
  subscription.unsubscribe()
  return diagnostics
}

const slow = (release: Observable<number>) => () => release.pipe(take(1))

describe('an operator that buffers events', () => {
  it.each<[string, Pipeline]>([
    ['mergeMap', (source, release) => source.pipe(mergeMap(slow(release), 8))],
    ['concatMap', (source, release) => source.pipe(concatMap(slow(release)))],
    ['mergeMap without a bound', (source, release) => source.pipe(mergeMap(slow(release)))],
    ['zip', (source, release) => zip(source, release)],
    ['buffer', (source, release) => source.pipe(buffer(release))],
    ['delayWhen', (source, release) => source.pipe(delayWhen(slow(release)))],
    [
      'mergeMap after other operators',
      (source, release) => source.pipe(map(String), mergeMap(slow(release), 8)),
    ],
    [
      'mergeMap after a synchronous operator',
      (source, release) => source.pipe(tap(), mergeMap(slow(release), 8)),
    ],
    [
      'mergeMap after from(iterate())',
      (source, release) => from(iterate(source)).pipe(mergeMap(slow(release), 8)),
    ],
    ['mergeMap after merge', (source, release) => merge(source, of(1)).pipe(mergeMap(slow(release), 8))],
    [
      'mergeMap before deliver',
      (source, release) =>
        source.pipe(
          mergeMap(slow(release), 8),
          deliver(() => {}),
        ),
    ],
  ])('is reported once: %s', (_name, pipeline) => {
    const [diagnostic, ...others] = reports(pipeline, 10_100)

    expect(diagnostic).toMatchObject({ kind: 'backpressure', source: '/v1/x' })
    expect(diagnostic).toHaveProperty(
      'ahead',
      expect.toSatisfy((ahead) => ahead > 10_000 && ahead <= 10_101),
    )
    expect(others).toEqual([])
  })

  it.each<[string, Pipeline]>([
    ['synchronous operators', (source) => source.pipe(map(String), tap(), filter(Boolean))],
    [
      'a filter',
      (source) =>
        source.pipe(
          filter((n) => n % 1_000 === 0),
          mergeMap((n) => of(n)),
        ),
    ],
    ['a filter of merged sources', (source, release) => merge(source, release).pipe(filter((n) => n < 0))],
    ['toArray', (source) => source.pipe(toArray())],
    ['count', (source) => source.pipe(count())],
    ['groupBy', (source) => source.pipe(groupBy((n) => n % 3))],
    ['windows', (source) => source.pipe(windowCount(20_000))],
    ['mergeMap that keeps up', (source) => source.pipe(mergeMap((n) => of(n)))],
    ['deliver, which applies backpressure', (source) => source.pipe(deliver(() => {}))],
  ])('is not reported for %s', (_name, pipeline) => {
    expect(reports(pipeline, 10_100)).toEqual([])
  })

  it.each<[string, Pipeline]>([
    ['single values', (source, release) => source.pipe(mergeMap(slow(release), 8))],
    ['empty lists', (source, release) => source.pipe(mergeMap(() => slow(release)().pipe(map(() => [])), 8))],
    [
      'long lists',
      (source, release) => source.pipe(mergeMap(() => slow(release)().pipe(map(() => [1, 2, 3])), 8)),
    ],
    [
      'a separate source for each',
      (source, release) =>
        source.pipe(mergeMap(() => reportRunAhead({ report: () => {} }, slow(release)(), '/v1/y'), 8)),
    ],
  ])('is not reported for a consumer that keeps up with %s', (_name, pipeline) => {
    const diagnostics: Diagnostic[] = []
    const events$ = new Subject<number>()
    const release = new Subject<number>()
    const source = reportRunAhead({ report: (each) => diagnostics.push(each) }, events$, '/v1/x')
    const subscription = pipeline(source, release).subscribe()
    for (let n = 0; n < 11_000; n++) {
      events$.next(n)
      release.next(n)
    }
    subscription.unsubscribe()

    expect(diagnostics).toEqual([])
  })

  it.each<[string, (answer: Observable<number>) => Observable<unknown>]>([
    ['lists', (each) => each.pipe(map(() => [1, 2, 3]))],
    ['a separate source for each', (each) => reportRunAhead({ report: () => {} }, each, '/v1/y')],
  ])('is reported if its inner observables emit %s', (_name, answered) => {
    const diagnostics = reports(
      (source, release) => source.pipe(mergeMap(() => answered(slow(release)()), 8)),
      10_100,
    )

    expect(diagnostics).toMatchObject([{ kind: 'backpressure', source: '/v1/x' }])
  })

  it('is reported once for several sources one after the other', () => {
    const diagnostics: Diagnostic[] = []
    const release = new Subject<number>()
    const sources = ['a', 'b', 'c'].map((name) =>
      reportRunAhead({ report: (each) => diagnostics.push(each) }, range(0, 12_000), name),
    )
    const subscription = from(sources)
      .pipe(
        concatMap((source) => source),
        mergeMap(() => release.pipe(take(1)), 1),
      )
      .subscribe()
    for (let n = 0; n < 3; n++) release.next(n)

    expect(diagnostics).toHaveLength(1)
    subscription.unsubscribe()
  })

  it('is not reported below the limit', () => {
    expect(reports((source, release) => source.pipe(mergeMap(slow(release), 8)), 9_000)).toEqual([])
  })

  it('adds one call per event of many merged sources, and not one for each of them', () => {
    const events$ = new Subject<number>()
    const sources = Array.from({ length: 20_000 }, () =>
      reportRunAhead({ report: () => {} }, events$, '/v1/x'),
    )
    let got = 0
    merge(...sources)
      .pipe(tap(), count())
      .subscribe((total) => (got = total))

    // A nested call per source would exceed the stack, for an event or for the completion.
    for (let n = 0; n < 12; n++) events$.next(n)
    events$.complete()

    expect(got).toBe(240_000)
  })

  it('emits the same values when it is counted', () => {
    const source = reportRunAhead({ report: () => {} }, from([1, 2, 3]), '/v1/x')
    const got: unknown[] = []

    source
      .pipe(
        mergeMap((n) => of(n, -n)),
        tap(),
        switchMap((n) => [n]),
      )
      .subscribe({
        next: (value) => got.push(value),
        complete: () => got.push('complete'),
      })

    expect(got).toEqual([1, -1, 2, -2, 3, -3, 'complete'])
  })
})

describe('the diagnostics of a client', () => {
  it('report an operator that buffers the runs of a group', async () => {
    const total = 15_000
    const status = { num_task_runs: total, task_run_status_counts: { completed: total }, is_active: false }
    function* messages() {
      for (let n = 0; n < total; n++) {
        const run = { run_id: `run_${n}`, status: 'completed', is_active: false }
        const event = { type: 'task_run.state', event_id: String(n), run }
        yield sse(event)
      }
    }
    const baseUrl = await serve((request, response) => {
      if (request.url?.includes('/runs') !== true)
        return answer(response, {
          taskgroup_id: 'g',
          status: { ...status, status_message: '', modified_at: 'm' },
        })
      openStream(response)
      Readable.from(messages()).pipe(response)
    })
    const client = createClient({ baseUrl, apiKey: 'key' })
    const reported = firstValueFrom(client.diagnostics.pipe(filter(({ kind }) => kind === 'backpressure')))
    const release = new Subject<void>()
    let taken = 0

    const iterator = iterate(
      client.taskGroups.runs('g').pipe(
        ofType('task_run.state'),
        tap(() => (taken += 1)),
        tap(() => taken > 12_000 && release.next()),
        mergeMap(() => release.pipe(take(1)), 8),
      ),
    )
    void iterator.next()

    expect(await reported).toMatchObject({ source: '/v1/tasks/groups/g' })
    await iterator.return?.()
  })
})
