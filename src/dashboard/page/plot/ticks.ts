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

/** Round values of a duration in ms, whose steps are of its own units: 0, 15 s, 30 s, 45 s. */
export function durationTicks(highest: number, count = 4): number[] {
  if (!(highest > 10_000)) return valueTicks(highest, count)
  const steps = [5_000, 10_000, 15_000, 30_000, ...TIME_STEPS]
  const step = steps.find((each) => each * count >= highest)
  if (step === undefined) return valueTicks(highest / DAY, count, true).map((days) => days * DAY)
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, index) => index * step)
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
