import { lastValueFrom, toArray } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import {
  AuthenticationError,
  OutputSchemaError,
  RunFailedError,
  RunInterruptedError,
  RunTimeoutError,
  UncertainRunError,
  ValidationError,
} from 'rivulet'
import type { RunEvent, TaskRunResult } from 'rivulet'
import { reconnect } from 'rivulet/operators'
import { answer } from '../../support/serve.ts'
import { brief, done, message, runAs, runService, state, text } from './run-service.ts'

const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()))
const failure = { error: { ref_id: 'x', message: 'no' } }
const Answer = z.object({ founded: z.number() })
const founded = { type: 'json', content: { founded: 1949 }, basis: [] }
const errorOf = (source: PromiseLike<unknown>) => source.then(null, (error: unknown) => error)

describe('the creation of a run', () => {
  it('sends the request once, with the beta headers of what it asks for', async () => {
    const { client, requests } = await runService()
    const webhook = { url: 'https://example.org/hook', event_types: ['task_run.status'] }

    expect(await client.tasks.create({ input: 'x', processor: 'base' })).toEqual(runAs('queued'))
    await client.tasks.create({ input: 'x', processor: 'base', webhook }, { basisPerElement: true })

    expect(requests.map(({ line, beta }) => [line, beta])).toEqual([
      ['POST /v1/tasks/runs', undefined],
      ['POST /v1/tasks/runs', 'webhook-2025-08-12,field-basis-2025-11-25'],
    ])
  })

  it('sends the schema as the output schema, beside the rest of the spec', async () => {
    const { client, requests } = await runService()
    const task_spec = { input_schema: 'a company' }

    await client.tasks.create({ input: 'Acme', processor: 'base', task_spec }, { schema: Answer })

    expect(requests[0]?.body).toMatchObject({
      task_spec: {
        input_schema: 'a company',
        output_schema: { type: 'json', json_schema: { properties: { founded: { type: 'number' } } } },
      },
    })
  })

  it.each([
    ['breaks', (response: never) => (response as { destroy(): void }).destroy()],
    ['is refused with 500', (response: never) => answer(response, failure, 500)],
    ['is answered with what is no run', (response: never) => answer(response, { run_id: '..' }, 202)],
  ])('is not repeated if the request %s, as the run may exist', async (_, create) => {
    const { client, lines } = await runService({ create: create as never })
    const source = client.tasks.create({ input: 'x', processor: 'base' })

    await expect(all(source.pipe(reconnect({ initialDelay: 0 })))).rejects.toThrow(UncertainRunError)
    expect(lines()).toHaveLength(1)
  })

  it('is repeated if the service has certainly not acted on it', async () => {
    const { client, lines } = await runService({
      create: (response, nth) =>
        nth === 1 ? answer(response, failure, 429) : answer(response, runAs('queued'), 202),
    })

    expect(await client.tasks.create({ input: 'x', processor: 'base' })).toMatchObject({ run_id: 'r' })
    expect(lines()).toHaveLength(2)
  })

  it('has arguments that are checked at the call', async () => {
    const { client } = await runService()
    const output_schema = { type: 'auto' } as const
    expect(() => client.tasks.create({ input: 'x' } as never)).toThrow('processor must be')
    expect(() =>
      client.tasks.create({ input: 'x', processor: 'p', task_spec: { output_schema } }, { schema: Answer }),
    ).toThrow('task_spec.output_schema must be left out, as schema sets it')
    expect(() => client.tasks.create({ input: 'x', processor: 'p' }, { fieldBasis: true } as never)).toThrow(
      'no option fieldBasis',
    )
  })
})

describe('a run from its creation to its result', () => {
  it('emits the state of its creation, its events and its end; an `await` returns its result', async () => {
    const events = [state('queued'), message('plan'), state('running'), done].join('')
    const { client, requests } = await runService({ events: (response) => response.end(events) })
    const source = client.tasks.run('What is it?')
    expectTypeOf(source).toExtend<Observable<RunEvent>>()
    expect(requests).toEqual([])

    expect(brief(await all(source))).toEqual(['queued', 'plan', 'running', 'completed'])
    const result = await source
    expectTypeOf(result).toEqualTypeOf<TaskRunResult>()
    expect(result).toEqual({ run: runAs('completed'), output: text('42') })

    expect(requests[0]).toMatchObject({
      line: 'POST /v1/tasks/runs',
      body: { input: 'What is it?', processor: 'base', enable_events: true },
    })
    // Each subscription and each `await` is a run.
    expect(requests.map(({ line }) => line)).toEqual([
      'POST /v1/tasks/runs',
      'GET /v1/tasks/runs/r/events',
      'POST /v1/tasks/runs',
      'GET /v1/tasks/runs/r/events',
    ])
  })

  it('creates one run, however often its stream breaks', async () => {
    const { client, lines } = await runService({
      events: (response, nth) =>
        nth < 6
          ? response.write(state('running') + message('plan'), () => response.destroy())
          : response.end(state('running') + message('plan') + done),
    })

    expect(brief(await all(client.tasks.run('x')))).toEqual(['queued', 'running', 'plan', 'completed'])
    expect(lines().filter((line) => line.startsWith('POST'))).toHaveLength(1)
  })

  it.each([404, 409, 422, 403])(
    'ends with the result if the service refuses the stream with %i',
    async (status) => {
      const { client, lines } = await runService({
        stream: (response) => answer(response, failure, status),
        result: (response, nth) =>
          nth === 1
            ? answer(response, failure, 408)
            : answer(response, { run: runAs('completed'), output: text('42') }),
      })

      expect(brief(await all(client.tasks.run('x')))).toEqual(['queued', 'completed'])
      expect(await client.tasks.run('x')).toMatchObject({ output: text('42') })
      expect(lines().filter((line) => line.startsWith('POST'))).toHaveLength(2)
    },
  )

  it('ends with the result if the last state has no output', async () => {
    const { client } = await runService({
      events: (response) => response.end(state('running') + state('completed')),
    })

    expect(await client.tasks.run('x')).toMatchObject({ output: text('42') })
  })

  it('ends with the result if the service never sends the last state', async () => {
    const { client } = await runService(
      { events: (response) => response.end(state('running')) },
      { patience: 0 },
    )

    expect(brief(await all(client.tasks.run('x')))).toEqual(['queued', 'running', 'completed'])
  })

  it('types the output by its schema, which is sent', async () => {
    const { client, requests } = await runService({
      events: (response) => response.end(state('queued') + state('completed', { output: founded })),
    })

    const { output } = await client.tasks.run('Acme', { schema: Answer, processor: 'core' })

    expectTypeOf(output.content.founded).toBeNumber()
    expect(output.content.founded).toBe(1949)
    expect(requests[0]?.body).toMatchObject({
      processor: 'core',
      task_spec: { output_schema: { type: 'json' } },
    })
  })

  it('errors after its last state if the output does not match the schema, and names the run', async () => {
    const { client } = await runService()
    const events: RunEvent[] = []

    const error: unknown = await new Promise((resolve) =>
      client.tasks.run('x', { schema: Answer }).subscribe({ next: (e) => events.push(e), error: resolve }),
    )

    expect(error).toBeInstanceOf(OutputSchemaError)
    expect(error).toMatchObject({ run_id: 'r' })
    expect(brief(events)).toEqual(['queued', 'completed'])
  })

  const failed = runAs('failed', { error: { ref_id: 'e7', message: 'no sources' } })
  it.each([
    ['its stream says so', { events: [state('queued'), state('failed', { run: failed })], refused: false }],
    ['its stream is refused', { events: [], refused: true }],
  ])('errors with a RunFailedError after the last state if %s', async (_, { events: sent, refused }) => {
    const { client } = await runService({
      ...(refused
        ? { stream: (response) => answer(response, failure, 404) }
        : { events: (response) => response.end(sent.join('')) }),
      result: (response) => answer(response, failure, 404),
      get: (response) => answer(response, failed),
    })
    const events: RunEvent[] = []

    const error: unknown = await new Promise((resolve) =>
      client.tasks.run('x').subscribe({ next: (e) => events.push(e), error: resolve }),
    )

    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toMatchObject({ run_id: 'r', ref_id: 'e7' })
    expect(brief(events)).toEqual(['queued', 'failed'])
    expect(await errorOf(client.tasks.run('x'))).toBeInstanceOf(RunFailedError)
  })

  it('errors with the run and the reason if a created run cannot be followed, and is not created again', async () => {
    const { client, lines } = await runService({ stream: (response) => answer(response, failure, 401) })
    const source = client.tasks.run('x')

    const error = await errorOf(all(source.pipe(reconnect({ initialDelay: 0 }))))

    expect(error).toBeInstanceOf(RunInterruptedError)
    expect(error).toMatchObject({ run_id: 'r', retryable: false, cause: expect.any(AuthenticationError) })
    expect(String(error)).toContain('tasks.result')
    expect(lines().filter((line) => line.startsWith('POST'))).toHaveLength(1)
  })

  it('names the run after its timeout too', async () => {
    const { client } = await runService({ events: (response) => void response.write(state('running')) })

    const error = await errorOf(client.tasks.run('x', { timeout: 50 }))

    expect(error).toMatchObject({ run_id: 'r', cause: expect.any(RunTimeoutError) })
  })

  it('errors as the creation does, before there is a run', async () => {
    const refused = await runService({ create: (response) => answer(response, failure, 422) })
    const broken = await runService({ create: (response) => response.destroy() })

    expect(await errorOf(refused.client.tasks.run('x'))).toBeInstanceOf(ValidationError)
    expect(await errorOf(broken.client.tasks.run('x'))).toBeInstanceOf(UncertainRunError)
    expect(broken.lines()).toEqual(['POST /v1/tasks/runs'])
  })

  it('ends with its signal, without another error', async () => {
    const controller = new AbortController()
    const { client } = await runService({ events: () => controller.abort(new Error('enough')) })

    await expect(client.tasks.run('x', { signal: controller.signal })).rejects.toThrow('enough')
  })

  it('has arguments that are checked at the call', async () => {
    const { client } = await runService()
    expect(() => client.tasks.run({ input: 'x' } as never)).toThrow('processor must be')
    expect(() => client.tasks.run(' ')).toThrow('input must be')
    expect(() => client.tasks.run({ input: 'x', processor: 'lite' }, { processor: 'base' })).toThrow(
      'processor must be left out, as the request has its own',
    )
    expect(() => client.tasks.run('x', { timeout: 0 })).toThrow('timeout must be more than 0 ms')
  })
})
