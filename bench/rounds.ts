import { rounded } from './figure.ts'

/** Measures one side once: a rate, a time or a size, always the same of both sides. */
export type Side = () => number | Promise<number>

/** What the rounds came to. */
export interface Comparison {
  /** The median of the rounds' ratios, ours by theirs. */
  readonly ratio: number
  /** The middle half of the rounds' ratios lies between these. */
  readonly quartiles: readonly [number, number]
  /** Median of our side. */
  readonly ours: number
  /** Median of the other side. */
  readonly theirs: number
  readonly rounds: number
}

const ROUNDS = 9
const WARM_UP = 2

/**
 * Measures two sides in turns, so that both meet the same machine, the first of a round changing with each. The young
 * garbage of one is collected before the other begins. Not the old: a full collection throws away the compiled code of each
 * class that has no instance just then, and every round would measure the compiler.
 */
export async function alternately(
  ours: Side,
  theirs: Side,
  { rounds = ROUNDS, warmUp = WARM_UP } = {},
): Promise<Comparison> {
  const [mine, others] = await inTurns([ours, theirs], { rounds, warmUp })
  return compare(mine, others)
}

/** What the rounds of two sides came to. */
export function compare(mine: readonly number[], others: readonly number[]): Comparison {
  const ratios = mine.map((value, round) => value / (others[round] ?? NaN))
  return {
    ratio: median(ratios),
    quartiles: [rounded(quantile(ratios, 0.25)), rounded(quantile(ratios, 0.75))],
    ours: rounded(median(mine)),
    theirs: rounded(median(others)),
    rounds: ratios.length,
  }
}

/** As {@link alternately} for any number of sides: what each round measured of each side. */
export async function inTurns<const Sides extends readonly Side[]>(
  sides: Sides,
  { rounds = ROUNDS, warmUp = WARM_UP } = {},
): Promise<{ -readonly [Index in keyof Sides]: number[] }> {
  const measured = sides.map((): number[] => [])
  for (let round = -warmUp; round < rounds; round++) {
    for (let turn = 0; turn < sides.length; turn++) {
      // Later rounds begin with another side.
      const index = (turn + round + warmUp) % sides.length
      globalThis.gc?.({ type: 'minor' })
      const value = await sides[index]?.()
      if (round >= 0 && value !== undefined) measured[index]?.push(value)
    }
  }
  // One list for each side, as they came.
  return measured as { -readonly [Index in keyof Sides]: number[] }
}

/** How many a second when `count` of them take as long as this work. */
export async function perSecond(count: number, work: () => unknown): Promise<number> {
  return count / (await seconds(work))
}

/** How long the work takes. */
export async function seconds(work: () => unknown): Promise<number> {
  const began = process.hrtime.bigint()
  await work()
  return Number(process.hrtime.bigint() - began) / 1e9
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value below which this share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? NaN
  const above = sorted[Math.ceil(at)] ?? NaN
  return below + (above - below) * (at - Math.floor(at))
}
