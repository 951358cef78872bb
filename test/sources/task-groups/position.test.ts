import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { groupEvent } from '../../../src/protocol/event.ts'
import type { ResearchEvent } from '../../../src/protocol/event.ts'
import type { TaskGroupStatus } from '../../../src/protocol/task-group.ts'
import type { RunStatus } from '../../../src/protocol/task.ts'
import { GroupPosition } from '../../../src/sources/task-groups/position.ts'
import { SAVED } from '../../../src/sources/shapes/seen-entries.ts'

const run = (n: number, status: RunStatus = 'completed') =>
  groupEvent(
    'g',
    { type: 'task_run.state', event_id: String(n), run: { run_id: `run_${n}`, status } },
    'stream',
  )

/** The status of a group whose runs have all ended, with this number of runs per status. */
const endedWith = (counts: Partial<Record<RunStatus, number>>): TaskGroupStatus => ({
  num_task_runs: Object.values(counts).reduce((sum, count) => sum + count, 0),
  task_run_status_counts: counts,
  is_active: false,
  status_message: '',
  modified_at: 'm',
})

/** A position after this many runs over one connection. */
function withRuns(count: number): GroupPosition {
  const position = new GroupPosition(undefined, undefined)
  position.connect()
  for (let n = 1; n <= count; n++) position.advance(run(n))
  return position
}

describe('a position as text', () => {
  it.each([
    '',
    'garbage',
    '[]',
    '"5"',
    '5',
    'null',
    '{}',
    'null\n',
    '{}\n',
    '{"cursor":5,"ended":[1,0,0]}\n',
    '{"cursor":"5"}\n',
    '{"cursor":"5","ended":[1,0]}\n',
    '{"cursor":"5","ended":[1,0,-1]}\n',
    '{"cursor":"5","ended":[1,0,0]}',
    '{"cursor":"5","ended":[1,0,0]}\n?',
    '{"cursor":"5","ended":[1,0,0]}\nAAAA',
    '{"cursor":"5","ended":[1,0,0],"whole":1}\n',
    '{"cursor":"5","ended":[1,0,0],"skipped":0.5}\n',
    '{"ended":[1,0,0]}\n',
  ])('is rejected if it is %j', (text) => {
    expect(GroupPosition.parse(text, undefined)).toBeUndefined()
  })

  it.each([null, [], {}, { is_active: 1, num_task_runs: 2 }, { is_active: false }])(
    'is rejected if its last status is %j',
    (last) => {
      const text = `${JSON.stringify({ cursor: '5', ended: [5, 0, 0], last })}\n`
      expect(GroupPosition.parse(text, undefined)).toBeUndefined()
    },
  )

  it('is parsed for any status that the service sends', () => {
    const wires = [
      { type: 'task_run.state', event_id: '1', run: { run_id: 'r', status: 'completed' } },
      {
        type: 'task_group_status',
        event_id: '2',
        status: { is_active: false, num_task_runs: 1, more: 'than that' },
      },
      { type: 'task_group_status', event_id: '3', status: {} },
      { type: 'task_group_status', event_id: '4', status: { is_active: 'no', num_task_runs: null } },
      { type: 'something', event_id: '5' },
      'keep-alive',
    ]
    for (const cursor of [undefined, '0']) {
      const position = new GroupPosition(cursor, undefined)
      position.connect()
      for (const wire of wires) {
        position.advance(groupEvent('g', wire, 'stream'))
        const text = position.snapshot.text()
        expect(GroupPosition.parse(text, undefined)?.snapshot.text()).toBe(text)
      }
    }
  })

  it('does not change in a snapshot when the position advances', () => {
    const status = { is_active: true, num_task_runs: 1 }
    const position = withRuns(2)
    position.advance(groupEvent('g', { type: 'task_group_status', event_id: '3', status }, 'stream'))
    position.connect()
    const { snapshot } = position
    const text = snapshot.text()
    position.advance(run(4))
    const later = { is_active: false, num_task_runs: 5 }
    position.advance(groupEvent('g', { type: 'task_group_status', event_id: '5', status: later }, 'stream'))
    position.connect()
    position.rewind()

    expect(snapshot.text()).toBe(text)
  })
})

describe('the decision after a clean close', () => {
  it('is done without another connection if all runs were seen', () => {
    const position = withRuns(3)
    expect(position.decide(endedWith({ completed: 3 }))).toBe('done')
  })

  it('does not count runs that have not ended', () => {
    const position = withRuns(1)
    position.advance(run(2, 'action_required'))
    position.advance(run(3, 'cancelling'))
    expect(position.decide(endedWith({ completed: 1, cancelled: 2 }))).toEqual({ missing: 2, expected: 3 })
  })

  it('reconnects an events stream with all runs but without the last status', () => {
    const position = new GroupPosition(undefined, undefined, 'events')
    position.connect()
    position.advance(run(1))
    expect(position.decide(endedWith({ completed: 1 }))).toBe('reconnect')
  })

  it('counts only runs with the status of the filter', () => {
    const position = new GroupPosition(undefined, 'failed')
    position.connect()
    position.advance(run(1, 'failed'))
    expect(position.decide(endedWith({ completed: 5, failed: 1 }))).toBe('done')
  })

  it('counts a run that ended twice by its last status', () => {
    const position = new GroupPosition(undefined, undefined)
    position.connect()
    position.advance(run(1, 'failed'))
    // It was retried, and ended while no stream was open.
    expect(position.decide(endedWith({ completed: 1 }))).toEqual({ missing: 1, expected: 1 })
    position.connect()
    expect(position.advance(at('2', run(1, 'completed')))).toBe(true)
    expect(position.advance(run(1, 'failed'))).toBe(false)
    expect(position.advance(at('2', run(1, 'completed')))).toBe(false)
    expect(position.decide(endedWith({ completed: 1 }))).toBe('done')
  })

  it('does not count repeated events, in any order, over any number of connections', () => {
    const position = withRuns(5)
    for (const repeated of [3, 1, 1, 5, 2]) {
      position.connect()
      expect(position.advance(run(repeated))).toBe(false)
      expect(position.cursor).toBe('5')
      expect(position.decide(endedWith({ completed: 6 }))).toEqual({ missing: 1, expected: 6 })
    }
  })

  it('does not count repeated events after a restart either', () => {
    const position = restarted(withRuns(5))
    for (const repeated of [1, 4, 5]) {
      position.connect()
      expect(position.advance(run(repeated))).toBe(false)
      expect(position.cursor).toBe('5')
      expect(position.decide(endedWith({ completed: 6 }))).toEqual({ missing: 1, expected: 6 })
    }
  })

  it('is uncertain if more runs were seen before a restart than a text holds', () => {
    const position = restarted(withRuns(SAVED + 10))
    const group = endedWith({ completed: SAVED + 11 })
    position.connect()
    // The text does not hold this one, so it counts as new.
    expect(position.advance(run(1))).toBe(true)
    const decisions = ['reconnect', 'reconnect', 'reconnect', 'idle']
    for (const decision of decisions) {
      expect(position.decide(group)).toBe(decision)
      position.connect()
    }
  })

  it('is a shortfall if runs are missing, however many were seen before a restart', () => {
    const position = restarted(withRuns(SAVED + 10))
    position.connect()
    expect(position.decide(endedWith({ completed: SAVED + 12 }))).toEqual({
      missing: 2,
      expected: SAVED + 12,
    })
  })

  it('counts distinct runs if the service sends no cursors', () => {
    const position = new GroupPosition(undefined, undefined)
    const { cursor: _, ...unnumbered } = run(1)
    for (let connection = 0; connection < 2; connection++) {
      position.connect()
      expect(position.advance(unnumbered)).toBe(connection === 0)
    }
    expect(position.decide(endedWith({ completed: 2 }))).toEqual({ missing: 1, expected: 2 })
  })

  it('counts an event that is repeated immediately once', () => {
    const position = withRuns(2)
    position.advance(run(2))
    expect(position.decide(endedWith({ completed: 3 }))).toEqual({ missing: 1, expected: 3 })
  })

  it('counts an event once that comes again after a rewind', () => {
    const position = withRuns(3)
    expect(position.rewind()).toBe(true)
    position.connect()
    for (const repeated of [1, 2, 3]) position.advance(at(`new ${repeated}`, run(repeated)))
    expect(position.cursor).toBe('new 3')
    expect(position.decide(endedWith({ completed: 3 }))).toBe('done')
  })

  it('counts from zero after a rewind if more runs were seen before a restart than a text holds', () => {
    const position = restarted(withRuns(SAVED + 10))
    position.rewind()
    position.connect()
    for (let n = 1; n <= SAVED + 10; n++) position.advance(at(`new ${n}`, run(n)))
    expect(JSON.parse(position.snapshot.text().split('\n')[0] ?? '')).toMatchObject({
      ended: [SAVED + 10, 0, 0],
    })
    expect(position.decide(endedWith({ completed: SAVED + 10 }))).toBe('done')
  })

  it('is idle after a rewind when no new event comes', () => {
    const position = withRuns(3)
    position.rewind()
    const decisions: unknown[] = []
    do {
      position.connect()
      position.advance(at('new', run(4)))
      decisions.push(position.decide(endedWith({ completed: 9 })))
    } while (decisions.at(-1) === 'reconnect' && decisions.length < 10)
    expect(decisions).toEqual(['reconnect', 'reconnect', 'reconnect', 'idle'])
  })

  it('counts a skipped event as a missing one', () => {
    const position = withRuns(2)
    const first = position.skip()
    position.advance(run(4))
    position.connect()
    const decisions = Array.from({ length: 4 }, () => {
      const decision = position.decide(endedWith({ completed: 4 }))
      position.connect()
      return decision
    })
    expect(first).toEqual({ isNew: true, cursor: '2', count: 1 })
    expect(decisions).toEqual(['reconnect', 'reconnect', 'reconnect', 'idle'])
    expect(position.decide(endedWith({ completed: 5 }))).toEqual({ missing: 2, expected: 5 })
  })

  it('counts each skipped event once, over connections and restarts', () => {
    let position = withRuns(2)
    position.skip()
    position = restarted(position)
    position.connect()
    expect(position.skip().isNew).toBe(false)
    expect(position.skip()).toEqual({ isNew: true, cursor: '2', count: 2 })
    expect(position.decide(endedWith({ completed: 5 }))).toEqual({ missing: 3, expected: 5 })
  })

  it('reconnects to a group that never had a run, with a cursor of the caller too', () => {
    for (const position of [new GroupPosition(undefined, undefined), new GroupPosition('5', undefined)]) {
      for (let connection = 0; connection < 20; connection++) {
        position.connect()
        expect(position.decide(endedWith({}))).toBe('reconnect')
      }
    }
  })

  it('follows an id without an event, but never moves back', () => {
    const position = withRuns(2)
    expect(position.moveTo('7')).toBe(true)
    expect(position.cursor).toBe('7')
    position.moveTo('8')
    expect(position.moveTo('7')).toBe(false)
    expect(position.cursor).toBe('8')
  })

  it.each([
    undefined,
    null,
    {},
    { completed: null },
    { completed: -1 },
    { completed: 1.5 },
    { completed: 7 },
  ])('compares only the total if the counts of the group are %j', (counts) => {
    const group: unknown = { ...endedWith({ completed: 3 }), task_run_status_counts: counts }
    const decisions = (position: GroupPosition) =>
      Array.from({ length: 3 }, () => {
        const decision = position.decide(group as TaskGroupStatus)
        position.connect()
        return decision
      })
    const missing = { missing: 1, expected: 3 }
    expect(decisions(withRuns(2))).toEqual([missing, missing, missing])
    expect(decisions(withRuns(3))).toEqual(['reconnect', 'reconnect', 'idle'])
  })
})

/** One connection. */
interface Connection {
  /** Earlier events that are sent first, each an index modulo the number of sent events. */
  readonly repeats: readonly number[]
  /** The most new events that are sent then. */
  readonly sends: number
  readonly ends: 'cut' | 'close' | 'restart'
}

const connection: fc.Arbitrary<Connection> = fc.record({
  repeats: fc.array(fc.nat(20), { maxLength: 5 }),
  sends: fc.nat(3),
  ends: fc.constantFrom('cut', 'close', 'restart'),
})
const anyStatus = fc.constantFrom<RunStatus>('completed', 'failed', 'cancelled')

describe('a runs stream that repeats events, breaks, closes, is empty and is resumed by another process', () => {
  it('is done when every run was sent and not before, and its cursor never moves back', () => {
    fc.assert(
      fc.property(
        fc.array(anyStatus, { minLength: 1, maxLength: 12 }),
        fc.array(connection, { maxLength: 20 }),
        (statuses, script) => {
          const log = statuses.map((status, i) => run(i + 1, status))
          const counts: Partial<Record<RunStatus, number>> = {}
          for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
          let sent = 0
          let position = new GroupPosition(undefined, undefined)
          for (const { repeats, sends, ends } of script) {
            position.connect()
            const from = Number(position.cursor ?? 0)
            expect(from).toBe(sent)
            const earlier = from === 0 ? [] : repeats.map((n) => log[n % from])
            for (const event of [...earlier, ...log.slice(from, from + sends)]) {
              if (event !== undefined) position.advance(event)
            }
            sent = Math.min(log.length, sent + sends)
            const missing = log.length - sent
            const decision = missing === 0 ? 'done' : { missing, expected: log.length }
            expect(ends === 'close' ? position.decide(endedWith(counts)) : decision).toEqual(decision)
            if (ends === 'restart') position = restarted(position)
          }
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

/** The event, at another position of the stream. */
function at(cursor: string, event: ResearchEvent): ResearchEvent {
  return { ...event, cursor }
}

function restarted(position: GroupPosition): GroupPosition {
  const read = GroupPosition.parse(position.snapshot.text(), undefined)
  if (read === undefined) throw new Error('it cannot parse its own text')
  return read
}
