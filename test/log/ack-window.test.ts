import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AckWindow } from '../../src/log/consume/ack-window.ts'

const START = { cursor: '0', acknowledged: [] }

describe('the window of a consumer', () => {
  it('moves its cursor past the gap-free run of what was acknowledged', () => {
    const window = new AckWindow(START)
    for (const position of ['1', '2', '3', '4']) expect(window.add(position)).toBe(true)
    window.acknowledge('2')
    window.acknowledge('4')
    expect(window.state).toEqual({ cursor: '0', acknowledged: ['2', '4'] })
    window.acknowledge('1')
    expect(window.state).toEqual({ cursor: '2', acknowledged: ['4'] })
    window.acknowledge('3')
    expect(window.state).toEqual({ cursor: '4', acknowledged: [] })
  })

  it('does not emit again what was acknowledged before a restart', () => {
    const window = new AckWindow({ cursor: '1', acknowledged: ['3'] })
    expect([window.add('2'), window.add('3'), window.add('4')]).toEqual([true, false, true])
    window.acknowledge('2')
    expect(window.state).toEqual({ cursor: '3', acknowledged: [] })
  })

  it('keeps what was acknowledged before a restart and is not read again yet', () => {
    const window = new AckWindow({ cursor: '1', acknowledged: ['3', '5'] })
    window.add('2')
    expect(window.state).toEqual({ cursor: '1', acknowledged: ['3', '5'] })
  })

  it('forgets what was acknowledged before a restart and is not wanted any more, once it is behind what was read', () => {
    const window = new AckWindow({ cursor: '1', acknowledged: ['3', '5', '7'] })
    expect(window.until).toBe('7')
    window.add('2')
    window.add('4')
    window.acknowledge('4')
    // In order, so that the last one is the last to be read again.
    expect(window.state.acknowledged).toEqual(['4', '3', '5', '7'])
    expect(window.stateAfter(new Set()).acknowledged).toEqual(['4', '3', '5', '7'])
    window.add('7')
    expect(window.until).toBeUndefined()
    expect(window.state.acknowledged).toEqual(['4', '7'])
    expect(new AckWindow(window.state).until).toBe('7')
  })

  it('moves past what is skipped, and does not store it behind a gap: another filter may want it', () => {
    const window = new AckWindow(START)
    window.skipTo('2')
    expect(window.state).toEqual({ cursor: '2', acknowledged: [] })
    window.add('3')
    window.skipTo('4')
    window.skipTo('5')
    expect(window.state).toEqual({ cursor: '2', acknowledged: [] })
    expect(window.size).toBe(2)
    window.acknowledge('3')
    expect(window.state).toEqual({ cursor: '5', acknowledged: [] })
  })

  it('ignores an acknowledgement of what is not open', () => {
    const window = new AckWindow(START)
    window.add('1')
    expect([window.acknowledge('1'), window.acknowledge('1'), window.acknowledge('9')]).toEqual([
      true,
      false,
      false,
    ])
  })

  it('has a stalled entry if the first one was not received', () => {
    const window = new AckWindow(START)
    expect(window.stalled).toBeUndefined()
    window.add('1')
    window.add('2')
    expect(window.stalled).toBe('1')
    window.received('1')
    expect([window.stalled, window.isBeingHandled]).toEqual([undefined, true])
    window.release('1')
    expect([window.stalled, window.isBeingHandled]).toEqual(['1', false])
    window.acknowledge('1')
    expect(window.stalled).toBe('2')
  })

  it('acknowledges an entry when all that was received of it is acknowledged', () => {
    const window = new AckWindow(START)
    window.add('1')
    window.received('1')
    window.received('1')
    expect([window.acknowledge('1'), window.cursor, window.isBeingHandled]).toEqual([false, '0', true])
    expect([window.acknowledge('1'), window.cursor, window.isBeingHandled]).toEqual([true, '1', false])
  })

  it.each([
    ['first', ['release', 'acknowledge']],
    ['last', ['acknowledge', 'release']],
  ] as const)('keeps an entry open of which the %s part was released', (_, calls) => {
    const window = new AckWindow(START)
    window.add('1')
    window.received('1')
    window.received('1')
    for (const call of calls) window[call]('1')
    expect([window.cursor, window.isBeingHandled, window.stalled]).toEqual(['0', false, '1'])
    // A later part does not hide the one that was released.
    window.received('1')
    expect([window.acknowledge('1'), window.state]).toEqual([false, START])
  })

  it('resumes, after a restart at any moment, with exactly what was not acknowledged', () => {
    const steps = fc.array(
      fc.oneof(
        fc.record({ do: fc.constant('read' as const), isWanted: fc.boolean() }),
        fc.record({ do: fc.constant('acknowledge' as const), which: fc.nat() }),
        fc.record({ do: fc.constant('restart' as const) }),
      ),
      { maxLength: 200 },
    )
    fc.assert(
      fc.property(steps, (all) => {
        // Whether an entry is wanted is a property of the entry.
        const isWanted: boolean[] = []
        const acknowledged = new Set<number>()
        let window = new AckWindow(START)
        /** Emitted although they were acknowledged, or not emitted although they were not. */
        const wrong: number[] = []
        let open: number[] = []
        let next = 1
        for (const step of all) {
          if (step.do === 'read') {
            isWanted[next] ??= step.isWanted
            if (isWanted[next] !== true) {
              window.skipTo(String(next))
            } else {
              const isEmitted = window.add(String(next))
              if (isEmitted === acknowledged.has(next)) wrong.push(next)
              if (isEmitted) open.push(next)
            }
            next += 1
          } else if (step.do === 'acknowledge') {
            const entry = open[step.which % Math.max(1, open.length)]
            if (entry === undefined) continue
            open = open.filter((each) => each !== entry)
            acknowledged.add(entry)
            window.acknowledge(String(entry))
          } else {
            const { state } = window
            window = new AckWindow(state)
            next = Number(state.cursor) + 1
            open = []
          }
          expect(wrong).toEqual([])
          const isOutstanding = (n: number) => isWanted[n] === true && !acknowledged.has(n)
          const passed = Array.from({ length: Number(window.cursor) + 1 }, (_, n) => n)
          expect(passed.filter(isOutstanding)).toEqual([])
          expect(window.unacknowledged).toBe(open.length)
        }
      }),
    )
  })
})
