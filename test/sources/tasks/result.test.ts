import { lastValueFrom, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { NotFoundError, OutputSchemaError, ProtocolError, RunFailedError, RunTimeoutError } from 'rivulet'
import { ImpatientScheduler } from '../../support/impatient-scheduler.ts'
import { answer } from '../../support/serve.ts'
import { runAs, runService, text } from './run-service.ts'

const active = { error: { ref_id: 'x', message: 'still active' } }
const completed = { run: runAs('completed'), output: text('42') }
const failed = runAs('failed', { error: { ref_id: 'e7', message: 'no sources' } })

describe('the result of a run', () => {
  it('is asked for again after each 408, which is no failure', async () => {
    const { client, lines, diagnostics } = await runService({
      result: (response, nth) => (nth < 8 ? answer(response, active, 408) : answer(response, completed)),
    })

    expect(await client.tasks.result('r')).toEqual(completed)
    expect(lines()).toEqual(Array.from({ length: 8 }, () => 'GET /v1/tasks/runs/r/result?timeout=50'))
    expect(diagnostics).toEqual([])
  })

  it.each([408, 200])(
    'is asked for less and less often, if the service answers %d at once',
    async (status) => {
      const scheduler = new ImpatientScheduler()
      const body = status === 408 ? active : { run: runAs('running'), output: null }
      const { client } = await runService(
        {
          result: (response, nth) => (nth < 6 ? answer(response, body, status) : answer(response, completed)),
        },
        { initialDelay: 500, maxDelay: 3_000, random: () => 1, scheduler },
      )

      await client.tasks.result('r')

      expect(scheduler.now()).toBe(500 + 1_000 + 2_000 + 3_000 + 3_000)
    },
  )

  it('is asked for again after the Retry-After of a 408', async () => {
    const scheduler = new VirtualTimeScheduler()
    const { client } = await runService(
      {
        result: (response, nth) => {
          if (nth === 1) response.setHeader('retry-after', '7')
          return nth === 1 ? answer(response, active, 408) : answer(response, completed)
        },
      },
      { scheduler },
    )
    const result = lastValueFrom(client.tasks.result('r'))
    const timer = setInterval(() => scheduler.flush(), 1)
    await result.finally(() => clearInterval(timer))

    expect(scheduler.now()).toBe(7_000)
  })

  it('is asked for again after cuts and failures of the service', async () => {
    const { client, lines, diagnostics } = await runService({
      result: (response, nth) => {
        if (nth === 1) return response.destroy()
        if (nth === 2) return answer(response, active, 503)
        if (nth === 3) {
          response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
          response.write('{"run":', () => response.destroy())
          return
        }
        if (nth === 4) return answer(response, { run: runAs('running'), output: null })
        return answer(response, completed)
      },
    })

    expect(await client.tasks.result('r')).toEqual(completed)
    expect(lines()).toHaveLength(5)
    expect(diagnostics.map(({ kind }) => kind)).toEqual(['reconnect', 'reconnect', 'reconnect'])
  })

  it('waits longer for a response than the timeout of other requests', async () => {
    const { client } = await runService(
      { result: (response) => void setTimeout(() => answer(response, completed), 150) },
      { timeouts: { headers: 50 } },
    )

    expect(await client.tasks.result('r')).toEqual(completed)
  })

  it.each([
    ['without failures', 0, 5],
    ['with failures between', 2, 8],
  ])(
    'is a ProtocolError if it is that of an active run for the patience, %s',
    async (_, failing, requests) => {
      const { client, lines } = await runService(
        {
          result: (response, nth) =>
            nth % 3 < failing ? answer(response, active, 503) : answer(response, { run: runAs('running') }),
        },
        {
          initialDelay: 500,
          maxDelay: 1_000,
          patience: 3_000,
          random: () => 1,
          scheduler: new ImpatientScheduler(),
        },
      )

      const error: unknown = await client.tasks.result('r').then(null, (e: unknown) => e)

      expect(error).toBeInstanceOf(ProtocolError)
      expect(error).toMatchObject({ retryable: false, message: expect.stringContaining('had not ended') })
      expect(lines()).toHaveLength(requests)
    },
  )

  it('is a RunTimeoutError after the whole timeout', async () => {
    const { client, lines } = await runService({ result: (response) => answer(response, active, 408) })

    const error: unknown = await client.tasks.result('r', { timeout: 100 }).then(null, (e: unknown) => e)

    expect(error).toBeInstanceOf(RunTimeoutError)
    expect(error).toMatchObject({ run_id: 'r', retryable: true })
    expect(lines()[0]).toBe('GET /v1/tasks/runs/r/result?timeout=1')
  })

  it.each([
    ['in the response', () => ({ result: failed, status: 200 })],
    ['in the run, if there is no result', () => ({ result: active, status: 404 })],
  ])('is a RunFailedError for a failed run that is %s', async (_, plan) => {
    const { result, status } = plan()
    const { client } = await runService({
      result: (response) => answer(response, status === 200 ? { run: result, output: null } : result, status),
      get: (response) => answer(response, failed),
    })

    const error: unknown = await client.tasks.result('r').then(null, (e: unknown) => e)

    expect(error).toBeInstanceOf(RunFailedError)
    expect(error).toMatchObject({ run_id: 'r', ref_id: 'e7', retryable: false, run: failed })
    expect(String(error)).toMatch(/the run r ended as failed: no sources \(ref_id e7\); .*create another run/)
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ run_id: 'r', status: 'failed', ref_id: 'e7' })
  })

  it('is a RunFailedError for a cancelled run, with whatever its error is', async () => {
    for (const error of [undefined, null, {}, { message: 1, ref_id: null }, 'text']) {
      const { client } = await runService({
        result: (response) => answer(response, { run: runAs('cancelled', { error }) }),
      })
      await expect(client.tasks.result('r')).rejects.toThrow('the run r ended as cancelled; ')
    }
  })

  it.each([
    ['the run is not there', (response: never) => answer(response, active, 404)],
    ['the run has completed', (response: never) => answer(response, runAs('completed'))],
  ])('is a NotFoundError if the service has no result and %s', async (_, get) => {
    const { client } = await runService({
      result: (response) => answer(response, active, 404),
      get: get as never,
    })

    await expect(client.tasks.result('r')).rejects.toThrow(NotFoundError)
  })

  it.each([
    null,
    [],
    {},
    { run: null },
    { run: runAs('completed') },
    { run: runAs('completed'), output: [] },
  ])('is a ProtocolError for %j, after five', async (body) => {
    const { client, lines } = await runService({ result: (response) => answer(response, body) })

    await expect(client.tasks.result('r')).rejects.toThrow(ProtocolError)
    expect(lines()).toHaveLength(5)
  })

  it('is a ProtocolError at once for that of another run', async () => {
    const { client, lines } = await runService({
      result: (response) =>
        answer(response, { ...completed, run: { ...runAs('completed'), run_id: 'other' } }),
    })

    await expect(client.tasks.result('r')).rejects.toThrow('the result is of another run')
    expect(lines()).toHaveLength(1)
  })

  const Answer = z.object({ founded: z.number().transform((year) => `in ${year}`) })

  it('is typed by its schema', async () => {
    const output = { type: 'json', content: { founded: 1949 }, basis: [] }
    const { client } = await runService({
      result: (response) => answer(response, { run: runAs('completed'), output }),
    })

    const result = await client.tasks.result('r', { schema: Answer })

    expectTypeOf(result.output.content.founded).toBeString()
    expect(result.output.content).toEqual({ founded: 'in 1949' })
  })

  it('is an OutputSchemaError that names the run if the output does not match', async () => {
    const { client } = await runService()

    const error: unknown = await client.tasks.result('r', { schema: Answer }).then(null, (e: unknown) => e)

    expect(error).toBeInstanceOf(OutputSchemaError)
    expect(error).toMatchObject({ run_id: 'r', output: text('42') })
    expect(String(error)).toContain('the output of the run r does not fit the schema')
  })

  it('ends with its signal while it waits', async () => {
    const controller = new AbortController()
    const { client } = await runService({ result: () => controller.abort(new Error('enough')) })

    await expect(client.tasks.result('r', { signal: controller.signal })).rejects.toThrow('enough')
  })

  it('has arguments that are checked at the call', async () => {
    const { client } = await runService()
    expect(() => client.tasks.result('')).toThrow('runId must be an id')
    expect(() => client.tasks.result('r', { timeout: 0 })).toThrow('timeout must be more than 0 ms')
    expect(() => client.tasks.result('r', { timeout: -1 })).toThrow('timeout must be')
    expect(() => client.tasks.result('r', { schema: {} as never })).toThrow(
      'schema must be a Standard Schema',
    )
  })
})

describe('a run', () => {
  it('is read, and so is its input', async () => {
    const { client, lines } = await runService()

    expect(await client.tasks.get('r')).toEqual(runAs('completed'))
    expect(await client.tasks.input('r')).toEqual({ input: 'What is it?', processor: 'base' })
    expect(lines()).toEqual(['GET /v1/tasks/runs/r', 'GET /v1/tasks/runs/r/input'])
  })

  it('is a ProtocolError if the service sends another', async () => {
    const { client } = await runService({
      get: (response) => answer(response, { run_id: 'other', status: 'x' }),
    })

    await expect(client.tasks.get('r')).rejects.toThrow('the response is not this run')
  })
})
