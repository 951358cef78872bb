import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkFunction } from '../../protocol/check.ts'
import { RefusedEffect } from '../refused-effect.ts'
import { numberOf } from './aggregates.ts'
import type { Aggregate, NumberOf } from './aggregates.ts'

/** Relative error of a percentile. */
const ACCURACY = 0.01

/** A value v is counted in bin `ceil(log v / log GAMMA)`: each value of a bin is within {@link ACCURACY} of its middle. */
const GAMMA = (1 + ACCURACY) / (1 - ACCURACY)

/** Maximum number of bins of one sign: values from 1 to 10^17 have 2,000. */
const MAX_BINS = 4_000

/** Numbers by bin, as pairs of the bin and its count, in the order of bins. Negative ones by the bin of their amount. */
interface Sketch {
  readonly negative: readonly Bin[]
  readonly zeros: number
  readonly positive: readonly Bin[]
}

type Bin = readonly [bin: number, count: number]

/**
 * A percentile of a number of each event, within 1 % of the exact one (of the value with the rank `ceil(p / 100 * count)`). Null without any.
 *
 * It does not depend on the order of the events: numbers are counted in bins whose bounds grow by 2 % (DDSketch). A window has at most 4,000 bins, and as many for
 * negative numbers.
 *
 * @param p From 0 to 100.
 * @throws ArgumentError for another `p`.
 */
export function percentile<Item>(value: NumberOf<Item>, p: number): Aggregate<Item, number | null, Sketch> {
  checkFunction('value', value)
  if (typeof p !== 'number' || !(p >= 0 && p <= 100))
    throw new ArgumentError('p', 'a number from 0 to 100', p)
  return {
    kind: `percentile ${p}`,
    init: () => ({ negative: [], zeros: 0, positive: [] }),
    add: (sketch, item) => {
      const number = numberOf('percentile', value, item)
      if (number === undefined) return sketch
      if (number === 0) return { ...sketch, zeros: sketch.zeros + 1 }
      const bins: readonly Bin[] = [[Math.ceil(Math.log(Math.abs(number)) / Math.log(GAMMA)), 1]]
      return number < 0
        ? { ...sketch, negative: joined(sketch.negative, bins) }
        : { ...sketch, positive: joined(sketch.positive, bins) }
    },
    merge: (a, b) => ({
      negative: joined(a.negative, b.negative),
      zeros: a.zeros + b.zeros,
      positive: joined(a.positive, b.positive),
    }),
    result: (sketch) => ranked(sketch, p),
  }
}

/** The bins of both, in order. */
function joined(a: readonly Bin[], b: readonly Bin[]): readonly Bin[] {
  const bins: Bin[] = []
  for (let [i, j] = [0, 0]; i < a.length || j < b.length;) {
    const [left, right] = [a[i], b[j]]
    const isBoth = left !== undefined && right !== undefined && left[0] === right[0]
    const isLeft = left !== undefined && (right === undefined || left[0] <= right[0])
    if (isBoth) bins.push([left[0], left[1] + right[1]])
    else if (isLeft) bins.push(left)
    else if (right !== undefined) bins.push(right)
    if (isLeft) i++
    if (isBoth || !isLeft) j++
  }
  if (bins.length <= MAX_BINS) return bins
  throw new RefusedEffect(
    `percentile: the numbers of a window are too far apart: they need more than ${MAX_BINS} bins`,
  )
}

function ranked({ negative, zeros, positive }: Sketch, p: number): number | null {
  const ascending: readonly (readonly [value: number, count: number])[] = [
    ...negative.toReversed().map(([bin, count]) => [-middleOf(bin), count] as const),
    [0, zeros],
    ...positive.map(([bin, count]) => [middleOf(bin), count] as const),
  ]
  const all = ascending.reduce((sum, [, count]) => sum + count, 0)
  // Multiplied first: 0.55 * 100 is more than 55.
  const rank = Math.max(1, Math.ceil((p * all) / 100))
  let seen = 0
  for (const [value, count] of ascending) {
    seen += count
    if (seen >= rank && count > 0) return value
  }
  return null
}

/** The value that is within {@link ACCURACY} of all values of a bin. */
function middleOf(bin: number): number {
  // The upper bound of the last bin is more than a number can be.
  return Math.min((1 + ACCURACY) * GAMMA ** (bin - 1), Number.MAX_VALUE)
}
