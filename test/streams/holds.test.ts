import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { behindEvent, caughtUpEvent } from '../../src/protocol/log-event.ts'
import { advanced, NO_TIME } from '../../src/streams/clocks.ts'
import { holdsOf, holdsText } from '../../src/streams/holds.ts'

type Step = Pick<ResearchEvent, 'type' | 'source' | 'data'>

const holdsAfter = (...steps: readonly Step[]) =>
  steps.reduce((clocks, step) => advanced(clocks, step, 1_000), NO_TIME).holds

const behind = (source: string, through = 500) =>
  behindEvent(source, source, { through, until: 2_000 }, 1_000)

describe('the holds of a process', () => {
  it('are given and taken by source', () => {
    const both = holdsAfter(behind('/a'), behind('/b'))
    expect([...both.values()]).toEqual([
      { through: 500, until: 2_000 },
      { through: 500, until: 2_000 },
    ])
    const one = holdsAfter(behind('/a'), behind('/b'), caughtUpEvent('/b', 'b', 900, 1_000))
    expect(one).toEqual(holdsAfter(behind('/a')))
  })

  it('are the same as a text that was read again', () => {
    const holds = holdsAfter(
      behind('/a'),
      behindEvent('/b', 'b', { through: -Infinity, until: Infinity }, 1_000),
    )
    expect(holdsOf(holdsText(holds))).toEqual(holds)
    expect(holdsOf(undefined).size).toBe(0)
  })

  it('end at a gap, which may have ended them', () => {
    const gap = { type: 'log.gap', source: '/log', data: { from: '1', to: '2' } } as const
    expect(holdsAfter(behind('/a'), gap).size).toBe(0)
  })

  it('begin at the watermark and have no end if the times of the entry cannot be read', () => {
    const odd = { type: 'source.behind', source: '/a', data: { through: 'soon', until: 7 } } as never
    expect([...holdsAfter(odd).values()]).toEqual([{ through: -Infinity, until: Infinity }])
    expect(holdsAfter({ type: 'source.behind', source: '/a', data: null } as never).size).toBe(0)
  })

  it('are at most a thousand', () => {
    const all = Array.from({ length: 1_100 }, (_, n) => behind(`/${n}`))
    expect(holdsAfter(...all).size).toBe(1_000)
  })
})
