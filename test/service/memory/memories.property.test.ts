import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { Memories } from '../../../src/service/memory/memories.ts'

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

it('any sequence of runs, detections, evictions and clears gives what a model gives, in each scope', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
      const database = openDatabase(':memory:')
      const clock = new ManualClock()
      const memories = new Memories(database, clock)
      let model = new Map<string, Remembered>()
      for (const each of commands) {
        clock.advance(1)
        execute(memories, each, clock.now())
        model = modelled(model, each, clock.now())
      }

      const found = (memory_scope_key: string | undefined, query: string) =>
        memories.retrieve({ memory_scope_key, query }).map((memory) => {
          const { matched_events } = { matched_events: [], ...memory }
          return [`${memory.kind} ${memory.id}`, matched_events?.map(({ event_id }) => event_id)]
        })
      for (const scope of SCOPES) {
        const expected = [...model]
          .filter(([key]) => key.startsWith(`${scope}/`))
          .toSorted(([, a], [, b]) => b.at - a.at)
          .map(([key, { events }]) => [key.split('/')[1], events.slice(0, 10)])
        expect(found(scope, '')).toEqual(expected)
        expect(found(scope, 'tides').toSorted()).toEqual(expected.toSorted())
        expect(found(scope, 'moon')).toEqual([])
      }
      memories.close()
      database.close()
    }),
  )
})

it('a scope has at most 500 events, the oldest are removed first, with those of other monitors', () => {
  const database = openDatabase(':memory:')
  const clock = new ManualClock()
  const memories = new Memories(database, clock)
  for (let at = 1; at <= 502; at++) {
    const id = at <= 2 ? '1' : '2'
    execute(memories, { name: 'detection', scope: 'blue', kind: 'monitor', id }, at)
  }
  execute(memories, { name: 'detection', scope: 'red', kind: 'monitor', id: '1' }, 503)
  const found = memories.retrieve({ memory_scope_key: 'blue' })
  memories.close()
  database.close()

  expect(found).toMatchObject([
    { id: '2', matched_events: { length: 10 } },
    { id: '1', matched_events: [] },
  ])
})
