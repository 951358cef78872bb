import { describe, expect, it } from 'vitest'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import type { EntryLine, Line } from './journal.ts'
import { findings } from './oracle.ts'
import type { EffectRow, Evidence } from './oracle.ts'
import { playRound } from './round.ts'

it('a log in a file keeps its promises while its users and its operator do what they may', async () => {
  const { findings: found, events } = await playRound({ folder: scratchFolder(), seed: 7 }, 4_000)
  expect(found).toEqual([])
  expect(events).toBeGreaterThan(0)
}, 240_000)

describe('the oracle of the random test', () => {
  const SOURCE = '/v1/monitors/m'

  const entry = (n: number, role = 'plain', recorded = n, revision = 1): EntryLine => {
    return { kind: 'entry', role, source: SOURCE, n, revision, recorded, at: recorded }
  }
  const effect = (n: number, generation = 0): EffectRow => ({ source: SOURCE, n, generation })
  const numbers = [0, 1, 2, 3]

  /** What is found where all is right but for these. */
  function found(
    wrong: { readonly plain?: readonly Line[]; readonly audit?: readonly Line[] } & Partial<Evidence>,
  ) {
    const {
      plain = numbers.map((n) => entry(n)),
      audit = numbers.map((n) => entry(n, 'audit')),
      ...rest
    } = wrong
    return findings({
      emitted: new Map([['m', numbers]]),
      journals: [plain],
      audit: [...audit, { kind: 'state', source: SOURCE, next: 4, faults: 0 }],
      consumers: ['plain'],
      readers: ['reader'],
      effects: numbers.map((n) => effect(n)),
      rewoundTo: new Map(),
      maxAge: undefined,
      isSmall: false,
      ...rest,
    })
  }

  it('finds nothing where all is right', () => {
    expect(found({})).toEqual([])
  })

  it.each<[string, Parameters<typeof found>[0], RegExp]>([
    ['an entry that a consumer misses', { plain: [0, 1, 3].map((n) => entry(n)) }, /plain misses 1 of 4/],
    [
      'entries out of order',
      { plain: [entry(0), entry(2, 'plain', 1), entry(1, 'plain', 2), entry(3)] },
      /2 before 1/,
    ],
    [
      'a gap',
      { plain: [...numbers.map((n) => entry(n)), { kind: 'gap', role: 'plain', recorded: 4, at: 4 }] },
      /1 gaps/,
    ],
    [
      'a reader that passes over entries',
      { journals: [[...numbers.map((n) => entry(n)), entry(0, 'reader'), entry(2, 'reader')]] },
      /got .* 2 in the place of 1/,
    ],
    [
      'numbers of the log without a reader that they had before',
      {
        journals: [
          numbers.map((n) => entry(n)),
          [['plain', 'slow'], ['plain'], ['plain', 'slow']].map((names) => {
            return { kind: 'readers', role: 'watch', names }
          }),
        ],
      },
      /have left out slow/,
    ],
    [
      'an effect that was not done',
      { effects: [effect(0), effect(1), effect(3)] },
      /effects of .* 2 to 2 were not done/,
    ],
    ['an effect that was done twice', { effects: [0, 1, 1, 2, 3].map((n) => effect(n)) }, /1 was done twice/],
    [
      'an effect that was done again from before its place',
      {
        effects: [...numbers.map((n) => effect(n)), effect(1, 1), effect(2, 1), effect(3, 1)],
        rewoundTo: new Map([[1, new Map([[SOURCE, 2]])]]),
      },
      /1 was done again, before the place of the log, 2/,
    ],
    [
      'an entry that is missing in the log',
      { audit: [0, 1, 3].map((n) => entry(n, 'audit')) },
      /has .* 3 in the place of 2/,
    ],
    [
      'an entry that was recorded again',
      { audit: [0, 1, 2, 3].map((n) => entry(n, 'audit', n, 2)) },
      /recorded again, as revision 2/,
    ],
    [
      'entries that were deleted without retention',
      { audit: [2, 3].map((n) => entry(n, 'audit')) },
      /2 entries of .* were deleted/,
    ],
    [
      'a state that misses an entry',
      {
        audit: [
          ...numbers.map((n) => entry(n, 'audit')),
          { kind: 'state', source: SOURCE, next: 3, faults: 0 },
        ],
      },
      /the state of m is/,
    ],
    [
      'a time that is wrong',
      { plain: [entry(0), entry(1), entry(2), { ...entry(3), recorded: 200_000 }] },
      /wrong by \d+ ms/,
    ],
  ])('finds %s', (_, wrong, expected) => {
    expect(found(wrong).join('\n')).toMatch(expected)
  })
})
