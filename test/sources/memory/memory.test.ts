import { createClient, findAllEvent, monitorEvent, runEvent } from 'rivulet'
import type { MemoryResult, MemoryUpdate, ResearchEvent, RunStatus } from 'rivulet'
import { iterate } from 'rivulet/operators'
import { firstValueFrom, Subject, throwError, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answer, serve } from '../../support/serve.ts'
import type { FollowMemoryOptions } from '../../../src/sources/memory/follow.ts'

const task = (id: string, output_excerpt = 'x') => ({
  kind: 'task' as const,
  id,
  input_excerpt: 'x',
  output_excerpt,
  updated_at: '2026-01-01T00:00:00Z',
})
const about = { input_excerpt: 'x', updated_at: '2026-01-01T00:00:00Z' }
const detected = { event_id: 'e', event_group_id: 'g', detected_at: '2026-01-01T00:00:00Z', excerpt: 'x' }
const monitor = { kind: 'monitor', id: 'm', ...about, status: 'active', matched_events: [detected] }
const findAll = { kind: 'findall', id: 'f', ...about, matched_count: 0 }

describe('memory.retrieve', () => {
  it.each<[string, unknown]>([
    ['a task', task('r')],
    ['a monitor', monitor],
    ['a monitor without events', { ...monitor, matched_events: null }],
    ['a monitor of a status of the future', { ...monitor, status: 'paused' }],
    ['a FindAll run', findAll],
    ['a field of the future', { ...findAll, score: 0.5 }],
  ])('passes on what has all fields of its kind: %s', async (_, result) => {
    const baseUrl = await serve((_request, response) => answer(response, { results: [result], more: 1 }))
    const memories = await createClient({ baseUrl, apiKey: 'key' }).memory.retrieve()

    expect(memories).toEqual({ results: [result], more: 1 })
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['a list', [task('r')]],
    ['a text', 'task'],
    ['an unknown kind', { ...task('r'), kind: 'search' }],
    ['a kind that every object inherits', { ...task('r'), kind: 'constructor' }],
    ['no kind', { ...task('r'), kind: undefined }],
    ['no id', { ...task('r'), id: null }],
    ['no output', { ...task('r'), output_excerpt: null }],
    ['no time', { ...findAll, updated_at: undefined }],
    ['a count that is a text', { ...findAll, matched_count: '1' }],
    ['no status', { ...monitor, status: null }],
    ['events that are no list', { ...monitor, matched_events: {} }],
    ['an event that is null', { ...monitor, matched_events: [detected, null] }],
    ['an event without an id', { ...monitor, matched_events: [{ ...detected, event_id: 7 }] }],
  ])('keeps what has not as unknown, beside the others: %s', async (_, result) => {
    const baseUrl = await serve((_request, response) => answer(response, { results: [result, findAll] }))
    const { results } = await createClient({ baseUrl, apiKey: 'key' }).memory.retrieve()

    const data: unknown = JSON.parse(JSON.stringify(result))
    expect(results).toEqual([{ kind: 'unknown', data }, findAll])
  })

  it.each<[string, unknown]>([
    ['no results', {}],
    ['results that are null', { results: null }],
    ['a list', []],
    ['null', null],
  ])('errors if the answer is no list of results: %s', async (_, body) => {
    const baseUrl = await serve((_request, response) => answer(response, body))

    const retrieved = createClient({ baseUrl, apiKey: 'key', retries: 0 }).memory.retrieve()
    await expect(retrieved).rejects.toMatchObject({ name: 'ProtocolError', path: '/v1beta/memory/retrieve' })
  })
})

const run = (status: RunStatus) =>
  runEvent(
    {
      run: {
        run_id: 'r',
        status,
        is_active: status === 'running',
        processor: 'base',
        created_at: null,
        modified_at: null,
      },
    },
    'stream',
  )
const ofFindAll = (type: string, data: object) => findAllEvent('f', { type, timestamp: '', data }, 'stream')
const statusOf = (status: RunStatus) =>
  ofFindAll('findall.status', { status: { status, is_active: status === 'running', metrics: {} } })
const output = { type: 'text', content: 'x', basis: [] }
const detection = monitorEvent('m', { event_id: 'e', event_group_id: 'g', event_date: null, output }, 'poll')

/** The memories of a service, and a client that follows them. Time passes only with `next`. */
async function following(
  options: FollowMemoryOptions = {},
  respond: (request: number) => { readonly status: number; readonly body?: unknown } | undefined = () =>
    undefined,
) {
  let results: readonly unknown[] = []
  /** When each request came, in ms since the beginning. */
  const requests: number[] = []
  let onRequest = () => {}
  const scheduler = new VirtualTimeScheduler()
  const baseUrl = await serve((_request, response) => {
    requests.push(scheduler.now())
    onRequest()
    const refusal = respond(requests.length)
    if (refusal === undefined) answer(response, { results })
    else
      answer(
        response,
        refusal.body ?? { type: 'error', error: { ref_id: 'r', message: 'no' } },
        refusal.status,
      )
  })
  const client = createClient({
    baseUrl,
    apiKey: 'key',
    scheduler,
    random: () => 0.5,
    retries: 0,
    initialDelay: 100,
  })
  const source = client.memory.follow(options)
  const updates: MemoryUpdate[] = []
  const failure = Promise.withResolvers<unknown>()
  const turn = () => new Promise((resolve) => void setImmediate(resolve))
  return {
    source,
    requests,
    updates,
    /** Lets time pass until it errors. */
    async passing(): Promise<unknown> {
      for (;;) {
        scheduler.flush()
        const failed = await Promise.race([failure.promise, turn()])
        if (failed !== undefined) return failed
      }
    },
    turn,
    set: (...given: unknown[]) => void (results = given),
    onRequest: (call: () => void) => void (onRequest = call),
    start() {
      const next = (update: MemoryUpdate) => void updates.push(update)
      const subscription = source.subscribe({ next, error: failure.resolve })
      onTestFinished(() => subscription.unsubscribe())
      return this.waiting()
    },
    /** Resolves when the next request is scheduled. */
    async waiting() {
      while (scheduler.actions.length === 0) await turn()
    },
    /** Lets time pass until the next request. */
    pass: () => scheduler.flush(),
    /** The same, and resolves when the request after that one is scheduled. */
    async next() {
      scheduler.flush()
      await this.waiting()
    },
  }
}

const idsOf = (results: readonly MemoryResult[]) =>
  results.map((result) => (result.kind === 'unknown' ? 'unknown' : result.id))
const shown = ({ results, added, changed, left }: MemoryUpdate) => [results, added, changed, left].map(idsOf)

describe('memory.follow', () => {
  it('emits a result that is nested too deeply for JSON.stringify, and goes on', async () => {
    const depth = 20_000
    const deep = `{"results":[${'['.repeat(depth)}${']'.repeat(depth)}]}`
    const baseUrl = await serve((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(deep),
    )
    const update = await firstValueFrom(createClient({ baseUrl, apiKey: 'key' }).memory.follow())

    expect(idsOf(update.added)).toEqual(['unknown'])
  })

  it('emits the results with what is new, changed and gone, and nothing for the same ones in another order', async () => {
    const memory = await following()
    memory.set(task('a'), task('b'), null)
    await memory.start()
    for (const results of [
      [task('b'), null, task('a')],
      [task('b', 'more'), task('c'), { kind: 'x' }],
      [task('c'), task('c'), task('b', 'more'), { kind: 'x' }],
      [],
    ]) {
      memory.set(...results)
      await memory.next()
    }

    expect(memory.updates.map(shown)).toEqual([
      [['a', 'b', 'unknown'], ['a', 'b', 'unknown'], [], []],
      [['b', 'c', 'unknown'], ['c', 'unknown'], ['b'], ['unknown', 'a']],
      [[], [], [], ['c', 'b', 'unknown']],
    ])
  })

  it('emits also that there is nothing at first', async () => {
    const memory = await following()
    await memory.start()
    await memory.next()

    expect(memory.updates).toEqual([{ results: [], added: [], changed: [], left: [] }])
  })

  it('retrieves every five minutes without an event', async () => {
    const memory = await following()
    await memory.start()
    await memory.next()
    await memory.next()

    expect(memory.requests).toEqual([0, 300_000, 600_000])
  })

  it.each<[string, ResearchEvent]>([
    ['a run has completed', run('completed')],
    ['a run has failed', run('failed')],
    ['a monitor has detected something', detection],
    ['a FindAll run has ended', statusOf('completed')],
    ['a candidate matches', ofFindAll('findall.candidate.matched', { candidate_id: 'c' })],
  ])('retrieves a second after %s, once for a burst', async (_, event) => {
    const events = new Subject<ResearchEvent>()
    const memory = await following({ events })
    await memory.start()
    for (let n = 0; n < 100; n++) events.next(event)
    await memory.next()
    await memory.next()

    expect(memory.requests).toEqual([0, 1_000, 301_000])
  })

  it.each<[string, ResearchEvent]>([
    ['a run that goes on', run('running')],
    ['a FindAll run that goes on', statusOf('running')],
    ['a candidate that does not match', ofFindAll('findall.candidate.unmatched', { candidate_id: 'c' })],
    ['an execution without news', monitorEvent('m', { event_type: 'completion', timestamp: 'x' }, 'poll')],
  ])('does not retrieve for %s', async (_, event) => {
    const events = new Subject<ResearchEvent>()
    const memory = await following({ events, pollInterval: 5_000 })
    await memory.start()
    events.next(event)
    await memory.next()

    expect(memory.requests).toEqual([0, 5_000])
  })

  it('retrieves again after an event during a retrieval', async () => {
    const events = new Subject<ResearchEvent>()
    const memory = await following({ events, pollInterval: Infinity })
    memory.onRequest(() => memory.requests.length === 1 && events.next(detection))
    await memory.start()
    memory.pass()
    while (memory.requests.length < 2) await memory.turn()

    expect(memory.requests).toEqual([0, 1_000])
  })

  it('retries with backoff, and goes on', async () => {
    const memory = await following({}, (request) =>
      request >= 2 && request <= 4 ? { status: 503 } : undefined,
    )
    await memory.start()
    memory.set(task('a'))
    for (let n = 0; n < 4; n++) await memory.next()

    const waits = memory.requests.map((at, index) => at - (memory.requests[index - 1] ?? 0))
    expect(waits).toEqual([0, 300_000, 50, 100, 200])
    expect(memory.updates.map(shown).at(-1)).toEqual([['a'], ['a'], [], []])
  })

  it.each<[string, number, unknown, object]>([
    ['a refusal', 422, undefined, { status: 422 }],
    ['an unknown path', 404, undefined, { status: 404 }],
    ['the fifth answer in a row that is none', 200, { results: {} }, { name: 'ProtocolError' }],
  ])('errors with %s', async (_, status, body, error) => {
    const memory = await following({}, () => ({ status, body }))
    void memory.start()
    const failed = await memory.passing()

    expect(failed).toMatchObject({ path: '/v1beta/memory/retrieve', ...error })
    expect(memory.requests).toHaveLength(status === 200 ? 5 : 1)
  })

  it('errors with the error of the events', async () => {
    const memory = await following({ events: throwError(() => new Error('the log is closed')) })

    await expect(firstValueFrom(memory.source)).rejects.toThrow('the log is closed')
    for (let n = 0; n < 20; n++) await memory.turn()
    expect(memory.requests).toEqual([])
  })

  it('retrieves nothing while its consumer pauses', async () => {
    const memory = await following()
    memory.onRequest(() => memory.set(task(`${memory.requests.length}`)))
    const updates = iterate(memory.source, { highWaterMark: 1 })
    onTestFinished(async () => void (await updates.return?.()))
    await updates.next()
    await memory.waiting()
    memory.pass()
    while (memory.requests.length < 2) await memory.turn()
    await memory.waiting()
    memory.pass()
    for (let n = 0; n < 20; n++) await memory.turn()
    expect(memory.requests).toHaveLength(2)

    await updates.next()
    while (memory.requests.length < 3) await memory.turn()
  })
})
