import { describe, expect, it, onTestFinished } from 'vitest'
import { catchError, EMPTY, firstValueFrom, tap } from 'rxjs'
import { ArgumentError, createClient, ExecutionError, UncertainWriteError } from 'rivulet'
import type { ExecutedRun, ResearchClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import type { Processor } from 'rivulet/service'
import { z } from 'zod'
import { folderOf } from '../service/corpus/folder.ts'
import { all, HeldRuns, research } from './research.ts'

const inputsOf = (count: number) => Array.from({ length: count }, (_, n) => ({ input: `question ${n}` }))
const byIndex = (one: ExecutedRun, other: ExecutedRun) => one.index - other.index

async function group(client: ResearchClient): Promise<string> {
  const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
  return taskgroup_id
}

/** Completes every run, except for the given inputs, which fail this many times. */
function failing(times: Readonly<Record<string, number>>): Processor {
  const left = new Map(Object.entries(times))
  return {
    run: async ({ input }) => {
      const name = String(input.input)
      const failures = left.get(name) ?? 0
      left.set(name, failures - 1)
      if (failures > 0) throw new Error(`${name} failed`)
      return { output: { type: 'text', content: `about ${name}`, basis: [] } }
    },
  }
}

describe('execute, end to end', () => {
  it('adds 10,000 runs and emits each input once with its run and output', async () => {
    const { client, service } = await research()
    const id = await group(client)
    const inputs = inputsOf(10_000)

    const results = await all(client.taskGroups.execute(id, inputs))

    expect(
      results.toSorted(byIndex).map(({ index, input, output }) => [index, input, output?.content]),
    ).toEqual(inputs.map((input, index) => [index, input, `about ${JSON.stringify(input.input)}`]))
    expect(new Set(results.map(({ run }) => run.run_id))).toEqual(
      new Set(service.records().runs.map(({ run_id }) => run_id)),
    )
  })

  it('accepts a default task spec with its inputs', async () => {
    const { client } = await research({
      processor: {
        run: async ({ input }) => ({
          output: { type: 'text', content: JSON.stringify(input.task_spec), basis: [] },
        }),
      },
    })
    const id = await group(client)
    const default_task_spec = { output_schema: 'one sentence' }

    const results = await all(client.taskGroups.execute(id, { inputs: inputsOf(1), default_task_spec }))

    expect(results.map(({ output }) => output?.content)).toEqual([JSON.stringify(default_task_spec)])
  })

  it('emits runs in the order in which they end', async () => {
    const { client } = await research({ concurrency: 1 })
    const id = await group(client)

    const results = await all(client.taskGroups.execute(id, inputsOf(20)))

    const emitted = await all(client.taskGroups.runs(id))
    expect(results.map(({ run }) => `${run.run_id}:completed`)).toEqual(emitted.map((event) => event.id))
  })

  it('neither emits other runs of the group nor waits for them', async () => {
    const held = new HeldRuns()
    const echo = failing({})
    const { client } = await research({
      processor: { run: (task, signal) => (task.input.input === 'other' ? held : echo).run(task, signal) },
    })
    const id = await group(client)
    await all(client.taskGroups.addRuns(id, { inputs: [{ input: 'before' }, { input: 'other' }] }))

    const results = await all(client.taskGroups.execute(id, inputsOf(2)))

    expect(results.toSorted(byIndex).map(({ input }) => input.input)).toEqual(['question 0', 'question 1'])
  })

  it.each(['cut', 'close', 'invalid-cursor'] as const)(
    'emits each run once under the fault %s',
    async (kind) => {
      const { client, service } = await research()
      const id = await group(client)
      await all(client.taskGroups.addRuns(id, { inputs: inputsOf(3) }))
      // Then the cursor of the first batch is not empty.
      const wrong = kind === 'invalid-cursor' ? {} : { after: 2 }
      service.faults.add({ kind, times: 3, path: '/v1beta/tasks/groups', ...wrong })

      const results = await all(client.taskGroups.execute(id, inputsOf(30)))

      expect(results.toSorted(byIndex).map(({ index }) => index)).toEqual(
        inputsOf(30).map((_, index) => index),
      )
      expect(service.faults.struck[kind]).toBeGreaterThan(0)
    },
  )

  it('settles a request in doubt with exactlyOnce, and then emits its runs', async () => {
    const { client, service } = await research()
    const id = await group(client)
    // The group's status is read first.
    service.faults.add({ kind: 'truncated', times: 2, path: '/v1/tasks/groups' })

    const results = await all(
      client.taskGroups.execute(id, inputsOf(5), { exactlyOnce: true, settleDelay: 0 }),
    )

    expect(service.faults.struck).toEqual({ truncated: 2 })
    expect(results.toSorted(byIndex).map(({ index, input }) => [index, input])).toEqual(
      inputsOf(5).map((input, index) => [index, input]),
    )
    expect(service.records().runs).toHaveLength(5)
  })

  it('errors immediately when adding does', async () => {
    const { client, service } = await research()
    const id = await group(client)
    service.faults.add({ kind: 'status', status: 500, times: 1, path: '/v1/tasks/groups' })

    const results = all(client.taskGroups.execute(id, inputsOf(2)))

    await expect(results).rejects.toBeInstanceOf(UncertainWriteError)
  })

  it('can be read by a loop that is slower than the service', async () => {
    const { client } = await research()
    const id = await group(client)

    const seen: number[] = []
    for await (const { index } of client.taskGroups.execute(id, inputsOf(2_500))) {
      if (seen.length % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
      seen.push(index)
    }

    expect(new Set(seen).size).toBe(2_500)
  })

  it('refuses invalid arguments at the call', async () => {
    const { client } = await research()
    const { execute } = client.taskGroups

    expect(() => execute('', inputsOf(1))).toThrow(ArgumentError)
    expect(() => execute('g', [])).toThrow('inputs')
    expect(() => execute('g', { inputs: [] })).toThrow('inputs')
    expect(() => execute('g', inputsOf(1), { retryFailed: -1 })).toThrow('retryFailed')
  })
})

describe('execute with a schema, end to end', () => {
  it('makes the service answer from its documents in the shape of the schema', async () => {
    const text = '---\nname: Acme\nfounded: 1949\n---\n# Acme\n\nAcme was founded in 1949 and makes anvils.\n'
    const docs = await folderOf({ 'acme.md': text })
    const service = await createResearchService({ docs })
    onTestFinished(() => service.close())
    const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
    const { taskgroup_id } = await client.taskGroups.create()
    const Company = z.object({ founded: z.number().describe('The year in which Acme was founded') })
    const inputs = [{ input: 'When was Acme founded?', processor: 'base' }]

    const results = await all(client.taskGroups.execute(taskgroup_id, inputs, { schema: Company }))

    expect(results[0]?.output?.content.founded.toFixed(0)).toBe('1949')
    expect(results[0]?.output?.basis[0]?.citations).not.toEqual([])
  })
})

describe('execute with runs that fail, end to end', () => {
  it('emits them like the others, and errors with all of them at the end', async () => {
    const { client } = await research({ processor: failing({ 'question 1': 1, 'question 3': 1 }) })
    const id = await group(client)
    const results: ExecutedRun[] = []
    const errors: unknown[] = []

    await all(
      client.taskGroups.execute(id, inputsOf(5)).pipe(
        tap((result) => results.push(result)),
        catchError((error: unknown) => {
          errors.push(error)
          return EMPTY
        }),
      ),
    )

    expect(results.toSorted(byIndex).map(({ run, output }) => [run.status, output === null])).toEqual([
      ['completed', false],
      ['failed', true],
      ['completed', false],
      ['failed', true],
      ['completed', false],
    ])
    const [error] = errors
    expect(error).toBeInstanceOf(ExecutionError)
    expect(error).toMatchObject({
      message: expect.stringContaining('2 of 5 runs did not complete: inputs[1] failed (question 1 failed)'),
      retryable: false,
      runs: [
        { index: 1, input: { input: 'question 1' }, run: expect.objectContaining({ status: 'failed' }) },
        { index: 3, input: { input: 'question 3' }, run: expect.objectContaining({ status: 'failed' }) },
      ],
    })
  })

  it('retries them as often as given, and emits only the last run', async () => {
    const { client, service } = await research({
      processor: failing({ 'question 0': 2, 'question 1': 1, 'question 4': 2 }),
    })
    const id = await group(client)

    const results = await all(client.taskGroups.execute(id, inputsOf(5), { retryFailed: 2 }))

    expect(results.toSorted(byIndex).map(({ index, run }) => [index, run.status])).toEqual(
      inputsOf(5).map((_, index) => [index, 'completed']),
    )
    expect(service.records().runs).toHaveLength(5 + 5)
  })

  it('stops retrying after that, and continues with the others', async () => {
    const { client, service } = await research({ processor: failing({ 'question 0': 3, 'question 1': 1 }) })
    const id = await group(client)
    const results: ExecutedRun[] = []

    const error: unknown = await all(
      client.taskGroups
        .execute(id, inputsOf(3), { retryFailed: 1, exactlyOnce: true })
        .pipe(tap((result) => results.push(result))),
    ).catch((thrown: unknown) => thrown)

    expect(error).toMatchObject({ name: 'ExecutionError', runs: [{ index: 0 }] })
    expect(results.toSorted(byIndex).map(({ run }) => run.status)).toEqual([
      'failed',
      'completed',
      'completed',
    ])
    expect(service.records().runs).toHaveLength(3 + 2)
  })
})

describe('progress, end to end', () => {
  it('emits the progress of the group at each change, and completes with it', async () => {
    const { client } = await research({ processor: failing({ 'question 1': 1 }), concurrency: 1 })
    const id = await group(client)
    await all(client.taskGroups.addRuns(id, { inputs: inputsOf(2) }))

    const views = await all(client.taskGroups.progress(id))

    expect(views.map(({ ended, fraction, active }) => [ended, fraction, active])).toEqual([
      [0, 0, true],
      [1, 0.5, true],
      [2, 1, false],
    ])
    expect(views.at(-1)).toEqual({
      total: 2,
      counts: { completed: 1, failed: 1 },
      ended: 2,
      active: false,
      fraction: 1,
    })
  })

  it('starts after a given event', async () => {
    const { client } = await research()
    const id = await group(client)
    await all(client.taskGroups.execute(id, inputsOf(2)))
    const events = await all(client.taskGroups.events(id))

    const views = await all(
      client.taskGroups.progress(id, { last_event_id: events.at(-2)?.cursor ?? 'none' }),
    )

    expect(views.map(({ ended }) => ended)).toEqual([2])
  })

  it('is 0 of 0 for a group without runs, and continues until it has some', async () => {
    const { client } = await research()
    const id = await group(client)

    const view = await firstValueFrom(client.taskGroups.progress(id))

    expect(view).toEqual({ total: 0, counts: {}, ended: 0, active: false, fraction: 0 })
  })
})
