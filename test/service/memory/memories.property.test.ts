import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { Memories } from '../../../src/service/memory/memories.ts'

const scope = fc.constantFrom(undefined, 'blue', 'red')
const id = fc.constantFrom('1', '2', '3')
const kind = fc.constantFrom('task', 'findall', 'monitor')
const command = fc.oneof(
  fc.record({ name: fc.constantFrom('run', 'execution', 'detection', 'evict'), scope, id, kind }),
  fc.record({ name: fc.constant('clear'), scope, id, kind }),
)

it('any sequence of runs, detections, evictions and clears gives what a model gives, in each scope', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 40 }), (commands) => {
      const database = openDatabase(':memory:')
      const clock = new ManualClock()
      const memories = new Memories(database, clock)
      const model = new Map<
        string,
        { scope: string | undefined; about: string; at: number; events: string[] }
      >()

      for (const [step, { name, scope: memory_scope_key, id: of, kind: what }] of commands.entries()) {
        clock.advance(1)
        const at = clock.now()
        const isMonitor = what === 'monitor' || name === 'execution' || name === 'detection'
        const about = `${isMonitor && name !== 'evict' ? 'monitor' : what} ${of}`
        const key = `${memory_scope_key} ${about}`
        const known = model.get(key)
        if (name === 'clear') {
          memories.clear({ memory_scope_key })
          for (const [each, { scope: of }] of model) if (of === memory_scope_key) model.delete(each)
        } else if (name === 'evict') {
          memories.evict({ memory_scope_key, kind: what, id: of })
          model.delete(key)
        } else if (isMonitor) {
          const found = name === 'execution' ? [] : [detection(`event ${step}`)]
          memories.monitorRan(memory_scope_key, { id: of, input: 'tides', at }, 'group', found)
          const events = [...found.map(({ event_id }) => event_id), ...(known?.events ?? [])]
          if (events.length > 0) model.set(key, { scope: memory_scope_key, about, at, events })
        } else {
          const memory =
            what === 'task' ? { kind: what, output: 'x' } : { kind: 'findall' as const, matched: 1 }
          memories.remember(memory_scope_key, { ...memory, id: of, input: 'tides', at } as never)
          model.set(key, { scope: memory_scope_key, about, at, events: [] })
        }
      }

      for (const memory_scope_key of [undefined, 'blue', 'red']) {
        const expected = [...model.values()]
          .filter((each) => each.scope === memory_scope_key)
          .toSorted((a, b) => b.at - a.at)
          .map(({ about, events }) => [about, ...events.slice(0, 10)])
        const shown = (query: string) =>
          memories
            .retrieve({ memory_scope_key, query, limit: 100 })
            .map((each) => [
              `${each.kind} ${each.id}`,
              ...((each.kind === 'monitor' && each.matched_events) || []).map(({ event_id }) => event_id),
            ])
        expect(shown('')).toEqual(expected)
        expect(shown('tides').toSorted()).toEqual(expected.toSorted())
      }
      memories.close()
      database.close()
    }),
  )
})

function detection(event_id: string) {
  const output = { type: 'text' as const, content: 'tides', basis: [] }
  return { event_id, event_group_id: 'group', event_date: null, output }
}
