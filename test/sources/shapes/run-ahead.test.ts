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

/** A pipeline between a source and its consumer. Each value of `release` lets what is slow in it go on. */
type Pipeline = (source: Observable<number>, release: Observable<number>) => Observable<unknown>

/** What is reported of a pipeline in which so many events come at once, and then what is slow goes on. */
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

describe('a source that runs ahead of its consumer', () => {
  it.each<[string, Pipeline]>([
    ['mergeMap', (source, release) => source.pipe(mergeMap(slow(release), 8))],
    ['concatMap', (source, release) => source.pipe(concatMap(slow(release)))],
    ['mergeMap without a bound', (source, release) => source.pipe(mergeMap(slow(release)))],
    ['zip', (source, release) => zip(source, release)],
    ['buffer', (source, release) => source.pipe(buffer(release))],
    ['delayWhen', (source, release) => source.pipe(delayWhen(slow(release)))],
    [
      'mergeMap behind other operators',
      (source, release) => source.pipe(map(String), mergeMap(slow(release), 8)),
    ],
    [
      'mergeMap behind what passes each event on at once',
      (source, release) => source.pipe(tap(), mergeMap(slow(release), 8)),
    ],
    [
      'mergeMap behind from(iterate())',
      (source, release) => from(iterate(source)).pipe(mergeMap(slow(release), 8)),
    ],
    ['mergeMap behind merge', (source, release) => merge(source, of(1)).pipe(mergeMap(slow(release), 8))],
    [
      'mergeMap before deliver',
      (source, release) =>
        source.pipe(
          mergeMap(slow(release), 8),
          deliver(() => {}),
        ),
    ],
  ])('is reported once where its events wait in %s', (_name, pipeline) => {
    const [diagnostic, ...others] = reports(pipeline, 10_100)

    expect(diagnostic).toMatchObject({ kind: 'backpressure', source: '/v1/x' })
    expect(diagnostic).toHaveProperty(
      'ahead',
      expect.toSatisfy((ahead) => ahead > 10_000 && ahead <= 10_101),
    )
    expect(others).toEqual([])
  })

  it.each<[string, Pipeline]>([
    ['a consumer that takes each at once', (source) => source.pipe(map(String), tap(), filter(Boolean))],
    [
      'what is filtered out',
      (source) =>
        source.pipe(
          filter((n) => n % 1_000 === 0),
          mergeMap((n) => of(n)),
        ),
    ],
    [
      'what is filtered out of several',
      (source, release) => merge(source, release).pipe(filter((n) => n < 0)),
    ],
    ['what is gathered', (source) => source.pipe(toArray())],
    ['what is counted', (source) => source.pipe(count())],
    ['what is grouped', (source) => source.pipe(groupBy((n) => n % 3))],
    ['windows', (source) => source.pipe(windowCount(20_000))],
    ['mergeMap that keeps up', (source) => source.pipe(mergeMap((n) => of(n)))],
    ['deliver, which holds the source back', (source) => source.pipe(deliver(() => {}))],
  ])('is not reported for %s', (_name, pipeline) => {
    expect(reports(pipeline, 10_100)).toEqual([])
  })

  it.each<[string, Pipeline]>([
    ['answers', (source, release) => source.pipe(mergeMap(slow(release), 8))],
    ['empty lists', (source, release) => source.pipe(mergeMap(() => slow(release)().pipe(map(() => [])), 8))],
    [
      'long lists',
      (source, release) => source.pipe(mergeMap(() => slow(release)().pipe(map(() => [1, 2, 3])), 8)),
    ],
    [
      'a source of its own for each',
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
    ['a source of its own for each', (each) => reportRunAhead({ report: () => {} }, each, '/v1/y')],
  ])('is reported where what is slow answers with %s', (_name, answered) => {
    const diagnostics = reports(
      (source, release) => source.pipe(mergeMap(() => answered(slow(release)()), 8)),
      10_100,
    )

    expect(diagnostics).toMatchObject([{ kind: 'backpressure', source: '/v1/x' }])
  })

  it('is reported once where several sources come to one operator one after the other', () => {
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

  it('is not reported for the bursts that a buffer has passed on', () => {
    expect(reports((source, release) => source.pipe(mergeMap(slow(release), 8)), 9_000)).toEqual([])
  })

  it('adds one call to an event of many merged sources, and not one for each of the others', () => {
    const events$ = new Subject<number>()
    const sources = Array.from({ length: 20_000 }, () =>
      reportRunAhead({ report: () => {} }, events$, '/v1/x'),
    )
    let got = 0
    merge(...sources)
      .pipe(tap(), count())
      .subscribe((total) => (got = total))

    // Calls within calls would exceed the stack, for an event or for the completion.
    for (let n = 0; n < 12; n++) events$.next(n)
    events$.complete()

    expect(got).toBe(240_000)
  })

  it('does not change what its consumer gets', () => {
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
  it('report a group whose runs wait in an operator', async () => {
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

    const piled = iterate(
      client.taskGroups.runs('g').pipe(
        ofType('task_run.state'),
        tap(() => (taken += 1)),
        tap(() => taken > 12_000 && release.next()),
        mergeMap(() => release.pipe(take(1)), 8),
      ),
    )
    void piled.next()

    expect(await reported).toMatchObject({ source: '/v1/tasks/groups/g' })
    await piled.return?.()
  })
})
