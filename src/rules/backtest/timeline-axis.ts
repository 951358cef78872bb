const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A mark of the time axis. */
export interface AxisMark {
  /** Time, Unix ms. */
  readonly at: number
  readonly label: string
}

const STEPS = [
  1_000,
  5_000,
  15_000,
  30_000,
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  3 * HOUR,
  6 * HOUR,
  12 * HOUR,
  DAY,
  2 * DAY,
  7 * DAY,
  14 * DAY,
]
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120]
const NAMES = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Marks at whole times of UTC, at most so many. */
export function axisMarks(from: number, to: number, most: number): readonly AxisMark[] {
  const step = STEPS.find((each) => (to - from) / each <= most)
  const times = step === undefined ? wholeMonths(from, to, most) : multiples(from, to, step)
  let last: Date | undefined
  return times.map((at) => {
    const date = new Date(at)
    const label = labelOf(date, last, step ?? Infinity)
    last = date
    return { at, label }
  })
}

function multiples(from: number, to: number, step: number): readonly number[] {
  const first = Math.ceil(from / step) * step
  return Array.from(
    { length: Math.max(0, Math.floor((to - first) / step) + 1) },
    (_, index) => first + index * step,
  )
}

function wholeMonths(from: number, to: number, most: number): readonly number[] {
  const step = MONTHS.find((each) => (to - from) / (each * 30 * DAY) <= most) ?? 120
  const begin = new Date(from)
  const times: number[] = []
  for (let month = Math.floor(begin.getUTCMonth() / step) * step; times.length <= most; month += step) {
    const at = Date.UTC(begin.getUTCFullYear(), month)
    if (at > to) break
    if (at >= from) times.push(at)
  }
  return times
}

/** The time of a day, or the date at the beginning of a day, with the year if it differs. */
function labelOf(date: Date, last: Date | undefined, step: number): string {
  const text = date.toISOString()
  const isNewDay = last === undefined || last.toISOString().slice(0, 10) !== text.slice(0, 10)
  const isNewYear = last === undefined || last.getUTCFullYear() !== date.getUTCFullYear()
  const day = `${NAMES[date.getUTCMonth()]} ${step > 14 * DAY ? '' : date.getUTCDate()}`.trim()
  const dated = isNewYear ? `${day} ${date.getUTCFullYear()}` : day
  if (step >= DAY) return dated
  const time = text.slice(11, step < MINUTE ? 19 : 16)
  return isNewDay ? `${dated}, ${time}` : time
}
