import { describe, expect, it } from 'vitest'
import type { TaskRun } from '../../../src/protocol/index.ts'
import type { TaskOutput } from '../../../src/protocol/index.ts'
import type { Processor } from '../../../src/service/index.ts'
import { newRuns } from '../../../src/service/tasks/run-request.ts'
import { eventLoopTurns } from '../../support/event-loop-turns.ts'
import { isolatedWork } from '../isolated/isolated-work.ts'
import { running } from '../running.ts'

const asking = (json_schema: Readonly<Record<string, unknown>>) => ({
  input: 'x',
  processor: 'base',
  task_spec: { output_schema: { type: 'json' as const, json_schema } },
})

/** A processor with this output. */
const giving = (output: TaskOutput): Processor => ({ run: () => Promise.resolve({ output }) })

const isolated = isolatedWork()

describe('an output schema that is not valid', () => {
  it.each<[string, Readonly<Record<string, unknown>>, string]>([
    [
      'an unknown type',
      { properties: { a: { type: 'nonsense' } } },
      'json_schema.properties.a.type: must be equal',
    ],
    ['a keyword of the wrong type', { required: 'a' }, 'json_schema.required: must be array'],
    [
      'a pattern that is none',
      { properties: { a: { pattern: '(' } } },
      'properties.a.pattern: Expected a regular',
    ],
    ['an unknown reference', { $ref: '#/$defs/none' }, "json_schema: can't resolve reference #/$defs/none"],
    [
      'a remote reference',
      { $ref: 'http://127.0.0.1:9/x' },
      'only references within the schema are resolved',
    ],
    ['a reference to itself', { $ref: '#' }, 'Its references to itself have no end'],
    ['a root that is no object', { type: 'array' }, 'json_schema.type: Expected an object'],
    ['an asynchronous validation', { $async: true }, 'json_schema.$async: This keyword is not supported'],
  ])('is refused when a run is created: %s', async (_, schema, message) => {
    const { post, service } = await running()
    const answer = await post('/v1/tasks/runs', asking(schema))

    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toContain(message)
    expect(service.records().runs).toEqual([])
  })

  it('is refused in a group, with its place: of an input, and of the default', async () => {
    const { group, post } = await running()
    const path = `/v1/tasks/groups/${await group()}/runs`
    const { task_spec } = asking({ properties: { a: { minLength: -1 } } })
    const ofInput = await post<{ detail: unknown }>(path, {
      inputs: [{ input: 'x' }, { input: 'x', task_spec }],
    })
    const ofDefault = await post<{ detail: unknown }>(path, {
      inputs: [{ input: 'x' }],
      default_task_spec: task_spec,
    })

    const inSpec = ['output_schema', 'json_schema', 'properties', 'a', 'minLength']
    expect([ofInput.status, ofDefault.status]).toEqual([422, 422])
    expect(ofInput.body.detail).toMatchObject([{ loc: ['body', 'inputs', '1', 'task_spec', ...inSpec] }])
    expect(ofDefault.body.detail).toMatchObject([{ loc: ['body', 'default_task_spec', ...inSpec] }])
  })

  it('does not take longer than a second, whatever it is', async () => {
    const { post } = await running()
    const doubled = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => {
        const next = { $ref: `#/$defs/d${index + 1}` }
        return [`d${index}`, { allOf: [next, next] }]
      }),
    )
    const $defs = { ...doubled, d100: {} }
    const answer = await post('/v1/tasks/runs', asking({ $ref: '#/$defs/d0', $defs }))

    expect(answer.status).toBe(422)
    expect(answer.body.error.message).toContain('cannot be processed within 1000 ms')

    const inputs = ['a', 'b', 'c'].map((title) => asking({ title, $ref: '#/$defs/d0', $defs }))
    const ofGroup = await newRuns(isolated, inputs, undefined)
    expect(ofGroup.issues).toMatchObject([{ loc: expect.arrayContaining(['inputs', '0']) }])
  })

  it('is looked for while the event loop gets its turn', async () => {
    const inputs = Array.from({ length: 20 }, (_, index) => asking({ properties: { [`p${index}`]: {} } }))
    const read = newRuns(isolated, inputs, undefined)

    expect(await eventLoopTurns(read)).toBeGreaterThanOrEqual(20)
    expect((await read).runs).toHaveLength(20)
  })

  it.each([
    ['draft-07 by name', { $schema: 'http://json-schema.org/draft-07/schema#', definitions: { a: {} } }],
    ['draft-07 by its lists of items', { properties: { a: { items: [{ type: 'string' }] } } }],
    ['2020-12', { $schema: 'https://json-schema.org/draft/2020-12/schema', $defs: { a: {} } }],
  ])('is none that follows %s', async (_, schema) => {
    const { post } = await running()
    expect((await post('/v1/tasks/runs', asking(schema))).status).toBe(202)
  })
})

describe('the answer of any processor', () => {
  const schema = {
    properties: { count: { type: 'integer' }, tags: { type: 'array', items: { enum: ['a', 'b'] } } },
    required: ['count'],
  }
  const json = (content: Record<string, unknown>): TaskOutput => ({ type: 'json', content, basis: [] })

  it.each<[string, TaskOutput, string]>([
    ['a missing field', json({}), 'count: is required, and nothing was found for it'],
    ['null', json({ count: null }), 'count: must be integer'],
    [
      'another value',
      json({ count: 1, tags: ['a', 'c'] }),
      'tags.1: must be equal to one of the allowed values: ["a","b"]',
    ],
    [
      'text',
      { type: 'text', content: 'count: 1', basis: [] },
      'The answer is text, but the output schema asks for JSON',
    ],
  ])('fails the run if it does not satisfy the schema: %s', async (_, output, reason) => {
    const { get, post } = await running({ processor: giving(output) })
    const { body } = await post<TaskRun>('/v1/tasks/runs', asking(schema))
    const answer = await get(`/v1/tasks/runs/${body.run_id}/result`)

    expect(answer.status).toBe(404)
    expect(JSON.stringify(answer.body.error.detail?.['run'])).toContain(JSON.stringify(reason).slice(1, -1))
  })

  it('fails the run if its pattern backtracks without end', async () => {
    const processor = giving(json({ name: `${'a'.repeat(60)}!` }))
    const { get, post } = await running({ processor })
    const { body } = await post<TaskRun>(
      '/v1/tasks/runs',
      asking({ properties: { name: { pattern: '^(a|a)*$' } } }),
    )
    const answer = await get(`/v1/tasks/runs/${body.run_id}/result`)
    expect(JSON.stringify(answer.body.error.detail)).toContain('cannot be processed within 1000 ms')
  })

  it('completes the run if it satisfies the schema', async () => {
    const output = json({ count: 2, tags: ['b'] })
    const { get, post } = await running({ processor: giving(output) })
    const { body } = await post<TaskRun>('/v1/tasks/runs', asking(schema))
    expect((await get<{ output: TaskOutput }>(`/v1/tasks/runs/${body.run_id}/result`)).body.output).toEqual(
      output,
    )
  })
})
