import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { RunInput, TaskOutput, TaskRun } from 'rivulet'
import { ManualClock } from 'rivulet/service'
import type { Processor } from 'rivulet/service'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answerTo, HeldProcessor, running, temporaryFolder } from '../running.ts'
import type { TaskRunWebhook } from '../../../src/protocol/webhook.ts'

interface Result {
  readonly run: TaskRun
  readonly output: TaskOutput
}

const WEBHOOK_BETA = { 'service-beta': 'webhook-2025-08-12' }

describe('POST /v1/tasks/runs', () => {
  it('accepts a run, which can be read until it has ended', async () => {
    const processor = new HeldProcessor()
    const { get, post } = await running({ processor })
    const asked = { input: 'What?', processor: 'lite', metadata: { row: 1 } }
    const created = await post<TaskRun>('/v1/tasks/runs', asked)
    const path = `/v1/tasks/runs/${created.body.run_id}`
    const run = await processor.next()
    const during = await get<TaskRun>(path)
    const result = get<Result>(`${path}/result`)
    run.complete()
    const after = await result
    const input = await get<RunInput>(`${path}/input`)

    expect(created.status).toBe(202)
    expect(created.body).toMatchObject({
      run_id: expect.stringMatching(/^trun_[0-9a-f]{32}$/),
      taskgroup_id: null,
      status: 'queued',
      is_active: true,
      error: null,
      warnings: null,
      processor: 'lite',
      metadata: { row: 1 },
    })
    expect(during.body).toMatchObject({ status: 'running', is_active: true })
    expect(after.status).toBe(200)
    expect(after.body).toEqual({
      run: { ...created.body, status: 'completed', is_active: false },
      output: answerTo('What?').output,
    })
    expect(input.body).toEqual(asked)
  })

  it.each([
    ['no processor', { input: 'x' }, 'processor: Field required'],
    ['no input', { processor: 'base' }, 'input: Field required'],
    ['too much input', { input: 'x'.repeat(25_001), processor: 'base' }, 'input: Task spec and input have'],
  ])('with %s is a 422 with an ErrorResponse', async (_, body, message) => {
    const { post } = await running()
    const answer = await post('/v1/tasks/runs', body)
    expect(answer.status).toBe(422)
    expect(answer.body.type).toBe('error')
    expect(answer.body.error.message).toContain(message)
  })

  it('requires the beta header for a webhook, alone or in a list', async () => {
    const { post } = await running({ processor: new HeldProcessor() })
    const body = {
      input: 'x',
      processor: 'base',
      webhook: { url: 'http://127.0.0.1:9/', event_types: ['task_run.status'] },
    }
    const without = await post('/v1/tasks/runs', body)
    const other = await post('/v1/tasks/runs', body, { 'service-beta': 'field-basis-2025-11-25' })
    const alone = await post('/v1/tasks/runs', body, WEBHOOK_BETA)
    const among = await post('/v1/tasks/runs', body, {
      'service-beta': 'field-basis-2025-11-25, webhook-2025-08-12',
    })
    expect([without, other, alone, among].map(({ status }) => status)).toEqual([422, 422, 202, 202])
    expect(without.body.error.message).toContain('webhook-2025-08-12')
  })
})

describe('a basis for each element of a list', () => {
  it('is asked for by the beta header, of a run and of runs in a group', async () => {
    const processor = new HeldProcessor()
    const { group, post } = await running({ processor, concurrency: 4 })
    const beta = { 'service-beta': 'field-basis-2025-11-25' }
    const body = { input: 'x', processor: 'base' }
    await post('/v1/tasks/runs', body)
    await post('/v1/tasks/runs', body, beta)
    await post(`/v1/tasks/groups/${await group()}/runs`, { inputs: [body] }, beta)
    const runs = [await processor.next(), await processor.next(), await processor.next()]

    expect(runs.map(({ task }) => task.elementBasis)).toEqual([undefined, true, true])
  })
})

describe('GET /v1/tasks/runs/{id}', () => {
  it.each(['', '/input', '/result'])('%s of an unknown run is a 404', async (rest) => {
    const { get } = await running()
    const answer = await get(`/v1/tasks/runs/trun_unknown${rest}`)
    expect(answer.status).toBe(404)
    expect(answer.body.error.message).toBe('Task run not found: trun_unknown')
  })

  it('finds runs of groups too', async () => {
    const { get, group, add } = await running({ processor: new HeldProcessor() })
    const id = await group()
    const { run_ids } = await add(id, 'one')
    const answer = await get<TaskRun>(`/v1/tasks/runs/${run_ids[0]}`)
    expect(answer.body.taskgroup_id).toBe(id)
  })
})

describe('the result of a run', () => {
  it('is a 408 when the run is still active at the timeout', async () => {
    const clock = new ManualClock()
    const processor = new HeldProcessor()
    const { get, post } = await running({ processor, clock })
    const { body } = await post<TaskRun>('/v1/tasks/runs', { input: 'x', processor: 'base' })
    await processor.next()
    const idle = clock.next
    const result = get(`/v1/tasks/runs/${body.run_id}/result?timeout=30`)
    await untilDue(clock, clock.now() + 30_000)
    clock.advance(30_000)
    const answer = await result
    expect(answer.status).toBe(408)
    expect(answer.body.error.detail).toEqual({ status: 'running' })
    expect(clock.next).toBe(idle)
  })

  it('of a failed run is a 404 with the error', async () => {
    const processor = new HeldProcessor()
    const { get, post } = await running({ processor })
    const { body } = await post<TaskRun>('/v1/tasks/runs', { input: 'x', processor: 'base' })
    const run = await processor.next()
    run.fail('no luck')
    const answer = await get(`/v1/tasks/runs/${body.run_id}/result`)
    expect(answer.status).toBe(404)
    expect(answer.body.error.detail).toMatchObject({
      run: { status: 'failed', error: { message: 'no luck' } },
    })
  })

  it('of a waiting request is a 408 when the service closes, not a broken connection', async () => {
    const clock = new ManualClock()
    const processor = new HeldProcessor()
    const { service, get, post } = await running({ processor, clock })
    const { body } = await post<TaskRun>('/v1/tasks/runs', { input: 'x', processor: 'base' })
    const result = get(`/v1/tasks/runs/${body.run_id}/result`)
    await untilDue(clock, clock.now() + 600_000)
    await service.close()
    const answer = await result
    expect(answer.status).toBe(408)
  })

  it('refuses a timeout that is not a number', async () => {
    const { get, post } = await running({ processor: new HeldProcessor() })
    const { body } = await post<TaskRun>('/v1/tasks/runs', { input: 'x', processor: 'base' })
    const answer = await get(`/v1/tasks/runs/${body.run_id}/result?timeout=-1`)
    expect(answer.status).toBe(422)
  })
})

describe('a processor', () => {
  it.each<[string, Processor['run'], string]>([
    ['that throws', () => Promise.reject(new Error('out of ideas')), 'out of ideas'],
    ['that throws no error', () => Promise.reject('just text'), 'just text'],
    [
      'that throws at once',
      () => {
        throw new Error('not even a promise')
      },
      'not even a promise',
    ],
    ['that returns nothing', () => Promise.resolve(JSON.parse('{}')), 'the processor returned no output'],
    [
      'whose output is not serializable',
      () => Promise.resolve({ output: { type: 'json', content: { n: 1n }, basis: [] } }),
      'Do not know how to serialize a BigInt',
    ],
  ])('%s fails its run, and not the next one', async (_, run, message) => {
    const processor: Processor = {
      run: (task, signal) =>
        task.input.input === 'bad' ? run(task, signal) : Promise.resolve(answerTo('good')),
    }
    const { get, group, add, events } = await running({ processor, concurrency: 1 })
    const id = await group()
    const { run_ids } = await add(id, 'bad', 'good')
    await events(`/v1/tasks/groups/${id}/runs`)
    const [bad, good] = await Promise.all(run_ids.map((run_id) => get<TaskRun>(`/v1/tasks/runs/${run_id}`)))
    expect(bad?.body).toMatchObject({ status: 'failed', is_active: false, error: { message } })
    expect(good?.body.status).toBe('completed')
  })

  it('adds its warnings to the run', async () => {
    const warnings = [{ type: 'warning', message: 'Only half of it' }]
    const processor: Processor = { run: () => Promise.resolve({ ...answerTo('x'), warnings }) }
    const { get, post } = await running({ processor })
    const { body } = await post<TaskRun>('/v1/tasks/runs', { input: 'x', processor: 'base' })
    const result = await get<Result>(`/v1/tasks/runs/${body.run_id}/result`)
    expect(result.body.run.warnings).toEqual(warnings)
  })
})

describe('the webhook of a run', () => {
  it('carries the complete run, whether it completed or failed', async () => {
    const received = await receiver()
    const { service, post } = await running()
    const webhook = { url: received.url, event_types: ['task_run.status'] }
    for (const input of ['one', 'fail']) {
      await post('/v1/tasks/runs', { input, processor: 'base', webhook }, WEBHOOK_BETA)
      await received.next()
    }
    const runs = service.records().runs.map(({ run_id }) => run_id)
    const [completed, failed] = received.all
    expect(completed).toEqual({
      type: 'task_run.status',
      timestamp: '2026-01-01T00:00:00.000Z',
      data: expect.objectContaining({ run_id: runs[0], status: 'completed', is_active: false, error: null }),
    })
    expect(failed?.data).toMatchObject({
      run_id: runs[1],
      status: 'failed',
      error: { message: 'It was asked to fail', details: null },
    })
  })

  it('is not called when it asks for no type of event', async () => {
    const received = await receiver()
    const { group, post } = await running({ concurrency: 1 })
    const input = (name: string, event_types: string[]) => ({
      input: name,
      metadata: { name },
      webhook: { url: received.url, event_types },
    })
    await post(`/v1/tasks/groups/${await group()}/runs`, {
      inputs: [input('silent', []), input('listening', ['task_run.status'])],
    })
    await received.next()
    expect(received.all.map(({ data }) => data.metadata)).toEqual([{ name: 'listening' }])
  })
})

/** A receiver of webhooks that responds with 204. */
async function receiver() {
  const all: TaskRunWebhook[] = []
  let taken = 0
  let arrived: () => void = () => undefined
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      all.push(JSON.parse(Buffer.concat(chunks).toString()))
      response.writeHead(204).end()
      arrived()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not listening')
  return {
    url: `http://127.0.0.1:${address.port}/`,
    all,
    async next() {
      taken += 1
      if (all.length < taken) await new Promise<void>((resolve) => (arrived = resolve))
    },
  }
}

/** Resolves when a task is scheduled for this time of the clock. */
async function untilDue(clock: ManualClock, time: number): Promise<void> {
  while (clock.next !== time) await new Promise((resolve) => setImmediate(resolve))
}

describe('the credentials for tool servers', () => {
  it('are in no file of the running service once the run has ended', async () => {
    const folder = await temporaryFolder()
    const processor = new HeldProcessor()
    const caller = await running({ data: join(folder, 'service.db'), processor })
    const secret = 'Bearer of-the-tool-server'
    const mcp_servers = [{ type: 'url', url: 'https://tools.example', name: 'tools', headers: { a: secret } }]
    const files = () => readdirSync(folder).map((name) => readFileSync(join(folder, name)))
    const { body } = await caller.post<TaskRun>('/v1/tasks/runs', {
      input: 'one',
      processor: 'base',
      mcp_servers,
    })
    const run = await processor.next()
    const before = files().some((bytes) => bytes.includes(secret))
    run.complete()
    await caller.get(`/v1/tasks/runs/${body.run_id}/result`)
    const after = files().some((bytes) => bytes.includes(secret))

    expect([before, after]).toEqual([true, false])
  })
})
