import type { Memory } from 'rivulet'
import { ManualClock } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { type Caller, HeldProcessor, running, temporaryFolder } from '../running.ts'

const BETA = { 'service-beta': 'search-extract-2025-10-10' }

async function memoriesOf({ post }: Caller, request: object = {}): Promise<readonly Memory[]> {
  const { body } = await post<{ results: readonly Memory[] }>('/v1beta/memory/retrieve', request, BETA)
  return body.results
}

/** Adds a run for each input to a group, and waits for them. */
async function ran({ post, group, events }: Caller, inputs: readonly object[]): Promise<void> {
  const id = await group()
  await post(`/v1/tasks/groups/${id}/runs`, { inputs })
  await events(`/v1/tasks/groups/${id}/events`)
}

const inputsOf = (memories: readonly Memory[]) => memories.map(({ input_excerpt }) => input_excerpt)

describe('the memory endpoints', () => {
  it.each(['retrieve', 'evict', 'clear'])('refuse %s without the beta value', async (name) => {
    const { post } = await running()
    const { status, body } = await post(`/v1beta/memory/${name}`, { id: 'r', kind: 'task' })

    expect(status).toBe(422)
    expect(body.error.message).toContain('Memory is in beta: send the header service-beta')
  })

  it('answer an eviction in the same way, whether another scope has the memory, this one, or none', async () => {
    const caller = await running()
    await ran(caller, [{ input: 'one', memory_scope_key: 'blue' }])
    const [memory] = await memoriesOf(caller, { memory_scope_key: 'blue' })
    const evicted = (id: string | undefined, memory_scope_key: string | null) =>
      caller.post<unknown>('/v1beta/memory/evict', { kind: 'task', id, memory_scope_key }, BETA)
    const answers = [
      await evicted(memory?.id, null),
      await evicted(memory?.id, 'red'),
      await evicted(memory?.id, 'blue'),
      await evicted(memory?.id, 'blue'),
      await evicted('trun_none', 'blue'),
    ]

    expect(answers.map(({ status, body }) => `${status} ${String(body)}`)).toEqual(
      Array(5).fill('204 undefined'),
    )
  })

  it.each([
    ['an empty one, which is not the personal memory', ''],
    ['a lone surrogate, which the database would store as another character', 'blue\ud800'],
    ['one of 513 characters', 'x'.repeat(513)],
  ])('refuse a scope that is none: %s', async (_, memory_scope_key) => {
    const { post } = await running()
    const requests = [
      post('/v1beta/memory/clear', { memory_scope_key }, BETA),
      post('/v1/tasks/runs', { input: 'one', processor: 'base', memory_scope_key }),
    ]
    const statuses = (await Promise.all(requests)).map(({ status }) => status)

    expect(statuses).toEqual([422, 422])
  })
})

describe('a memory', () => {
  it('has excerpts that end with a whole word', async () => {
    const caller = await running()
    const input = 'tides and moons '.repeat(100)
    await ran(caller, [{ input }, { input: '🌊'.repeat(1_000) }])
    const [emoji, words] = (await memoriesOf(caller)).flatMap((memory) =>
      memory.kind === 'task' ? [memory] : [],
    )

    for (const [text, length] of [
      [words?.input_excerpt, 500],
      [words?.output_excerpt, 600],
    ] as const) {
      expect(text?.length).toBeGreaterThan(length - 10)
      expect(text?.length).toBeLessThanOrEqual(length)
      expect(text).toMatch(/(?:tides|and|moons)$/)
    }
    expect(emoji?.input_excerpt).toBe('🌊'.repeat(250))
  })

  it('is one of at most 500 in its scope: the oldest are removed, and not those of other scopes', async () => {
    const caller = await running()
    await ran(caller, [{ input: 'personal' }, { input: 'red', memory_scope_key: 'red' }])
    const numbers = Array.from({ length: 502 }, (_, index) => `number ${index}`)
    await ran(
      caller,
      numbers.map((input) => ({ input, memory_scope_key: 'blue' })),
    )

    const blue = inputsOf(await memoriesOf(caller, { memory_scope_key: 'blue', limit: 1_000 }))
    expect(blue).toEqual(numbers.slice(2).toReversed())
    expect(inputsOf(await memoriesOf(caller))).toEqual(['personal'])
    expect(inputsOf(await memoriesOf(caller, { memory_scope_key: 'red' }))).toEqual(['red'])
  })

  it('is there after a restart, and is not made by a run that was interrupted', async () => {
    const data = `${await temporaryFolder()}/service.db`
    const processor = new HeldProcessor()
    const first = await running({ data, processor })
    const added = first.post('/v1/tasks/runs', { input: 'one', processor: 'base' })
    ;(await processor.next()).complete()
    await added
    while ((await memoriesOf(first)).length === 0) continue
    await first.post('/v1/tasks/runs', { input: 'two', processor: 'base' })
    await processor.next()
    await first.service.close()

    const clock = new ManualClock(Date.UTC(2027, 0, 1))
    const second = await running({ data, processor, clock })
    expect(inputsOf(await memoriesOf(second))).toEqual(['one'])
    ;(await processor.next()).complete()
    while ((await memoriesOf(second)).length < 2) continue
    expect(inputsOf(await memoriesOf(second, { query: 'two' }))).toEqual(['two'])
  })
})
