import type { MemoryKind, MemoryResult, MemoryScope } from 'rivulet'
import { iterate } from 'rivulet/operators'
import { describe, expect, it, onTestFinished } from 'vitest'
import { write } from '../service/corpus/folder.ts'
import { all, research } from './research.ts'
import type { Research } from './research.ts'

const files = { 'tides.md': '# Tides\n\nTides rise and fall as the moon pulls at the sea.\n' }
const BLUE = { memory_scope_key: 'blue' }

/** Runs a task to its end. */
async function ran({ client }: Research, input: string, scope: MemoryScope = {}): Promise<string> {
  const { run } = await client.tasks.run({ input, processor: 'base', ...scope })
  return run.run_id
}

/** Creates a monitor that has detected a passage. */
async function detected({ client, service, docs }: Research, scope: MemoryScope = {}): Promise<string> {
  const before = service.records().monitor_events.length
  const created = await client.monitors.create({
    type: 'event_stream',
    frequency: '1h',
    settings: { query: 'spring tide' },
    ...scope,
  })
  const executed = async (count: number) => {
    while (service.records().monitor_events.length < before + count)
      await new Promise((resolve) => setImmediate(resolve))
  }
  await executed(1)
  await write(docs, { [`note-${before}.md`]: `# Note\n\nA spring tide flooded the harbour ${before}.\n` })
  await client.monitors.trigger(created.monitor_id)
  await executed(2)
  return created.monitor_id
}

/** Finds the texts about the moon. */
async function found({ client }: Research, scope: MemoryScope = {}): Promise<string> {
  const { run } = await client.findAll.run({
    objective: 'Find all texts about the moon',
    entity_type: 'texts',
    match_conditions: [{ name: 'moon', description: 'The text is about the moon' }],
    generator: 'preview',
    match_limit: 5,
    ...scope,
  })
  return run.findall_id
}

async function resultsOf({ client }: Research, request: Parameters<typeof client.memory.retrieve>[0] = {}) {
  const { results } = await client.memory.retrieve(request)
  return results
}

const idsOf = (results: readonly MemoryResult[]) =>
  results.map((result) => (result.kind === 'unknown' ? 'unknown' : result.id))

describe('what has ended becomes a memory', () => {
  it('of a run, alone or in a group', async () => {
    const both = await research()
    const { client, clock } = both
    const run_id = await ran(both, 'Why do tides rise?')
    clock.advance(1_000)
    const { taskgroup_id } = await client.taskGroups.create()
    const [inGroup] = await all(client.taskGroups.execute(taskgroup_id, [{ input: { question: 'Why?' } }]))

    await expect(resultsOf(both)).resolves.toEqual([
      {
        kind: 'task',
        id: inGroup?.run.run_id,
        input_excerpt: '{"question":"Why?"}',
        output_excerpt: 'about {"question":"Why?"}',
        updated_at: new Date(clock.now()).toISOString(),
      },
      {
        kind: 'task',
        id: run_id,
        input_excerpt: 'Why do tides rise?',
        output_excerpt: 'about "Why do tides rise?"',
        updated_at: new Date(clock.now() - 1_000).toISOString(),
      },
    ])
  })

  it('of a monitor with its detections, and with its status', async () => {
    const both = await research()
    const id = await detected(both)
    const { events } = await both.client
      .get(`/v1/monitors/${id}/events`)
      .then((page) => page as { events: { event_id: string; event_group_id: string }[] })

    const expected = {
      kind: 'monitor',
      id,
      input_excerpt: 'spring tide',
      status: 'active',
      matched_events: [
        {
          event_id: events[0]?.event_id,
          event_group_id: events[0]?.event_group_id,
          excerpt: expect.stringContaining('A spring tide flooded the harbour'),
        },
      ],
    }
    await expect(resultsOf(both)).resolves.toMatchObject([expected])
    await expect(resultsOf(both, { query: 'harbour' })).resolves.toMatchObject([expected])
    await both.client.monitors.cancel(id)
    await expect(resultsOf(both)).resolves.toMatchObject([{ ...expected, status: 'cancelled' }])
  })

  it('of a FindAll run', async () => {
    const both = await research({ files })
    const id = await found(both)

    await expect(resultsOf(both)).resolves.toMatchObject([
      { kind: 'findall', id, input_excerpt: 'Find all texts about the moon', matched_count: 1 },
    ])
  })

  it('but not of a run that failed, or of a monitor without a detection', async () => {
    const processor = { run: () => Promise.reject(new Error('no luck')) }
    const both = await research({ processor })
    await ran(both, 'x').catch(() => undefined)
    const settings = { query: 'spring tide' }
    await both.client.monitors.create({ type: 'event_stream', frequency: '1h', settings })

    await expect(resultsOf(both)).resolves.toEqual([])
  })
})

describe('a retrieval', () => {
  it('ranks by relevance, as a search does, and favours newer memories', async () => {
    const both = await research()
    const old = await ran(both, 'Which batteries are made of sodium?')
    both.clock.advance(30 * 86_400_000)
    const recent = await ran(both, 'Which batteries are made of sodium?')
    const other = await ran(both, 'Who sells batteries?')
    for (const input of ['the moon', 'the sea', 'the wind', 'the sun']) await ran(both, input)

    expect(idsOf(await resultsOf(both, { query: 'sodium battery' }))).toEqual([recent, old, other])
    expect(idsOf(await resultsOf(both, { query: 'seller of batteries' })).at(0)).toBe(other)
    expect(idsOf(await resultsOf(both, { query: 'volcano' }))).toEqual([])
    expect(idsOf(await resultsOf(both, { query: '?!' }))).toEqual([])
  })

  it('takes the kind, a time and a number', async () => {
    const both = await research({ files })
    const first = await ran(both, 'the moon')
    both.clock.advance(1_000)
    const second = await ran(both, 'the moon')
    const findAll = await found(both)
    const since = new Date(both.clock.now()).toISOString()

    expect(idsOf(await resultsOf(both, { kind: 'task' }))).toEqual([second, first])
    expect(idsOf(await resultsOf(both, { kind: 'task', since }))).toEqual([second])
    expect(idsOf(await resultsOf(both, { kind: 'findall', query: 'moon' }))).toEqual([findAll])
    expect(idsOf(await resultsOf(both, { kind: 'task', limit: 1 }))).toEqual([second])
  })
})

describe('a memory scope', () => {
  it('shows nothing of another one, nor of the personal memory', async () => {
    const both = await research({ files })
    const scopes = [{}, { memory_scope_key: null }, BLUE, { memory_scope_key: 'red' }]
    const made = new Map<string | undefined, string[]>()
    for (const scope of scopes) {
      const key = scope.memory_scope_key ?? undefined
      const ids = [await ran(both, 'the moon', scope), await found(both, scope), await detected(both, scope)]
      made.set(key, [...(made.get(key) ?? []), ...ids])
    }

    for (const [key, ids] of made) {
      const scope = key === undefined ? {} : { memory_scope_key: key }
      expect(idsOf(await resultsOf(both, { ...scope, limit: 100 })).toSorted()).toEqual(ids.toSorted())
      const matching = idsOf(await resultsOf(both, { ...scope, query: 'moon tide', limit: 100 }))
      expect(matching.toSorted()).toEqual(ids.toSorted())
    }
  })

  it('loses what is evicted or cleared, and what made it stays', async () => {
    const both = await research({ files })
    const { client } = both
    const made: Readonly<Record<MemoryKind, string>> = {
      task: await ran(both, 'x', BLUE),
      monitor: await detected(both, BLUE),
      findall: await found(both, BLUE),
    }
    const personal = await ran(both, 'x')
    const { task, monitor, findall } = made

    // Neither is there: nothing happens, and nothing is said.
    await client.memory.evict({ id: task, kind: 'task' })
    await client.memory.evict({ id: task, kind: 'monitor', ...BLUE })
    expect(await resultsOf(both, BLUE)).toHaveLength(3)
    await client.memory.evict({ id: task, kind: 'task', ...BLUE })
    expect(idsOf(await resultsOf(both, BLUE))).toEqual(expect.arrayContaining([monitor, findall]))
    await client.memory.clear(BLUE)

    await expect(resultsOf(both, BLUE)).resolves.toEqual([])
    expect(idsOf(await resultsOf(both))).toEqual([personal])
    await expect(client.tasks.result(task)).resolves.toMatchObject({ run: { status: 'completed' } })
    await expect(client.monitors.get(monitor)).resolves.toMatchObject({ status: 'active' })
    await expect(client.findAll.result(findall)).resolves.toMatchObject({ candidates: [{ name: 'Tides' }] })
  })
})

describe('memory.follow', () => {
  it('emits what a run has added, soon after the event of its end', async () => {
    const both = await research()
    const { client, group } = both
    const first = await ran(both, 'the moon')
    const taskgroup = await group()
    const events = client.watch({ taskGroups: [{ id: taskgroup, until: 'closed' }], hold: 0 })
    const updates = iterate(client.memory.follow({ query: 'moon', events, pollInterval: Infinity }))
    onTestFinished(async () => void (await updates.return?.()))

    expect(idsOf((await updates.next()).value?.added ?? [])).toEqual([first])
    const added = await client.taskGroups.addRuns(taskgroup, {
      inputs: ['the sun', 'a moon'].map((input) => ({ input })),
    })
    const { value } = await updates.next()

    expect(idsOf(value?.added ?? [])).toEqual([added.run_ids[1]])
    expect(idsOf(value?.results ?? []).toSorted()).toEqual([first, added.run_ids[1]].toSorted())
  })
})
