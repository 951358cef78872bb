import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { firstValueFrom } from 'rxjs'
import { describe, expect, expectTypeOf, it, onTestFinished } from 'vitest'
import { ArgumentError, createClient, OutputSchemaError } from 'rivulet'
import type { CheckedOutput, GroupRunEvent, Source, StandardSchema, TaskOutput } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { z } from 'zod'
import { all } from '../../e2e/research.ts'
import { answer, openStream, queryOf, serve, sse } from '../../support/serve.ts'
import { settled } from '../../support/settled.ts'
import type { CheckedGroupRunEvent } from '../../../src/sources/task-groups/typed-runs.ts'
import type { StandardResult } from '../../../src/protocol/standard-schema.ts'

const Company = z.object({ name: z.string(), founded: z.number() })
const json = (content: object): TaskOutput => ({ type: 'json', content: { ...content }, basis: [] })
const acme = json({ name: 'Acme', founded: 1949 })
const globex = json({ name: 'Globex', founded: 1989 })

/** The event of an ended run. */
const ended = (n: number, output?: unknown, status = 'completed') => ({
  type: 'task_run.state',
  event_id: `${n}`,
  run: { run_id: `run_${n}`, status, is_active: false, processor: 'p', created_at: 'c', modified_at: 'm' },
  ...(output !== undefined && { output }),
})

interface StreamEvent {
  readonly type: string
  readonly event_id: string
  readonly run?: { readonly status: string }
  readonly error?: object
}

/** A client of a group whose runs stream sends these events and is done, and the recorded queries. */
async function streaming(events: readonly StreamEvent[]) {
  const queries: URLSearchParams[] = []
  const counts: Record<string, number> = {}
  for (const { run } of events) if (run !== undefined) counts[run.status] = (counts[run.status] ?? 0) + 1
  const num_task_runs = events.filter(({ run }) => run !== undefined).length
  const status = { num_task_runs, is_active: false, task_run_status_counts: counts }
  const baseUrl = await serve(async (request: IncomingMessage, response) => {
    if (request.url?.includes('/runs') !== true) return answer(response, { taskgroup_id: 'g', status })
    const query = queryOf(request)
    queries.push(query)
    openStream(response)
    for (const event of events.slice(Number(query.get('last_event_id') ?? 0)))
      if (!response.write(sse(event))) await once(response, 'drain')
    response.end()
  })
  const { taskGroups } = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
  return { taskGroups, queries }
}

/** A schema whose checks the test ends, in any order. */
class PendingChecks {
  readonly #checks: ((result: StandardResult<string>) => void)[] = []

  get count(): number {
    return this.#checks.length
  }

  /** Ends the n-th check. */
  pass(n: number): void {
    this.#checks[n]?.({ value: `checked ${n}` })
  }

  readonly #validator: StandardSchema<string> = {
    '~standard': {
      version: 1,
      vendor: 'test',
      validate: () => new Promise((resolve) => this.#checks.push(resolve)),
    },
  }

  readonly schema = { schema: this.#validator, jsonSchema: { type: 'object' } }
}

/** Records the run ids and contents of the events, and how the source ends. */
function recording(source: Source<CheckedGroupRunEvent<string>>) {
  const seen: string[] = []
  const end = new Promise<unknown>((resolve) => {
    const subscription = source.subscribe({
      next: (event) =>
        seen.push(
          event.type === 'task_run.state'
            ? `${event.data.run.run_id} ${event.data.output?.content ?? 'nothing'}`
            : event.type,
        ),
      error: resolve,
      complete: () => resolve('completed'),
    })
    onTestFinished(() => subscription.unsubscribe())
  })
  return { seen, end }
}

describe('runs with a schema', () => {
  it('requests outputs, checks and types them', async () => {
    const { taskGroups, queries } = await streaming([ended(1, acme), ended(2, globex)])

    const runs = await all(taskGroups.runs('g', { schema: Company }).pipe(ofType('task_run.state')))

    expectTypeOf(runs[0]?.data.output).toEqualTypeOf<
      CheckedOutput<{ name: string; founded: number }> | null | undefined
    >()
    expect(runs.map(({ data }) => data.output?.content.founded)).toEqual([1949, 1989])
    expect(runs[0]).toMatchObject({ id: 'run_1:completed', cursor: '1', data: { output: acme } })
    expect(runs[0]?.data).not.toHaveProperty('misfit')
    expect(queries[0]?.get('include_output')).toBe('true')
  })

  it('emits the content as the schema returned it', async () => {
    const Founding = Company.transform(({ founded }) => new Date(Date.UTC(founded, 0)))
    const { taskGroups } = await streaming([ended(1, acme)])

    const { data } = await firstValueFrom(
      taskGroups.runs('g', { schema: Founding }).pipe(ofType('task_run.state')),
    )

    expectTypeOf(data.output?.content).toEqualTypeOf<Date | undefined>()
    expect(data.output?.content.getUTCFullYear()).toBe(1949)
  })

  it.each<[string, unknown, string]>([
    ['another content', json({ name: 'Acme', founded: 'long ago' }), 'founded'],
    ['a text', { type: 'text', content: 'Acme was founded in 1949', basis: [] }, 'type is text'],
    ['null', null, 'no output'],
    ['no output at all', undefined, 'no output'],
    ['an output that is not an object', 7, 'type is undefined'],
  ])('emits a run that completed with %s with a misfit', async (_name, output, reason) => {
    const { taskGroups } = await streaming([ended(1, output), ended(2, globex)])

    const runs = await all(taskGroups.runs('g', { schema: Company }).pipe(ofType('task_run.state')))

    expect(runs.map(({ data }) => data.output?.content.name)).toEqual([undefined, 'Globex'])
    expect(runs[0]).toMatchObject({ id: 'run_1:completed', cursor: '1', data: { output: null } })
    expect(runs[0]?.data.misfit).toBeInstanceOf(OutputSchemaError)
    expect(runs[0]?.data.misfit).toMatchObject({
      output: output ?? null,
      message: expect.stringContaining(reason),
    })
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('a bug')
      },
    ],
    ['rejects', () => Promise.reject(new Error('a bug'))],
  ])('emits a run whose schema %s', async (_name, validate) => {
    const schema: StandardSchema<object> = { '~standard': { version: 1, vendor: 'test', validate } }
    const { taskGroups } = await streaming([ended(1, acme)])

    const runs = await all(
      taskGroups
        .runs('g', { schema: { schema, jsonSchema: { type: 'object' } } })
        .pipe(ofType('task_run.state')),
    )

    expect(runs.map(({ data }) => data.misfit?.cause)).toMatchObject([{ message: 'a bug' }])
  })

  it.each<[string, StreamEvent]>([
    ['a run that failed', ended(1, null, 'failed')],
    ['a run that was cancelled', ended(1, undefined, 'cancelled')],
    ['an error of the stream', { type: 'error', event_id: '1', error: { ref_id: 'r', message: 'm' } }],
    ['an unknown event', { type: 'novelty', event_id: '1' }],
  ])('emits %s unchanged', async (_name, event) => {
    const { taskGroups } = await streaming([event, ended(2, acme)])

    const checked = await all(taskGroups.runs('g', { schema: Company }))
    const plain = await all(taskGroups.runs('g', { include_output: true }))

    const [first] = plain
    expect(checked).toHaveLength(2)
    expect(checked[0]).toEqual({ ...first, received: expect.any(String) })
  })

  it('emits runs unchanged if outputs were not requested', async () => {
    const { taskGroups, queries } = await streaming([ended(1), ended(2, null)])

    const runs = await all(taskGroups.runs('g', { schema: Company, include_output: false }))

    expect(queries[0]?.get('include_output')).toBe('false')
    expect(runs.map(({ data }) => data)).toEqual([
      { type: 'task_run.state', event_id: '1', run: ended(1).run },
      { type: 'task_run.state', event_id: '2', run: ended(2).run, output: null },
    ])
  })

  it('keeps the order of the stream with an asynchronous schema, and completes after the last check', async () => {
    const checks = new PendingChecks()
    const { taskGroups } = await streaming([ended(1, acme), ended(2, null, 'failed'), ended(3, globex)])
    const { seen, end } = recording(taskGroups.runs('g', { schema: checks.schema }))
    await settled(() => checks.count)

    checks.pass(1)
    await settled(() => checks.count)
    const before = [...seen]
    checks.pass(0)

    expect(await end).toBe('completed')
    expect(before).toEqual([])
    expect(seen).toEqual(['run_1 checked 0', 'run_2 nothing', 'run_3 checked 1'])
  })

  it('emits earlier events before an error of the stream', async () => {
    const checks = new PendingChecks()
    const baseUrl = await serve((request, response) => {
      if (queryOf(request).has('last_event_id'))
        return answer(response, { type: 'error', error: { ref_id: 'r', message: 'no' } }, 403)
      openStream(response)
      response.write(sse(ended(1, acme)), () => response.destroy())
    })
    const { taskGroups } = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
    const { seen, end } = recording(taskGroups.runs('g', { schema: checks.schema }))
    await settled(() => checks.count)

    checks.pass(0)

    expect(await end).toMatchObject({ status: 403 })
    expect(seen).toEqual(['run_1 checked 0'])
  })

  it('errors with its signal while a check is pending, and emits nothing after it', async () => {
    const checks = new PendingChecks()
    const abort = new AbortController()
    const { taskGroups } = await streaming([ended(1, acme), ended(2, globex)])
    const { seen, end } = recording(taskGroups.runs('g', { schema: checks.schema, signal: abort.signal }))
    await settled(() => checks.count)

    abort.abort(new Error('enough'))

    expect(await end).toMatchObject({ message: 'enough' })
    checks.pass(0)
    checks.pass(1)
    await settled(() => checks.count)
    expect(seen).toEqual([])
  })

  it('pauses the stream while many checks are pending, without losing an event', async () => {
    const total = 20_000
    const padding = 'x'.repeat(1_000)
    const { taskGroups } = await streaming(
      Array.from({ length: total }, (_, n) => ended(n + 1, json({ padding }))),
    )
    const checks = new PendingChecks()
    const { seen, end } = recording(taskGroups.runs('g', { schema: checks.schema }))

    await settled(() => checks.count)
    const under = checks.count
    let passed = 0
    while (passed < total) {
      while (passed < checks.count) checks.pass(passed++)
      await settled(() => checks.count)
    }

    expect(await end).toBe('completed')
    expect(under).toBeGreaterThanOrEqual(100)
    expect(under).toBeLessThan(total / 10)
    expect(seen).toHaveLength(total)
    expect(seen.every((each, n) => each === `run_${n + 1} checked ${n}`)).toBe(true)
  })

  it('is paused by a loop', async () => {
    const total = 20_000
    const { taskGroups } = await streaming(
      Array.from({ length: total }, (_, n) => ended(n + 1, json({ name: 'x'.repeat(1_000), founded: n }))),
    )
    let checked = 0
    const Counted = Company.refine(() => {
      checked += 1
      return true
    })

    const cursors: (string | undefined)[] = []
    let ahead = 0
    for await (const { cursor } of taskGroups.runs('g', { schema: Counted })) {
      if (cursors.push(cursor) > 1) continue
      await settled(() => checked)
      ahead = checked
    }

    expect(ahead).toBeLessThan(total / 2)
    expect(cursors).toEqual(Array.from({ length: total }, (_, n) => `${n + 1}`))
  })

  it.each<[string, unknown]>([
    ['a number', 7],
    ['null', null],
    ['a bare JSON Schema', { type: 'object' }],
    ['a JSON Schema beside no schema', { schema: undefined, jsonSchema: {} }],
  ])('rejects %s as a schema at the call', async (_name, schema) => {
    const { taskGroups, queries } = await streaming([])
    const runs = () => taskGroups.runs('g', { schema } as never)

    expect(runs).toThrow(ArgumentError)
    expect(runs).toThrow(/schema must be a Standard Schema/)
    expect(queries).toEqual([])
  })

  it('rejects a misspelled option by name', async () => {
    const { taskGroups } = await streaming([])

    expect(() => taskGroups.runs('g', { schema: Company, includeOutput: true } as never)).toThrow(
      'did you mean include_output?',
    )
    expect(() => taskGroups.runs('g', { shema: Company } as never)).toThrow('did you mean schema?')
  })
})

describe('runs without a schema', () => {
  it('keep their type and are emitted unchanged', async () => {
    const { taskGroups, queries } = await streaming([ended(1, acme)])

    const runs = taskGroups.runs('g')
    expectTypeOf(runs).toEqualTypeOf<Source<GroupRunEvent>>()
    const [event] = await all(runs)

    expect(event?.data).toEqual({ ...ended(1, acme) })
    expect(queries[0]?.has('include_output')).toBe(false)
  })
})
