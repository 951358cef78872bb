import { describe, expect, it } from 'vitest'
import { firstValueFrom, tap } from 'rxjs'
import { PartialWriteError, UncertainWriteError, ValidationError } from 'rivulet'
import type { AddRunsOptions, AddRunsResponse, ResearchClient } from 'rivulet'
import { all, HeldRuns, QUIET_SOON, research } from './research.ts'

const RUNS = '/v1/tasks/groups'
const inputsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ input: `question ${n}` }))
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n)

async function group(client: ResearchClient): Promise<string> {
  const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
  return taskgroup_id
}

/** The emitted responses, and the error after them. */
async function outcome(client: ResearchClient, id: string, count: number, options?: AddRunsOptions) {
  const answers: AddRunsResponse[] = []
  const error: unknown = await new Promise((resolve) => {
    client.taskGroups.addRuns(id, { inputs: inputsOf(count) }, options).subscribe({
      next: (answer) => answers.push(answer),
      error: resolve,
      complete: () => resolve(undefined),
    })
  })
  return { answers, error }
}

/** The inputs of a group's runs, by run. */
async function inputsByRun(client: ResearchClient, id: string): Promise<Map<string, unknown>> {
  const events = await all(client.taskGroups.runs(id, { include_input: true }))
  return new Map(
    events.flatMap(({ type, data }) =>
      type === 'task_run.state' ? [[data.run.run_id, data.input?.input] as const] : [],
    ),
  )
}

describe('adding runs, end to end', () => {
  it.each([500, 502, 504])(
    'a %i may have added runs: they are not sent again, and are in doubt',
    async (status) => {
      const { client, service } = await research()
      const id = await group(client)
      service.faults.add({ kind: 'status', status, times: 1, path: RUNS })

      const { answers, error } = await outcome(client, id, 3)

      expect(answers).toEqual([])
      expect(error).toBeInstanceOf(UncertainWriteError)
      expect(error).toMatchObject({
        added: [],
        notAdded: [],
        inDoubt: [0, 1, 2],
        answers: [],
        retryable: false,
        cause: expect.objectContaining({ name: 'ServerError', status }),
      })
      expect(service.records().runs).toEqual([])
    },
  )

  it('a truncated response leaves its batch in doubt, and those before it added', async () => {
    const { client, service } = await research()
    const id = await group(client)
    const emitted: AddRunsResponse[] = []

    const error: unknown = await all(
      client.taskGroups.addRuns(id, { inputs: inputsOf(2_500) }).pipe(
        tap((answer) => {
          emitted.push(answer)
          service.faults.add({ kind: 'truncated', times: 1, path: RUNS })
        }),
      ),
    ).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(UncertainWriteError)
    expect(error).toMatchObject({
      added: emitted[0]?.run_ids.map((run_id, index) => ({ index, run_id })),
      inDoubt: range(1_000, 2_000),
      notAdded: range(2_000, 2_500),
      answers: emitted,
      cause: expect.objectContaining({ name: 'ConnectionError' }),
    })
    expect(service.records().runs).toHaveLength(2_000)
  })

  it('a refusal of the first batch is the error itself', async () => {
    const { client } = await research()
    const id = await group(client)
    const inputs = [{ input: 'x'.repeat(30_000) }]

    const error: unknown = await firstValueFrom(client.taskGroups.addRuns(id, { inputs })).catch(
      (thrown: unknown) => thrown,
    )

    expect(error).toBeInstanceOf(ValidationError)
  })

  it('a refusal of a later batch has the runs that were added before, and leaves nothing in doubt', async () => {
    const { client } = await research()
    const id = await group(client)
    const inputs = inputsOf(1_100).with(1_050, { input: 'x'.repeat(30_000) })

    const error: unknown = await all(client.taskGroups.addRuns(id, { inputs })).catch(
      (thrown: unknown) => thrown,
    )

    expect(error).toBeInstanceOf(PartialWriteError)
    expect(error).not.toBeInstanceOf(UncertainWriteError)
    expect(error).toMatchObject({
      notAdded: range(1_000, 1_100),
      retryable: false,
      cause: expect.any(ValidationError),
    })
    const { added } = error as PartialWriteError
    const byRun = await inputsByRun(client, id)
    expect(added.map(({ run_id }) => byRun.get(run_id))).toEqual(
      inputs.slice(0, 1_000).map(({ input }) => input),
    )
  })
})

describe('adding runs exactly once, end to end', () => {
  const exactly: AddRunsOptions = { exactlyOnce: true, settleDelay: 0 }

  it.each([500, 502, 504, 408])('retries after a %i that added nothing', async (status) => {
    const { client, service } = await research()
    const id = await group(client)
    service.faults.add({ kind: 'status', status, times: 3, path: RUNS })

    const { answers, error } = await outcome(client, id, 3, exactly)

    expect(error).toBeUndefined()
    expect(answers[0]?.run_ids).toEqual(service.records().runs.map(({ run_id }) => run_id))
    expect(service.records().runs).toHaveLength(3)
  })

  it.each(['truncated', 'malformed'] as const)(
    'finds the runs whose response was %s, and emits their ids in the order of inputs',
    async (kind) => {
      const { client, service } = await research({ client: QUIET_SOON })
      const id = await group(client)
      await outcome(client, id, 2)
      const inputs = inputsOf(1_500)

      const answers = await all(
        client.taskGroups.addRuns(id, { inputs }, exactly).pipe(
          tap(({ run_ids }) => {
            if (run_ids.length === 1_000) service.faults.add({ kind, times: 1, path: RUNS })
          }),
        ),
      )

      const runs = await inputsByRun(client, id)
      expect(runs.size).toBe(1_502)
      expect(answers.flatMap(({ run_ids }) => run_ids.map((run) => runs.get(run)))).toEqual(
        inputs.map(({ input }) => input),
      )
      const behind = await all(
        client.taskGroups.runs(id, { last_event_id: answers[1]?.run_cursor ?? 'none' }),
      )
      const ids = new Set(behind.map((event) => event.id))
      expect(answers[1]?.run_ids.every((run) => ids.has(`${run}:completed`))).toBe(true)
    },
  )

  it('waits for runs that are still active, since a stream does not have them', async () => {
    const processor = new HeldRuns()
    const { client, service } = await research({ processor })
    const id = await group(client)
    // The stream that looks for them closes and resumes. Then they may end.
    client.diagnostics.subscribe(({ kind }) => {
      if (kind === 'reconnect') processor.release()
    })

    const answers = await all(
      client.taskGroups.addRuns(id, { inputs: inputsOf(1_002) }, exactly).pipe(
        tap(({ run_ids }) => {
          if (run_ids.length < 1_000) return
          service.faults.add({ kind: 'truncated', times: 1, path: RUNS })
          service.faults.add({ kind: 'close', times: 1, path: '/v1beta/tasks/groups' })
        }),
      ),
    )

    expect(answers.flatMap(({ run_ids }) => run_ids)).toEqual(
      service.records().runs.map(({ run_id }) => run_id),
    )
    expect(service.faults.struck).toEqual({ truncated: 1, close: 1 })
  })

  it('finds that nothing was added while other runs are still active', async () => {
    const { client, service } = await research({ processor: new HeldRuns() })
    const id = await group(client)
    await outcome(client, id, 4)

    const adding = client.taskGroups.addRuns(id, { inputs: inputsOf(1_001) }, exactly)
    const answers = await all(
      adding.pipe(
        tap(({ run_ids }) => {
          if (run_ids.length === 1_000)
            service.faults.add({ kind: 'status', status: 500, times: 1, path: RUNS })
        }),
      ),
    )

    expect(answers.map(({ run_ids }) => run_ids.length)).toEqual([1_000, 1])
    expect(service.records().runs).toHaveLength(1_005)
    expect(service.faults.struck).toEqual({ status: 1 })
  })

  it('errors in doubt after its timeout', async () => {
    const { client, service } = await research({ processor: new HeldRuns() })
    const id = await group(client)
    const options = { ...exactly, settleTimeout: 0 }

    const error: unknown = await all(
      client.taskGroups
        .addRuns(id, { inputs: inputsOf(1_001) }, options)
        .pipe(tap(() => service.faults.add({ kind: 'truncated', times: 1, path: RUNS }))),
    ).catch((thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(UncertainWriteError)
    expect(error).toMatchObject({ inDoubt: [1_000], unsettled: expect.any(Error) })
  })

  it('sends nothing more when it is aborted', async () => {
    const { client, service } = await research({ processor: new HeldRuns() })
    const id = await group(client)
    const controller = new AbortController()
    const reason = new Error('enough')
    const options = { ...exactly, signal: controller.signal }

    const error: unknown = await all(
      client.taskGroups
        .addRuns(id, { inputs: inputsOf(3_000) }, options)
        .pipe(tap(() => controller.abort(reason))),
    ).catch((thrown: unknown) => thrown)

    expect(error).toBe(reason)
    expect(service.records().runs).toHaveLength(1_000)
  })
})
