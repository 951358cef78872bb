import type { ServerResponse } from 'node:http'
import { tap } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  ArgumentError,
  checkOutput,
  createClient,
  ExecutionError,
  outputSchema,
  OutputSchemaError,
} from 'rivulet'
import type { AddRunsRequest, ExecutedRun, StandardSchema, TaskOutput } from 'rivulet'
import { z } from 'zod'
import { all } from '../../e2e/research.ts'
import { answer, openStream, serve, sse } from '../../support/serve.ts'
import { bodyOf } from '../../transport/server.ts'

const Company = z.object({ name: z.string(), founded: z.number() })
const json = (content: object): TaskOutput => ({ type: 'json', content: { ...content }, basis: [] })

/** A client of a group whose runs end with these outputs, and the recorded requests. */
async function answering(...outputs: (TaskOutput | null | 'failed')[]) {
  const requests: AddRunsRequest[] = []
  let size = 0
  const status = () => {
    const counts = { completed: size }
    return {
      num_task_runs: size,
      task_run_status_counts: counts,
      is_active: false,
      status_message: '',
      modified_at: 'm',
    }
  }
  const stream = (response: ServerResponse) => {
    openStream(response)
    for (const [n, output] of outputs.slice(0, size).entries()) {
      const run = {
        run_id: `run_${n}`,
        status: output === 'failed' ? 'failed' : 'completed',
        is_active: false,
        processor: 'p',
        created_at: 'c',
        modified_at: 'm',
      }
      const event = { type: 'task_run.state', event_id: `${n}`, run, output }
      response.write(sse(event))
    }
    response.end()
  }
  const baseUrl = await serve(async (request, response) => {
    if (request.method === 'POST') {
      const body = JSON.parse(await bodyOf(request)) as AddRunsRequest
      requests.push(body)
      const run_ids = body.inputs.map(() => `run_${size++}`)
      return answer(response, { status: status(), run_ids, run_cursor: '', event_cursor: '' })
    }
    if (request.url?.includes('/runs') === true) return stream(response)
    return answer(response, { taskgroup_id: 'g', status: status(), created_at: 'c' })
  })
  const { taskGroups } = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
  return { requests, taskGroups }
}

/** The emitted results, and the error after them. */
async function outcome<T>(source: Observable<T>): Promise<{ results: T[]; error: unknown }> {
  const results: T[] = []
  const error: unknown = await all(source.pipe(tap((result) => results.push(result)))).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { results, error }
}

const inputs = [{ input: 'Acme' }, { input: 'Globex' }]

describe('execute with a schema', () => {
  it('sends its JSON Schema with every run, and types the outputs', async () => {
    const { requests, taskGroups } = await answering(
      json({ name: 'Acme', founded: 1949 }),
      json({ name: 'Globex', founded: 1989 }),
    )

    const results = await all(taskGroups.execute('g', inputs, { schema: Company }))

    expectTypeOf(results[0]?.output?.content).toEqualTypeOf<{ name: string; founded: number } | undefined>()
    expect(results.map(({ output }) => output?.content.founded)).toEqual([1949, 1989])
    expect(results.map(({ input }) => input)).toEqual(inputs)
    const { $schema, ...rest } = z.toJSONSchema(Company, { io: 'input' })
    expect($schema).toBeTypeOf('string')
    for (const input of requests[0]?.inputs ?? [])
      expect(input.task_spec).toMatchObject({ output_schema: { type: 'json', json_schema: rest } })
    expect(requests[0]?.inputs).toHaveLength(2)
  })

  it('accepts any Standard Schema with a separate JSON Schema, and an asynchronous one', async () => {
    const year: StandardSchema<{ year: number }> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value) => ({ value: { year: Number((value as { founded: string }).founded) } }),
      },
    }
    const jsonSchema = { type: 'object', properties: { founded: { type: 'string' } } }
    const { requests, taskGroups } = await answering(json({ founded: '1949' }), json({ founded: '1989' }))

    const results = await all(taskGroups.execute('g', inputs, { schema: { schema: year, jsonSchema } }))

    expectTypeOf(results[0]?.output?.content).toEqualTypeOf<{ year: number } | undefined>()
    expect(results.map(({ output }) => output?.content)).toEqual([{ year: 1949 }, { year: 1989 }])
    expect(requests[0]?.inputs[0]?.task_spec?.output_schema).toEqual({
      type: 'json',
      json_schema: jsonSchema,
    })
  })

  it('keeps the other fields of a task spec', async () => {
    const { requests, taskGroups } = await answering(
      json({ name: 'Acme', founded: 1 }),
      json({ name: 'G', founded: 2 }),
    )
    const request = {
      inputs: [{ input: 'Acme', task_spec: { input_schema: 'a company' } }, { input: 'Globex' }],
      default_task_spec: { input_schema: 'a name' },
    }

    await all(taskGroups.execute('g', request, { schema: Company }))

    const schemas = requests[0]?.inputs.map(({ task_spec }) => task_spec?.input_schema)
    expect(schemas).toEqual(['a company', 'a name'])
  })

  it.each<[string, TaskOutput | null, string]>([
    ['another content', json({ name: 'Acme', founded: 'long ago' }), 'founded'],
    ['a text', { type: 'text', content: 'Acme was founded in 1949', basis: [] }, 'type is text'],
    ['no output', null, 'no output'],
  ])('emits a run that completed with %s with its misfit', async (_name, output, reason) => {
    const { taskGroups } = await answering(output, json({ name: 'Globex', founded: 1989 }))

    const { results, error } = await outcome(
      taskGroups.execute('g', inputs, { schema: Company, retryFailed: 3 }),
    )

    expect(results.map(({ output: fitting }) => fitting?.content.name)).toEqual([undefined, 'Globex'])
    expect(results[0]?.misfit).toBeInstanceOf(OutputSchemaError)
    expect(results[0]?.misfit).toMatchObject({ output, message: expect.stringContaining(reason) })
    expect(error).toBeInstanceOf(ExecutionError)
    expect(error).toMatchObject({
      runs: [{ index: 0, input: inputs[0], run: { run_id: 'run_0' }, misfit: results[0]?.misfit }],
      message: expect.stringContaining('1 of 2 runs did not complete: inputs[0] '),
    })
  })

  it('names the issues of an output that does not match', async () => {
    const { taskGroups } = await answering(json({ name: 7, founded: 'long ago' }))

    const { results } = await outcome(taskGroups.execute('g', [{ input: 'Acme' }], { schema: Company }))

    expect(results[0]?.misfit?.issues.map(({ path }) => path)).toEqual([['name'], ['founded']])
    expect(results[0]?.misfit?.message).toMatch(/name: .*; founded: /)
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
    const { taskGroups } = await answering(json({}))

    const { results } = await outcome(
      taskGroups.execute('g', [{ input: 'Acme' }], { schema: { schema, jsonSchema: { type: 'object' } } }),
    )

    expect(results[0]?.misfit?.cause).toMatchObject({ message: 'a bug' })
  })

  it('does not check the output of a failed run', async () => {
    const { taskGroups } = await answering('failed')

    const { results, error } = await outcome(
      taskGroups.execute('g', [{ input: 'Acme' }], { schema: Company }),
    )

    expect(results).toMatchObject([{ output: null, run: { status: 'failed' } }])
    expect(results[0]).not.toHaveProperty('misfit')
    expect(error).toBeInstanceOf(ExecutionError)
  })

  it('emits outputs unchanged without a schema', async () => {
    const { taskGroups } = await answering(json({ any: 'thing' }))

    const results = await all(taskGroups.execute('g', [{ input: 'Acme' }]))

    expectTypeOf(results).toEqualTypeOf<ExecutedRun[]>()
    expect(results[0]?.output).toEqual(json({ any: 'thing' }))
  })

  it.each<[string, unknown]>([
    ['no schema', 7],
    ['null', null],
    ['a bare JSON Schema', { type: 'object' }],
    [
      'a Standard Schema without a JSON Schema',
      { '~standard': { version: 1, vendor: 'x', validate: () => ({}) } },
    ],
    ['one that cannot be converted to JSON Schema', z.object({ at: z.date() })],
  ])('rejects %s at the call', async (_name, schema) => {
    const { taskGroups, requests } = await answering()
    const execute = () => taskGroups.execute('g', inputs, { schema } as never)

    expect(execute).toThrow(ArgumentError)
    expect(execute).toThrow(/schema/)
    expect(requests).toEqual([])
  })

  it('rejects a second output schema', async () => {
    const { taskGroups } = await answering()
    const task_spec = { output_schema: 'a sentence' }
    const options = { schema: Company }

    expect(() => taskGroups.execute('g', [{ input: 'i', task_spec }], options)).toThrow(
      'inputs[0].task_spec.output_schema must be left out',
    )
    expect(() => taskGroups.execute('g', { inputs, default_task_spec: task_spec }, options)).toThrow(
      'default_task_spec.output_schema must be left out',
    )
  })
})

describe('checkOutput', () => {
  it('resolves to the output of any run with the type of its schema', async () => {
    const checked = await checkOutput(Company, json({ name: 'Acme', founded: 1949, more: true }))

    expectTypeOf(checked.content).toEqualTypeOf<{ name: string; founded: number }>()
    expect(checked).toEqual({ type: 'json', content: { name: 'Acme', founded: 1949 }, basis: [] })
  })

  it('rejects with the issues of an output that does not match', async () => {
    await expect(checkOutput(Company, json({ name: 'Acme' }))).rejects.toBeInstanceOf(OutputSchemaError)
    await expect(checkOutput(Company, undefined)).rejects.toMatchObject({ output: null })
  })

  it.each([
    [{ type: 'text' }, 'its type is text, not json'],
    [{ type: { toString: 1, valueOf: 1 } }, 'its type is an object, not json'],
    [{}, 'its type is undefined, not json'],
    [{ type: null }, 'its type is null, not json'],
  ])('rejects with an OutputSchemaError for any type of output: %j', async (output, message) => {
    // As a service could send it.
    const sent: TaskOutput = JSON.parse(JSON.stringify(output))
    await expect(checkOutput(Company, sent)).rejects.toMatchObject({
      name: 'OutputSchemaError',
      issues: [{ message }],
    })
  })

  it('works with outputSchema for runs of addRuns', () => {
    expect(outputSchema(Company)).toMatchObject({
      type: 'json',
      json_schema: { required: ['name', 'founded'] },
    })
  })
})
