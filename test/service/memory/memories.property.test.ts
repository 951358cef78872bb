import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { Memories } from '../../../src/service/memory/memories.ts'
import { eventLoopTurns } from '../../support/event-loop-turns.ts'

const SCOPES = [undefined, 'blue', 'red'] as const
const fields = { scope: fc.constantFrom(...SCOPES), id: fc.constantFrom('1', '2', '3') }
const command = fc.oneof(
  fc.record({ name: fc.constantFrom('execution', 'detection'), ...fields, kind: fc.constant('monitor') }),
  fc.record({ name: fc.constant('run'), ...fields, kind: fc.constantFrom('task', 'findall') }),
  fc.record({
    name: fc.constantFrom('evict', 'clear'),
    ...fields,
    kind: fc.constantFrom('task', 'findall', 'monitor'),
  }),
)
type Command = typeof command extends fc.Arbitrary<infer Value> ? Value : never

/** What a scope remembers: for each thing when it changed, and its events, newest first. */
interface Remembered {
  readonly at: number
  readonly events: readonly string[]
}

/** The memories after a command. */
function modelled(
  model: ReadonlyMap<string, Remembered>,
  { name, scope, kind, id }: Command,
  at: number,
): Map<string, Remembered> {
  const key = `${scope}/${kind} ${id}`
  if (name === 'clear') return new Map([...model].filter(([each]) => !each.startsWith(`${scope}/`)))
  if (name === 'evict') return new Map([...model].filter(([each]) => each !== key))
  const before = model.get(key)?.events ?? []
  const events = name === 'detection' ? [`event ${at}`, ...before] : before
  return name === 'execution' && events.length === 0
    ? new Map(model)
    : new Map(model).set(key, { at, events })
}

function execute(memories: Memories, { name, scope, kind, id }: Command, at: number): void {
  const memory = { id, input: 'tides', at }
  const output = { type: 'text', content: 'tides', basis: [] } as const
  const event = { event_id: `event ${at}`, event_group_id: 'group', event_date: null, output }
  if (name === 'clear') memories.clear({ memory_scope_key: scope })
  else if (name === 'evict') memories.evict({ memory_scope_key: scope, kind, id })
  else if (kind === 'monitor')
    memories.monitorRan(scope, memory, 'group', name === 'detection' ? [event] : [])
  else if (kind === 'task') memories.remember(scope, { kind, ...memory, output: 'x' })
  else memories.remember(scope, { kind, ...memory, matched: 1 })
}

it('any sequence of runs, detections, evictions and clears gives what a model gives, in each scope', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 40 }), async (commands) => {
      const database = openDatabase(':memory:')
      const clock = new ManualClock()
      const memories = new Memories(database, clock)
      let model = new Map<string, Remembered>()
      for (const each of commands) {
        clock.advance(1)
        execute(memories, each, clock.now())
        model = modelled(model, each, clock.now())
      }

      const found = async (memory_scope_key: string | undefined, query: string) =>
        (await memories.retrieve({ memory_scope_key, query })).map((memory) => {
          const { matched_events } = { matched_events: [], ...memory }
          return [`${memory.kind} ${memory.id}`, matched_events?.map(({ event_id }) => event_id)]
        })
      for (const scope of SCOPES) {
        const expected = [...model]
          .filter(([key]) => key.startsWith(`${scope}/`))
          .toSorted(([, a], [, b]) => b.at - a.at)
          .map(([key, { events }]) => [key.split('/')[1], events.slice(0, 10)])
        expect(await found(scope, '')).toEqual(expected)
        expect((await found(scope, 'tides')).toSorted()).toEqual(expected.toSorted())
        expect(await found(scope, 'moon')).toEqual([])
      }
      database.close()
    }),
  )
})

it('a scope has at most 500 events, the oldest are removed first, with those of other monitors', async () => {
  const database = openDatabase(':memory:')
  const clock = new ManualClock()
  const memories = new Memories(database, clock)
  for (let at = 1; at <= 502; at++) {
    const id = at <= 2 ? '1' : '2'
    execute(memories, { name: 'detection', scope: 'blue', kind: 'monitor', id }, at)
  }
  execute(memories, { name: 'detection', scope: 'red', kind: 'monitor', id: '1' }, 503)
  const found = await memories.retrieve({ memory_scope_key: 'blue' })
  database.close()

  expect(found).toMatchObject([
    { id: '2', matched_events: { length: 10 } },
    { id: '1', matched_events: [] },
  ])
})

it('a retrieval whose caller is gone before its turn is not made', async () => {
  const database = openDatabase(':memory:')
  const memories = new Memories(database, new ManualClock())
  memories.remember('blue', { kind: 'task', id: '1', at: 1, input: 'tides', output: 'rise' })
  const caller = new AbortController()
  const request = { memory_scope_key: 'blue', query: 'tides' }
  const first = memories.retrieve(request)
  const gone = memories.retrieve(request, caller.signal)
  const next = memories.retrieve(request)
  caller.abort(new Error('gone'))

  await expect(gone).rejects.toThrow('gone')
  expect(await first).toHaveLength(1)
  expect(await next).toHaveLength(1)
  database.close()
})

it('a retrieval among as many memories as a scope can have lets the event loop have its turn', async () => {
  const database = openDatabase(':memory:')
  const memories = new Memories(database, new ManualClock())
  const text = (at: number) =>
    Array.from({ length: 300 }, (_, index) =>
      String.fromCodePoint(0x4e00 + ((at * 300 + index) % 20_000)),
    ).join(' ')
  for (let at = 0; at < 500; at++)
    memories.remember('blue', { kind: 'task', id: `${at}`, at, input: text(at), output: text(500 + at) })
  const found = memories.retrieve({ memory_scope_key: 'blue', query: text(7).slice(0, 1) })
  const other = memories.retrieve({ memory_scope_key: 'blue', query: text(8).slice(0, 1) })
  // The scope may change meanwhile.
  memories.clear({ memory_scope_key: 'blue' })

  const turns = await eventLoopTurns(found)
  expect(turns).toBeGreaterThan(5)
  // One retrieval after the other, so that each turn has the work of one.
  expect(await eventLoopTurns(other)).toBeGreaterThan(turns / 2)
  expect((await found).map(({ id }) => id)).toContain('7')
  expect((await other).map(({ id }) => id)).toContain('8')
  database.close()
})
