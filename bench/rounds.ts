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
 * garbage of one is collected before the other begins. Not the old: a full collection also drops optimized code for shapes of
 * objects of which none is alive just then, and every round would measure the compiler.
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

/** As {@link alternately} for any number of sides: what each round measured of each side, in the order of the rounds. */
export async function inTurns<const Sides extends readonly Side[]>(
  sides: Sides,
  { rounds = ROUNDS, warmUp = WARM_UP } = {},
): Promise<{ -readonly [Index in keyof Sides]: number[] }> {
  const columns = sides.map((side): Column => ({ side, values: [] }))
  for (let round = 0; round < warmUp + rounds; round++) {
    for (const { side, values } of inOrderOf(round, columns)) {
      globalThis.gc?.({ type: 'minor' })
      const value = await side()
      if (!Number.isFinite(value)) throw new Error(`a side measured ${value}`)
      if (round >= warmUp) values.push(value)
    }
  }
  // One list for each side: the compiler does not follow a tuple through `map`.
  return columns.map(({ values }) => values) as { -readonly [Index in keyof Sides]: number[] }
}

/** A side, and what each round measured of it. */
interface Column {
  readonly side: Side
  readonly values: number[]
}

/**
 * The order of a round: each begins with another one than the round before, and every second one goes backwards, so that
 * of three or more none always follows the same one.
 */
function inOrderOf<Item>(round: number, items: readonly Item[]): readonly Item[] {
  const first = round % items.length
  const others = [...items.slice(first + 1), ...items.slice(0, first)]
  return [...items.slice(first, first + 1), ...(round % 2 === 0 ? others : others.toReversed())]
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
