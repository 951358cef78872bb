import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { asyncScheduler } from 'rxjs'
import type { SchedulerAction, SchedulerLike } from 'rxjs'
import { ArgumentError, createClient, NotFoundError, ProtocolError, UncertainWriteError } from 'rivulet'
import type { AddRunsRequest, RunInput } from 'rivulet'
import { all } from '../../e2e/research.ts'
import { answer, openStream, serve, sse } from '../../support/serve.ts'
import { bodyOf } from '../../transport/server.ts'

const inputs = [{ input: 'one' }, { input: 'two', metadata: { mine: 'kept' } }]
const exactly = { exactlyOnce: true, settleDelay: 0 }

interface Script {
  /** Responds to a request to add runs, the `n`th from 0. */
  readonly add: (response: ServerResponse, inputs: readonly RunInput[], n: number) => void
  /** Responds to a request for the group. */
  readonly group?: (response: ServerResponse) => void
  /** Responds to a request for the runs stream, the `n`th from 0. */
  readonly runs?: (response: ServerResponse, n: number) => void
}

const statusOf = (completed: number) => ({
  num_task_runs: completed,
  task_run_status_counts: { completed },
  is_active: false,
  status_message: '',
  modified_at: 'm',
})
const added = (run_ids: readonly string[]) => ({
  status: statusOf(run_ids.length),
  run_ids,
  run_cursor: '',
  event_cursor: '',
})
const runEvent = (n: number, rest: object) => {
  const run = { run_id: `run_${n}`, status: 'completed', is_active: false, ...rest }
  return { type: 'task_run.state', event_id: String(n), run, ...rest }
}

async function scripted({ add, group, runs }: Script, scheduler?: SchedulerLike) {
  const requests: AddRunsRequest[] = []
  let reads = 0
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'POST') {
      const body = JSON.parse(await bodyOf(request)) as AddRunsRequest
      requests.push(body)
      return add(response, body.inputs, requests.length - 1)
    }
    if (request.url?.includes('/runs') === true) return runs?.(response, reads++)
    if (group !== undefined) return group(response)
    answer(response, { taskgroup_id: 'g', status: statusOf(0), created_at: 'c' })
  }
  const baseUrl = await serve((request, response) => void handle(request, response))
  const options = { baseUrl, apiKey: 'key', initialDelay: 0, ...(scheduler !== undefined && { scheduler }) }
  return { client: createClient(options), requests }
}

const failure = (adding: Parameters<typeof all>[0]): Promise<unknown> =>
  all(adding).then(
    () => undefined,
    (error: unknown) => error,
  )
const fail = (response: ServerResponse) => answer(response, {}, 500)

describe('addRuns', () => {
  it.each([[['run_0']], [['run_0', 'run_0']], [['run_0', 'run_1', 'run_2']]])(
    'leaves two inputs in doubt if the response has the run ids %j',
    async (run_ids) => {
      const { client, requests } = await scripted({ add: (response) => answer(response, added(run_ids)) })

      const error = await failure(client.taskGroups.addRuns('g', { inputs }))

      expect(error).toBeInstanceOf(UncertainWriteError)
      expect(error).toMatchObject({ added: [], inDoubt: [0, 1], cause: expect.any(ProtocolError) })
      expect(requests).toHaveLength(1)
    },
  )

  it('does not change the metadata without exactlyOnce, and sends no other request', async () => {
    const { client, requests } = await scripted({
      add: (response) => answer(response, added(['run_0', 'run_1'])),
      group: () => expect.unreachable(),
    })

    await all(client.taskGroups.addRuns('g', { inputs }))

    expect(requests).toEqual([{ inputs }])
  })

  it('adds a unique key to the metadata of each input, a new one for each subscription', async () => {
    const { client, requests } = await scripted({
      add: (response) => answer(response, added(['run_0', 'run_1'])),
    })
    const adding = client.taskGroups.addRuns('g', { inputs }, exactly)

    await all(adding)
    await all(adding)

    const keys = requests.flatMap((request) =>
      request.inputs.map(({ metadata }) => metadata?.['rivulet_key']),
    )
    expect(new Set(keys).size).toBe(4)
    expect(keys).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(/^[0-9a-f]{32}:[01]$/)))
    expect(requests[0]?.inputs[1]).toMatchObject({ input: 'two', metadata: { mine: 'kept' } })
    expect(inputs[1]).toEqual({ input: 'two', metadata: { mine: 'kept' } })
  })

  it('throws at the call for invalid arguments', async () => {
    const { client } = await scripted({ add: () => expect.unreachable() })
    const own = { inputs: [{ input: 'x', metadata: { rivulet_key: 'mine' } }] }
    const { addRuns } = client.taskGroups

    expect(() => addRuns('g', own, exactly)).toThrow(ArgumentError)
    expect(() => addRuns('g', own, exactly)).toThrow('inputs[0].metadata.rivulet_key')
    expect(() => addRuns('g', own)).not.toThrow()
    expect(() => addRuns('g', { inputs }, { settleDelay: -1 })).toThrow('settleDelay')
    expect(() => addRuns('g', { inputs }, { settleTimeout: Number.NaN })).toThrow('settleTimeout')
    expect(() => addRuns('g', { inputs }, { settleTimeout: Infinity })).not.toThrow()
    expect(() => addRuns('g', { inputs: [{ input: { n: 1n } }] })).toThrow('body')
  })

  it('sends no request before it is subscribed to, and adds the runs once per subscription', async () => {
    const { client, requests } = await scripted({
      add: (response) => answer(response, added(['run_0', 'run_1'])),
    })
    const adding = client.taskGroups.addRuns('g', { inputs })
    await all(client.get('/v1/tasks/groups/g'))
    expect(requests).toHaveLength(0)

    await all(adding)
    await all(adding)

    expect(requests).toHaveLength(2)
  })
})

describe('addRuns with exactlyOnce', () => {
  it('does not assume that a stream has all runs when it closes', async () => {
    // The inputs were added, but the stream has their runs only after several reads.
    const patience = 10
    let taken: readonly RunInput[] = []
    const { client, requests } = await scripted({
      add(response, given) {
        taken = given
        fail(response)
      },
      group: (response) =>
        answer(response, { taskgroup_id: 'g', status: statusOf(taken.length), created_at: 'c' }),
      runs(response, n) {
        openStream(response)
        const events = taken.map((input, index) => sse(runEvent(index, { input })))
        response.end(n < patience ? '' : events.join(''))
      },
    })

    const responses = await all(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(responses.map(({ run_ids }) => run_ids)).toEqual([['run_0', 'run_1']])
    expect(requests).toHaveLength(1)
  })

  it('sends the missing inputs again if only some were added', async () => {
    const taken: RunInput[] = []
    const { client, requests } = await scripted({
      add(response, given, n) {
        // Only the second input.
        taken.push(...given.slice(n === 0 ? 1 : 0))
        if (n === 0) return fail(response)
        answer(response, added([`run_${taken.length - 1}`]))
      },
      group: (response) =>
        answer(response, { taskgroup_id: 'g', status: statusOf(taken.length), created_at: 'c' }),
      runs(response) {
        openStream(response)
        response.end(taken.map((input, index) => sse(runEvent(index, { input }))).join(''))
      },
    })

    const responses = await all(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(requests.map((request) => request.inputs.map(({ input }) => input))).toEqual([
      ['one', 'two'],
      ['one'],
    ])
    expect(responses.map(({ run_ids }) => run_ids)).toEqual([['run_1', 'run_0']])
  })

  it('finds the key in the metadata of a run without its input', async () => {
    let taken: readonly RunInput[] = []
    const { client } = await scripted({
      add(response, given) {
        taken = given
        fail(response)
      },
      group: (response) =>
        answer(response, { taskgroup_id: 'g', status: statusOf(taken.length), created_at: 'c' }),
      runs(response) {
        openStream(response)
        response.end(taken.map(({ metadata }, n) => sse(runEvent(n, { metadata }))).join(''))
      },
    })

    const responses = await all(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(responses.map(({ run_ids }) => run_ids)).toEqual([['run_0', 'run_1']])
  })

  it('leaves inputs in doubt if runs have neither input nor metadata', async () => {
    let runs = 0
    const { client, requests } = await scripted({
      add(response) {
        runs = 2
        fail(response)
      },
      group: (response) => answer(response, { taskgroup_id: 'g', status: statusOf(runs), created_at: 'c' }),
      runs(response) {
        openStream(response)
        response.end(sse(runEvent(0, {})) + sse(runEvent(1, {})))
      },
    })

    const error = await failure(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(error).toBeInstanceOf(UncertainWriteError)
    expect(error).toMatchObject({ inDoubt: [0, 1], unsettled: expect.any(Error) })
    expect(requests).toHaveLength(1)
  })

  it('leaves inputs in doubt if the search is rejected, and has both errors', async () => {
    const { client } = await scripted({ add: fail, group: (response) => answer(response, {}, 404) })

    const error = await failure(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(error).toBeInstanceOf(UncertainWriteError)
    expect(error).toMatchObject({
      inDoubt: [0, 1],
      cause: expect.objectContaining({ status: 500 }),
      unsettled: expect.any(NotFoundError),
    })
  })

  it('errors after ten attempts of which none added an input, and leaves none in doubt', async () => {
    const { client, requests } = await scripted({ add: fail })

    const error = await failure(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(error).toMatchObject({ name: 'ServerError', status: 500 })
    expect(requests).toHaveLength(10)
  })

  it('does not retry an error that is not retryable', async () => {
    const { client, requests } = await scripted({ add: (response) => answer(response, {}, 501) })

    const error = await failure(client.taskGroups.addRuns('g', { inputs }, exactly))

    expect(error).toMatchObject({ name: 'ServerError', status: 501 })
    expect(requests).toHaveLength(1)
  })

  it('waits for settleDelay before it searches', async () => {
    // Records each delay, and runs that of the settling immediately.
    const waits: number[] = []
    const scheduler: SchedulerLike = {
      now: () => asyncScheduler.now(),
      schedule<T>(work: (this: SchedulerAction<T>, state?: T) => void, delay = 0, state?: T) {
        waits.push(delay)
        return asyncScheduler.schedule(work, delay === 12_345_678 ? 0 : delay, state)
      },
    }
    const { client } = await scripted(
      { add: (response, _, n) => (n === 0 ? fail(response) : answer(response, added(['run_0', 'run_1']))) },
      scheduler,
    )

    await all(client.taskGroups.addRuns('g', { inputs }, { exactlyOnce: true, settleDelay: 12_345_678 }))

    expect(waits[0]).toBe(12_345_678)
  })
})
