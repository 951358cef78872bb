import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { groupEvent } from '../../src/protocol/event.ts'
import type { TaskGroupStatus } from '../../src/protocol/task-group.ts'
import type { RunStatus } from '../../src/protocol/task.ts'
import { GroupPosition } from '../../src/sources/group-position.ts'

const run = (n: number, status: RunStatus = 'completed') =>
  groupEvent(
    'g',
    { type: 'task_run.state', event_id: String(n), run: { run_id: `run_${n}`, status } },
    'stream',
  )

/** The status of a group whose runs have all ended, so many in each way. */
const endedWith = (counts: Partial<Record<RunStatus, number>>): TaskGroupStatus => ({
  num_task_runs: Object.values(counts).reduce((sum, count) => sum + count, 0),
  task_run_status_counts: counts,
  is_active: false,
  status_message: '',
  modified_at: 'm',
})

/** A position to which so many runs were told, over one connection. */
function toldTo(count: number): GroupPosition {
  const position = new GroupPosition(undefined, undefined)
  position.opened()
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
    '{"cursor":5}',
    '{"cursor":"5","told":"5"}',
    '{"told":-1}',
  ])('is refused where it is %s', (text) => {
    expect(GroupPosition.parse(text, undefined)).toBeUndefined()
  })

  it.each([null, [], {}, { is_active: 1, num_task_runs: 2 }, { is_active: false }])(
    'is refused where its last status is %j',
    (last) => {
      expect(GroupPosition.parse(JSON.stringify({ cursor: '5', told: 5, last }), undefined)).toBeUndefined()
    },
  )

  it('is read whatever the service has told', () => {
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
      position.opened()
      for (const wire of wires) {
        position.advance(groupEvent('g', wire, 'stream'))
        const text = position.place.text()
        expect(GroupPosition.parse(text, undefined)?.place.text()).toBe(text)
      }
    }
  })

  it('is that of the moment in which the place was asked for, whatever comes before it is written', () => {
    const status = { is_active: true, num_task_runs: 1 }
    const position = toldTo(2)
    position.advance(groupEvent('g', { type: 'task_group_status', event_id: '3', status }, 'stream'))
    position.opened()
    const { place } = position
    const text = place.text()
    position.advance(run(4))
    const later = { is_active: false, num_task_runs: 5 }
    position.advance(groupEvent('g', { type: 'task_group_status', event_id: '5', status: later }, 'stream'))
    position.opened()
    position.rewind()

    expect(place.text()).toBe(text)
  })
})

describe('a position that was counted to', () => {
  it('is the end without another connection, where none had to be resumed', () => {
    const position = toldTo(3)
    expect(position.verdict(endedWith({ completed: 3 }))).toBe('done')
  })

  it('does not count runs that have not ended', () => {
    const position = toldTo(1)
    position.advance(run(2, 'action_required'))
    position.advance(run(3, 'cancelling'))
    expect(position.verdict(endedWith({ completed: 1, cancelled: 2 }))).toBe('go on')
  })

  it('does not end the events stream with its last run alone, since a status comes behind', () => {
    const position = new GroupPosition(undefined, undefined, 'statuses')
    position.opened()
    position.advance(run(1))
    expect(position.verdict(endedWith({ completed: 1 }))).toBe('go on')
  })

  it('counts runs of the one status that was asked for', () => {
    const position = new GroupPosition(undefined, 'failed')
    position.opened()
    position.advance(run(1, 'failed'))
    expect(position.verdict(endedWith({ completed: 5, failed: 1 }))).toBe('done')
  })

  it('is the count of where the stream was resumed, once what is repeated has come by there', () => {
    const position = toldTo(5)
    position.opened()
    for (const repeated of [3, 4]) position.advance(run(repeated))
    position.opened()
    for (const n of [5, 6]) position.advance(run(n))
    expect(JSON.parse(position.place.text())).toMatchObject({ cursor: '6', told: 6 })
  })

  it('is put right after a restart as well that came within a repetition', () => {
    const before = toldTo(10)
    before.opened()
    for (const repeated of [8, 9]) before.advance(run(repeated))
    const after = GroupPosition.parse(before.place.text(), undefined)
    after?.opened()
    for (const n of [10, 11, 12]) after?.advance(run(n))
    expect(JSON.parse(after?.place.text() ?? '')).toMatchObject({ cursor: '12', told: 12 })

    // Nothing comes any more, but two runs were never told.
    expect(after?.verdict(endedWith({ completed: 14 }))).toBe('go on')
    after?.opened()
    expect(after?.verdict(endedWith({ completed: 14 }))).toBe('go on')
  })

  it('is refused as text where a place of resumption is none', () => {
    for (const resumed of [{}, [5], [{ told: 1 }], [{ cursor: '1', told: -1 }]])
      expect(
        GroupPosition.parse(JSON.stringify({ cursor: '5', told: 5, resumed }), undefined),
      ).toBeUndefined()
  })

  it('begins anew with a service that gives no cursors', () => {
    const position = new GroupPosition(undefined, undefined)
    const { cursor: _, ...unnumbered } = run(1)
    for (let connection = 0; connection < 2; connection++) {
      position.opened()
      position.advance(unnumbered)
    }
    expect(JSON.parse(position.place.text())).toEqual({ told: 1 })
  })

  it('counts what comes twice in a row once', () => {
    const position = toldTo(2)
    position.advance(run(2))
    expect(JSON.parse(position.place.text())).toEqual({ cursor: '2', told: 2 })
  })

  it('does not keep a stream going for ever that always ends within what it tells again', () => {
    const position = toldTo(8)
    const verdicts: string[] = []
    do {
      position.opened()
      const at = Number(position.cursor)
      position.advance(run(Math.max(1, at - 1)))
      verdicts.push(position.verdict(endedWith({ completed: 9 })))
    } while (verdicts.at(-1) === 'go on' && verdicts.length < 100)
    expect(verdicts.at(-1)).not.toBe('go on')
  })
})

/** How one connection goes. */
interface Connection {
  /** Events that are told again, at the most. */
  readonly repeats: number
  /** Events that are told beyond what was told before, at the most. */
  readonly tells: number
  /** Whether it ends too early: see {@link anyFlaw}. */
  readonly flawed: boolean
  readonly ends: 'cut' | 'close' | 'restart'
}

const connection: fc.Arbitrary<Connection> = fc.record({
  repeats: fc.nat(6),
  tells: fc.integer({ min: 1, max: 4 }),
  flawed: fc.boolean(),
  ends: fc.constantFrom('cut', 'close', 'restart'),
})
/** What the script ends with. */
const WHOLE: Connection = { repeats: 3, tells: 100, flawed: false, ends: 'close' }
/** How a connection is flawed: without any event, or by an end within what is told again. Both in a row deceive any count. */
const anyFlaw = fc.constantFrom('silent', 'short')
const anyStatus = fc.constantFrom<RunStatus>('completed', 'failed', 'cancelled')

describe('a runs stream that repeats what it told, is cut, closed and resumed by another process', () => {
  it('is done when every run was told, and not before', () => {
    fc.assert(
      fc.property(
        fc.array(anyStatus, { minLength: 1, maxLength: 12 }),
        fc.array(connection, { maxLength: 12 }),
        anyFlaw,
        (statuses, script, flaw) => {
          const log = statuses.map((status, i) => run(i + 1, status))
          const counts: Partial<Record<RunStatus, number>> = {}
          for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1
          const told = new Set<string>()
          let position = new GroupPosition(undefined, undefined)
          let verdict = 'go on'
          let flaws = 0
          let connections = 0

          while (verdict === 'go on' && connections < script.length + 3) {
            const left = told.size < log.length ? script[connections] : undefined
            const { repeats, tells, flawed, ends } = left ?? WHOLE
            connections += 1
            position.opened()
            const reached = Number(position.cursor ?? 0)
            const start = Math.max(0, reached - repeats)
            // Two short ones in a row would be a stream that goes backwards, and nobody waits in silence for ever.
            const isSilent = flawed && flaw === 'silent' && flaws < 4
            const isShort = flawed && flaw === 'short' && flaws === 0 && start + 1 < told.size
            const end = isSilent ? start : isShort ? start + 1 : told.size + tells
            flaws = isSilent || isShort ? flaws + 1 : 0
            for (const event of log.slice(start, end)) {
              told.add(event.id)
              position.advance(event)
            }
            if (ends === 'close') verdict = position.verdict(endedWith(counts))
            if (ends === 'restart') position = restarted(position)
          }

          expect(verdict).toBe('done')
          expect(told.size).toBe(log.length)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

function restarted(position: GroupPosition): GroupPosition {
  const read = GroupPosition.parse(position.place.text(), undefined)
  if (read === undefined) throw new Error('it cannot read what it wrote')
  return read
}
