const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Steps between the ticks of a time axis, in ms. */
const TIME_STEPS = [
  ...[1, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * HOUR),
  ...[1, 2, 5, 10, 30].map((days) => days * DAY),
]

/** Round values from 0 to the first one at or above `highest`, about `count` steps apart: 0, 20, 40, 60. */
export function valueTicks(highest: number, count = 4, isWhole = false): number[] {
  if (!(highest > 0) || !Number.isFinite(highest)) return [0, 1]
  const rough = highest / count
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const factor = [1, 2, 5, 10].find((each) => each * magnitude >= rough) ?? 10
  const step = isWhole ? Math.max(1, factor * magnitude) : factor * magnitude
  const steps = Math.max(1, Math.ceil(highest / step - 1e-9))
  // Multiplied and rounded, since sums of 0.1 drift.
  return Array.from({ length: steps + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

/** Durations of a logarithmic axis, in ms. */
const LAGS = [
  1,
  10,
  100,
  1_000,
  10_000,
  MINUTE,
  10 * MINUTE,
  HOUR,
  10 * HOUR,
  4 * DAY,
  40 * DAY,
  400 * DAY,
  4_000 * DAY,
]

/** Ticks of a logarithmic axis of durations in ms: from the last one below the lowest to the first one above the highest, two at least. */
export function lagTicks(lowest: readonly number[], highest: readonly number[]): readonly number[] {
  const low = Math.min(...lowest)
  const high = Math.max(0, ...highest)
  const to = LAGS.findIndex((tick) => tick >= high)
  const last = to < 0 ? LAGS.length - 1 : Math.max(1, to)
  const from = LAGS.findLastIndex((tick) => tick <= low)
  return LAGS.slice(Math.max(0, Math.min(from, last - 1)), last + 1)
}

/**
 * Times between `from` and `to` that are round in the reader's zone, at most `count` of them.
 *
 * @param offsetOf The zone's offset from UTC at a time, in minutes, as `Date` has it: positive west of Greenwich.
 */
export function timeTicks(
  from: number,
  to: number,
  count: number,
  offsetOf: (at: number) => number = (at) => new Date(at).getTimezoneOffset(),
): number[] {
  if (!(to > from) || count < 1) return []
  const step =
    TIME_STEPS.find((each) => (to - from) / each <= count) ?? Math.ceil((to - from) / count / DAY) * DAY
  const ticks: number[] = []
  // Local times as if they were UTC, so that a step of 6 h falls on midnight.
  for (let local = Math.ceil((from - offsetOf(from) * MINUTE) / step) * step; ; local += step) {
    const near = local + offsetOf(from) * MINUTE
    const at = local + offsetOf(near) * MINUTE
    if (at > to) return ticks
    if (at >= from && at !== ticks.at(-1)) ticks.push(at)
  }
}
