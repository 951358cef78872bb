import type { IncomingMessage } from 'node:http'
import { concatMap, defer, from, isObservable, lastValueFrom, map, of, switchMap, toArray } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { AuthenticationError, createClient, PartialWriteError } from 'rivulet'
import type { AddRunsRequest, AddRunsResponse, AwaitableSource, TaskGroup } from 'rivulet'
import { answer, serve } from '../../support/serve.ts'
import { bodyOf } from '../../transport/server.ts'

/** A client of a service that sends this response to each request, and the recorded requests. */
async function client(body: unknown = { taskgroup_id: 'g' }, status = 200) {
  const requests: string[] = []
  const baseUrl = await serve((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    request.resume()
    answer(response, body, status)
  })
  return { requests, ...createClient({ baseUrl, apiKey: 'key', retries: 0 }) }
}

describe('a source that emits once', () => {
  it('sends one request when it is awaited, and resolves to the response', async () => {
    const { taskGroups, requests } = await client()

    const group = await taskGroups.create()

    expectTypeOf(group).toEqualTypeOf<TaskGroup>()
    expect(group.taskgroup_id).toBe('g')
    expect(requests).toEqual(['POST /v1/tasks/groups'])
  })

  it('sends no request before it is awaited or subscribed to, and one for each', async () => {
    const { taskGroups, requests } = await client()
    const group = taskGroups.get('g')
    await new Promise((resolve) => setImmediate(resolve))
    expect(requests).toEqual([])

    await group
    await lastValueFrom(group)
    await group

    expect(requests).toHaveLength(3)
  })

  it.each([
    ['search', (c) => c.search({ search_queries: ['q'] })],
    ['searchBeta', (c) => c.searchBeta({ objective: 'o' })],
    ['monitors.get', (c) => c.monitors.get('m')],
    ['monitors.cancel', (c) => c.monitors.cancel('m')],
    [
      'monitors.create',
      (c) => c.monitors.create({ type: 'event_stream', frequency: '1d', settings: { query: 'q' } }),
    ],
    ['taskGroups.get', (c) => c.taskGroups.get('g')],
    ['get', (c) => c.get('/v1/x')],
    ['post', (c) => c.post('/v1/x')],
  ] satisfies [string, (c: Awaited<ReturnType<typeof client>>) => PromiseLike<unknown>][])(
    'is what %s returns',
    async (_name, call) => {
      const own = await client({ results: [] })

      await expect(call(own)).resolves.toEqual({ results: [] })
      expect(own.requests).toHaveLength(1)
    },
  )

  it('resolves to undefined for an empty response', async () => {
    const { monitors, requests } = await client('')

    await expect(monitors.trigger('m')).resolves.toBeUndefined()
    expect(requests).toHaveLength(1)
  })

  it('rejects with the error of its request', async () => {
    const { taskGroups } = await client({}, 401)

    await expect(taskGroups.get('g')).rejects.toBeInstanceOf(AuthenticationError)
  })

  it('rejects with the reason of its signal', async () => {
    const { taskGroups, requests } = await client()
    const reason = new Error('enough')

    await expect(taskGroups.get('g', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(requests).toEqual([])
  })

  it('rejects with the reason of its signal while the request is in flight', async () => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const baseUrl = await serve(() => controller.abort(reason))

    const { taskGroups } = createClient({ baseUrl, apiKey: 'key' })
    await expect(taskGroups.get('g', { signal: controller.signal })).rejects.toBe(reason)
  })

  it.each<[string, (source: AwaitableSource<TaskGroup>) => Observable<TaskGroup>]>([
    ['from', (source) => from(source)],
    ['switchMap', (source) => of(1).pipe(switchMap(() => source))],
    ['concatMap', (source) => of(1).pipe(concatMap(() => source))],
    ['defer', (source) => defer(() => source)],
  ])('is an Observable for %s: unsubscribing aborts its request', async (_name, through) => {
    let closed: () => void = () => {}
    const isClosed = new Promise<void>((resolve) => (closed = resolve))
    let asked: () => void = () => {}
    const isAsked = new Promise<void>((resolve) => (asked = resolve))
    let requests = 0
    const baseUrl = await serve((request) => {
      requests += 1
      request.socket.on('close', () => closed())
      asked()
    })
    const source = createClient({ baseUrl, apiKey: 'key' }).taskGroups.get('g')

    // If it were awaited, the request would continue without its subscriber.
    const subscription = through(source).subscribe()
    await isAsked
    subscription.unsubscribe()

    await isClosed
    expect(requests).toBe(1)
  })

  it('is a plain Observable after an operator', async () => {
    const { taskGroups } = await client()
    const piped = taskGroups.get('g').pipe(map(({ taskgroup_id }) => taskgroup_id))

    expect(isObservable(taskGroups.get('g'))).toBe(true)
    expect('then' in piped).toBe(false)
    expectTypeOf(piped).toEqualTypeOf<Observable<string>>()
  })

  it('resolves to the response when an async function returns it', async () => {
    const { taskGroups } = await client()
    const open = async () => taskGroups.create()

    await expect(open()).resolves.toEqual({ taskgroup_id: 'g' })
    await expect(Promise.all([taskGroups.create(), taskGroups.get('g')])).resolves.toHaveLength(2)
  })
})

describe('a source that emits several times', () => {
  it('is not a thenable', async () => {
    const { taskGroups, monitors, requests } = await client()

    for (const source of [
      taskGroups.execute('g', [{ input: 'i' }]),
      taskGroups.runs('g'),
      monitors.events('m'),
    ]) {
      expect('then' in source).toBe(false)
      expect(await Promise.resolve<unknown>(source)).toBe(source)
    }
    expect(requests).toEqual([])
  })
})

describe('addRuns', () => {
  const inputs = Array.from({ length: 2_500 }, (_, n) => ({ input: `question ${n}` }))

  /** A group that responds to each request with the number of its runs. */
  async function growing(refuse: (request: number) => boolean = () => false) {
    let size = 0
    let requests = 0
    const add = async (request: IncomingMessage) => {
      const body = JSON.parse(await bodyOf(request)) as AddRunsRequest
      return body.inputs.map(() => `run_${size++}`)
    }
    const baseUrl = await serve(async (request, response) => {
      if (refuse(requests++)) return answer(response, {}, 401)
      const cursor = size === 0 ? '' : String(size)
      const run_ids = await add(request)
      answer(response, {
        status: { num_task_runs: size },
        run_ids,
        run_cursor: cursor,
        event_cursor: `e${cursor}`,
      })
    })
    return createClient({ baseUrl, apiKey: 'key', retries: 0 })
  }

  it('resolves to one response for all requests, with the cursors of the first and the status of the last', async () => {
    const { taskGroups } = await growing()

    const added = await taskGroups.addRuns('g', { inputs })

    expectTypeOf(added).toEqualTypeOf<AddRunsResponse>()
    expect(added).toEqual({
      status: { num_task_runs: 2_500 },
      run_ids: inputs.map((_, n) => `run_${n}`),
      run_cursor: '',
      event_cursor: 'e',
    })
  })

  it('emits the response to each request to a subscriber', async () => {
    const { taskGroups } = await growing()

    const answers = await lastValueFrom(taskGroups.addRuns('g', { inputs }).pipe(toArray()))

    expect(answers.map(({ run_ids }) => run_ids.length)).toEqual([1_000, 1_000, 500])
  })

  it('rejects with an error that lists the added inputs', async () => {
    const { taskGroups } = await growing((request) => request === 1)

    const error: unknown = await taskGroups
      .addRuns('g', { inputs })
      .then(undefined, (thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(PartialWriteError)
    expect(error).toMatchObject({ added: { length: 1_000 }, notAdded: { length: 1_500 } })
  })
})
