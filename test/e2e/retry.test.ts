import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { firstValueFrom, tap } from 'rxjs'
import { createClient, MissingHeadersError, UncertainWriteError } from 'rivulet'
import type { ResearchClient, RetriedRun, RetryOptions, RunInput, EventOf } from 'rivulet'
import type { Processor } from 'rivulet/service'
import { CutWire } from '../support/cut-wire.ts'
import type { Cut } from '../support/cut-wire.ts'
import { all, HeldRuns, research } from './research.ts'

/** Fails these attempts; all others complete. */
function failing(fails: (name: string, attempt: number) => boolean): Processor {
  const attempts = new Map<string, number>()
  return {
    run: async ({ input }) => {
      const name = String(input.input)
      const attempt = (attempts.get(name) ?? 0) + 1
      attempts.set(name, attempt)
      if (fails(name, attempt)) throw new Error(`${name} failed`)
      return { output: { type: 'text', content: `about ${name}`, basis: [] } }
    },
  }
}

/** Creates a group of these inputs, and waits until their runs have ended. */
async function ended(client: ResearchClient, inputs: readonly RunInput[]): Promise<string> {
  const { taskgroup_id } = await client.taskGroups.create()
  await client.taskGroups.addRuns(taskgroup_id, { inputs })
  await all(client.taskGroups.runs(taskgroup_id))
  return taskgroup_id
}

/** The ended runs of a group, by id, when none is active. */
async function statesOf(
  client: ResearchClient,
  id: string,
): Promise<ReadonlyMap<string, EventOf<'task_run.state'>['data']>> {
  const events = await all(client.taskGroups.runs(id, { include_input: true }))
  return new Map(
    events.flatMap((event) =>
      event.type === 'task_run.state' ? [[event.data.run.run_id, event.data] as const] : [],
    ),
  )
}

const named = (...names: string[]) => names.map((input) => ({ input }))

describe('retry, end to end', () => {
  it('replaces each failed run, and says by which', async () => {
    const { client, service } = await research({
      processor: failing((name, attempt) => name !== 'good' && attempt === 1),
    })
    const id = await ended(client, named('bad', 'good', 'worse'))

    const retried = await client.taskGroups.retry(id)

    const states = await statesOf(client, id)
    expect(
      retried.map(({ replaced, run_id, attempt }) => [
        states.get(replaced.run_id)?.input?.input,
        states.get(run_id)?.input?.input,
        attempt,
      ]),
    ).toEqual([
      ['bad', 'bad', 2],
      ['worse', 'worse', 2],
    ])
    expect(
      service
        .records()
        .runs.map(({ status }) => status)
        .join(' '),
    ).toBe('failed completed failed completed completed')
  })

  it('adds the whole input again, with a mark and without the key of an earlier write', async () => {
    const seen: RunInput[] = []
    const { client } = await research({
      processor: {
        run: async ({ input }) => {
          seen.push(input)
          throw new Error('failed')
        },
      },
    })
    const input: RunInput = {
      input: { company: null },
      processor: 'core',
      metadata: { row: 1, note: null },
      task_spec: { output_schema: { type: 'json', json_schema: { type: 'object', default: null } } },
      source_policy: { include_domains: ['acme.example'] },
      mcp_servers: [
        { type: 'url', url: 'https://tools.example/mcp', name: 'a', headers: { authorization: 'Bearer x' } },
      ],
      webhook: { url: 'https://hook.example/', event_types: ['task_run.status'] },
    }
    const { taskgroup_id: id } = await client.taskGroups.create()
    await client.taskGroups.addRuns(id, { inputs: [input] }, { exactlyOnce: true })
    const [first] = (await statesOf(client, id)).values()
    const headers: Record<string, string> = { authorization: 'Bearer y' }

    const [retried] = await client.taskGroups.retry(id, { mcpHeaders: () => headers })
    await all(client.taskGroups.runs(id))
    const [again] = await client.taskGroups.retry(id, { mcpHeaders: () => headers })
    await all(client.taskGroups.runs(id))

    const mcp_servers = [{ ...input.mcp_servers?.[0], headers }]
    const marks = (replaced: string | undefined, attempt: string) => ({
      rivulet_retry_of: replaced,
      rivulet_first: first?.run.run_id,
      rivulet_attempt: attempt,
    })
    expect(seen.slice(1)).toEqual([
      { ...input, mcp_servers, metadata: { ...input.metadata, ...marks(first?.run.run_id, '2') } },
      { ...input, mcp_servers, metadata: { ...input.metadata, ...marks(retried?.run_id, '3') } },
    ])
    expect(again?.attempt).toBe(3)
  })

  it('replaces runs of other clients, which leave out what has a default, exactly once', async () => {
    const { client, service } = await research({ processor: failing((_, attempt) => attempt === 1) })
    const { taskgroup_id: id } = await client.taskGroups.create()
    const inputs = [
      { input: 'a', webhook: { url: 'http://127.0.0.1:9/' } },
      { input: 'b', mcp_servers: [{ url: 'https://tools.example/', name: 'tools' }] },
      { input: 'c', task_spec: { output_schema: {} }, source_policy: null },
    ]
    await fetch(`${service.url}/v1/tasks/groups/${id}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': service.apiKey },
      body: JSON.stringify({ inputs }),
    })
    await all(client.taskGroups.runs(id))
    const retry = () => client.taskGroups.retry(id, { mcpHeaders: () => ({}), exactlyOnce: true })

    expect(await retry()).toHaveLength(3)
    expect(await retry()).toEqual([])
    expect(service.records().runs).toHaveLength(6)
  })

  it('does not add anything if the headers for a tool server are not known', async () => {
    const { client, service } = await research({ processor: failing(() => true) })
    const server = (url: string) => ({ type: 'url', url, name: 'tools' }) as const
    const id = await ended(client, [
      { input: 'a', mcp_servers: [server('https://one.example/')] },
      { input: 'b', mcp_servers: [server('https://one.example/'), server('https://two.example/')] },
      { input: 'c' },
    ])

    const error: unknown = await client.taskGroups
      .retry(id, { mcpHeaders: ({ url }) => (url === 'https://one.example/' ? {} : undefined) })
      .then(undefined, (thrown: unknown) => thrown)

    expect(error).toBeInstanceOf(MissingHeadersError)
    expect(error).toMatchObject({ urls: ['https://two.example/'], taken: 'no', retryable: false })
    expect(service.records().runs).toHaveLength(3)
    // What is not retried needs no headers.
    const retried = await client.taskGroups.retry(id, { where: (_, { input }) => input === 'c' })
    expect(retried).toHaveLength(1)
  })

  it('retries the statuses that are given, of runs that `where` selects', async () => {
    const { client } = await research({ processor: failing((name) => name !== 'good') })
    const id = await ended(client, named('good', 'a', 'b'))
    const replaced = (options: RetryOptions) =>
      client.taskGroups.retry(id, options).then((runs) => runs.map((one) => one.replaced.error?.message))

    expect(await replaced({ statuses: ['cancelled'] })).toEqual([])
    expect(await replaced({ where: (run) => run.error?.message === 'b failed' })).toEqual(['b failed'])
    expect(await replaced({ statuses: ['cancelled', 'failed'] })).toEqual(['a failed', 'b failed'])
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- What a caller without types gives.
    const asynchronous = (async () => false) as unknown as NonNullable<RetryOptions['where']>
    await expect(replaced({ where: asynchronous })).rejects.toMatchObject({ argument: 'where(run, input)' })
    const thrown = new Error('no')
    await expect(
      replaced({
        where: () => {
          throw thrown
        },
      }),
    ).rejects.toBe(thrown)
  })

  it('waits until no run is active, since one of them may already replace a failed one', async () => {
    const held = new HeldRuns()
    const once = failing((name, attempt) => name === 'bad' && attempt === 1)
    const { client, service } = await research({
      processor: {
        run: (task, signal) => (task.input.input === 'slow' ? held : once).run(task, signal),
      },
    })
    const { taskgroup_id: id } = await client.taskGroups.create()
    await client.taskGroups.addRuns(id, { inputs: named('bad', 'slow') })
    const retrying = client.taskGroups.retry(id).then((retried) => retried.length)
    await firstValueFrom(client.taskGroups.runs(id))
    expect(service.records().runs).toHaveLength(2)

    held.release()

    expect(await retrying).toBe(1)
    expect(service.records().runs).toHaveLength(3)
  })

  it('completes for a group without runs, and errors for one that does not exist', async () => {
    const { client } = await research()
    const { taskgroup_id } = await client.taskGroups.create()

    expect(await client.taskGroups.retry(taskgroup_id)).toEqual([])
    await expect(client.taskGroups.retry('tgrp_unknown')).rejects.toMatchObject({ status: 404 })
  })

  it('makes two calls at once wait for each other, also if the first one is unsubscribed', async () => {
    const { client, service } = await research({ processor: failing((_, attempt) => attempt === 1) })
    const id = await ended(client, named('a', 'b'))
    const retry = () => client.taskGroups.retry(id, { settleDelay: 0 })

    const abandoned = retry().subscribe()
    const calls = [retry(), retry(), retry()].map((call) => call.then((retried) => retried.length))
    abandoned.unsubscribe()

    expect(await Promise.all(calls)).toEqual([2, 0, 0])
    expect(service.records().runs).toHaveLength(4)
  })

  it('recognizes what execute has retried', async () => {
    const { client, service } = await research({
      processor: failing((name, attempt) => attempt < (name === 'a' ? 2 : 4)),
    })
    const { taskgroup_id: id } = await client.taskGroups.create()
    await all(client.taskGroups.execute(id, named('a', 'b'), { retryFailed: 1 })).catch(() => {})
    expect(service.records().runs).toHaveLength(4)

    const retried = await client.taskGroups.retry(id)

    expect(retried.map(({ replaced, attempt }) => [replaced.error?.message, attempt])).toEqual([
      ['b failed', 3],
    ])
  })
})

describe('retry of a group of 1,000 runs, 300 of which failed, over connections that are cut', () => {
  // The stream with the inputs has about 400,000 bytes, the request that adds 300 runs 70,000 at least, and its response 12,000.
  const cut: fc.Arbitrary<Cut> = fc.record({
    side: fc.constantFrom('up', 'down'),
    bytes: fc.oneof(fc.nat(1_000), fc.nat(20_000), fc.nat(400_000)),
  })
  const cuts = fc.array(fc.option(cut, { nil: undefined, freq: 4 }), { minLength: 4, maxLength: 12 })
  const whileAdding: fc.Arbitrary<Cut> = fc.oneof(
    fc.record({ side: fc.constant('up' as const), bytes: fc.integer({ min: 1, max: 60_000 }) }),
    fc.record({ side: fc.constant('down' as const), bytes: fc.integer({ min: 1, max: 10_000 }) }),
  )
  const timeout = 60_000

  /** Such a group, with a client behind the cuts. */
  async function cutGroup(plan: readonly (Cut | undefined)[]) {
    const inputs = Array.from({ length: 1_000 }, (_, n) => ({ input: `question ${n}` }))
    const started = await research({
      processor: failing((name, attempt) => attempt === 1 && Number(name.split(' ')[1]) % 10 < 3),
    })
    const { service } = started
    const id = await ended(started.client, inputs)
    const wire = new CutWire(plan)
    onTestFinished(() => wire.close())
    const baseUrl = await wire.open(Number(new URL(service.url ?? '').port))
    const client = createClient({
      baseUrl,
      apiKey: service.apiKey,
      initialDelay: 0,
      maxDelay: 10,
      quotas: false,
    })
    return { ...started, id, client, direct: started.client, wire }
  }

  /** Fails unless each failed run is replaced exactly once, as it was emitted. */
  async function expectAllReplacedOnce(
    { direct, service, id }: Awaited<ReturnType<typeof cutGroup>>,
    emitted: readonly RetriedRun[],
  ) {
    const states = await statesOf(direct, id)
    const failed = [...states.values()].filter(({ run }) => run.status === 'failed')
    expect(failed).toHaveLength(300)
    expect(service.records().runs).toHaveLength(1_300)
    const by = new Map(emitted.map(({ replaced, run_id }) => [replaced.run_id, run_id]))
    expect(by.size).toBe(emitted.length)
    for (const { run, input } of failed) {
      const replacement = states.get(by.get(run.run_id) ?? '')
      expect(replacement?.run).toMatchObject({
        status: 'completed',
        metadata: { rivulet_retry_of: run.run_id },
      })
      expect(replacement?.input?.input).toBe(input?.input)
    }
  }

  it(
    'replaces each exactly once with exactlyOnce, and none by a second call or by two at once',
    async () => {
      await fc.assert(
        fc.asyncProperty(cuts, whileAdding, whileAdding, async (plan, cutOfAdding, next) => {
          const group = await cutGroup(plan)
          let isAdding = false
          // Called when all is read: the next request adds the runs.
          const where = () => {
            if (!isAdding) group.wire.breakFromNow(cutOfAdding, next)
            isAdding = true
            return true
          }
          const retry = () =>
            group.client.taskGroups.retry(group.id, { where, exactlyOnce: true, settleDelay: 50 })

          const [first, atOnce] = await Promise.all([retry(), retry()])
          const second = await retry()

          expect([first.length, atOnce, second]).toEqual([300, [], []])
          await expectAllReplacedOnce(group, first)
          expect(group.wire.broken).toBeGreaterThan(0)
        }),
        { numRuns: 6 },
      )
    },
    timeout,
  )

  it('is completed by a second call if the response of the first was lost without exactlyOnce', async () => {
    const group = await cutGroup([])
    const emitted: RetriedRun[] = []
    let faults = 0
    // Called when all is read: the next request adds the runs.
    const where = () => {
      if (faults++ === 0) group.service.faults.add({ kind: 'truncated', times: 1, path: '/v1/tasks/groups' })
      return true
    }
    const retried = group.client.taskGroups.retry(group.id, { where, settleDelay: 50 })
    const retry = () => all(retried.pipe(tap((one) => emitted.push(one))))

    await expect(retry()).rejects.toBeInstanceOf(UncertainWriteError)
    await retry()

    expect(emitted).toEqual([])
    expect(group.service.records().runs).toHaveLength(1_300)
  })
})
