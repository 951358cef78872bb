const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** The longest time span of a rule, in ms. */
export const MAX_DURATION = 366 * DAY

/** A time span as text: parts of `w`, `d`, `h`, `m`, `s` and `ms`, the largest first, each at most once. */
export const DURATION_PATTERN =
  /^(?=\d)(?:(\d{1,11})w)?(?:(\d{1,11})d)?(?:(\d{1,11})h)?(?:(\d{1,11})m)?(?:(\d{1,11})s)?(?:(\d{1,11})ms)?$/

const UNITS = [7 * DAY, DAY, HOUR, MINUTE, SECOND, 1]

/** A time span in ms; undefined if it is malformed. Its bounds are not checked. */
export function parseDuration(duration: string | number): number | undefined {
  if (typeof duration === 'number') return Number.isSafeInteger(duration) ? duration : undefined
  const parts = DURATION_PATTERN.exec(duration)
  if (parts === null) return undefined
  return UNITS.reduce((sum, unit, index) => sum + Number(parts[index + 1] ?? 0) * unit, 0)
}
