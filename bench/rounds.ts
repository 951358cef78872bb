import { rounded } from './figure.ts'

/** Measures one side once: a rate, a time or a size, the same for both sides. */
export type Side = () => number | Promise<number>

/** The result of the rounds. */
export interface Comparison {
  /** The median of the rounds' ratios, ours divided by theirs. */
  readonly ratio: number
  /** The quartiles of the rounds' ratios. */
  readonly quartiles: readonly [number, number]
  /** The median of our side. */
  readonly ours: number
  /** The median of the other side. */
  readonly theirs: number
  readonly rounds: number
}

const ROUNDS = 9
const WARM_UP = 2

/**
 * Measures two sides alternately on the same machine, starting each round with the other side. Collects the young generation in
 * between. Not the old one: a full collection also drops optimized code for shapes without live objects, and each round would
 * measure the compiler.
 */
export async function alternately(
  ours: Side,
  theirs: Side,
  { rounds = ROUNDS, warmUp = WARM_UP } = {},
): Promise<Comparison> {
  const [mine, others] = await inTurns([ours, theirs], { rounds, warmUp })
  return compare(mine, others)
}

/** The result of the rounds of two sides. */
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

/** Like {@link alternately}, for any number of sides: the values of each side, in the order of the rounds. */
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
  // One list per side: the compiler does not keep a tuple through `map`.
  return columns.map(({ values }) => values) as { -readonly [Index in keyof Sides]: number[] }
}

/** A side, and its value in each round. */
interface Column {
  readonly side: Side
  readonly values: number[]
}

/**
 * The order of a round: each starts with another side, and every second one is reversed, so that none of three or more sides
 * always follows the same one.
 */
function inOrderOf<Item>(round: number, items: readonly Item[]): readonly Item[] {
  const first = round % items.length
  const others = [...items.slice(first + 1), ...items.slice(0, first)]
  return [...items.slice(first, first + 1), ...(round % 2 === 0 ? others : others.toReversed())]
}

/** The rate per second at which this work handles `count`. */
export async function perSecond(count: number, work: () => unknown): Promise<number> {
  return count / (await seconds(work))
}

/** The rate per second of this process's processor time at which this work handles `count`: other work on the machine counts less. */
export async function perProcessorSecond(count: number, work: () => unknown): Promise<number> {
  const began = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(began)
  return count / ((user + system) / 1e6)
}

/** The duration of the work. */
export async function seconds(work: () => unknown): Promise<number> {
  const began = process.hrtime.bigint()
  await work()
  return Number(process.hrtime.bigint() - began) / 1e9
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value at this quantile. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * share
  const below = sorted[Math.floor(at)] ?? NaN
  const above = sorted[Math.ceil(at)] ?? NaN
  return below + (above - below) * (at - Math.floor(at))
}
