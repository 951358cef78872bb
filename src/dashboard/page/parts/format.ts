const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const UNITS = ['bytes', 'kB', 'MB', 'GB', 'TB']

/** Texts for numbers and times in one language and zone. Times are Unix ms. */
export interface Formats {
  number(value: number): string
  percent(share: number): string
  /** A size in bytes as text: `12.3 MB`. */
  bytes(size: number): string
  /** A duration in its two greatest units, such as `2 min 5 s`; of less than a second in ms. */
  duration(ms: number): string
  /** `just now`, `5 min. ago`, `in 2 hr.`; a date for a time more than a week away. */
  relative(at: number, now: number): string
  /** Hours and minutes. */
  clock(at: number): string
  /** Hours, minutes and seconds. */
  clockWithSeconds(at: number): string
  /** `Sunday, 22 November 2026`. */
  day(at: number): string
  /** `22 Nov`. */
  shortDay(at: number): string
  /** Date, time to the second, and zone. */
  exact(at: number): string
  /** Years, months and days as the reader's calendar begins them: equal texts for times of one day. */
  dayKey(at: number): string
}

/** Formats for a language and a zone. Default: the reader's. */
export function createFormats(locale?: string, timeZone?: string): Formats {
  const dates = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat(locale, { ...options, timeZone })
  const number = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 })
  const whole = new Intl.NumberFormat(locale, { maximumFractionDigits: 0 })
  const tenths = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 })
  const percent = new Intl.NumberFormat(locale, { style: 'percent', maximumFractionDigits: 0 })
  const relative = new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })
  const clock = dates({ hour: 'numeric', minute: '2-digit' })
  const clockWithSeconds = dates({ hour: 'numeric', minute: '2-digit', second: '2-digit' })
  const day = dates({ weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' })
  const shortDay = dates({ day: 'numeric', month: 'short' })
  const exact = dates({ dateStyle: 'medium', timeStyle: 'long' })
  const key = new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' })

  return {
    number: (value) => number.format(value),
    percent: (share) => percent.format(share),
    bytes(size) {
      const power = Math.min(UNITS.length - 1, size < 1_000 ? 0 : Math.floor(Math.log10(size) / 3))
      return `${tenths.format(size / 1_000 ** power)} ${UNITS[power]}`
    },
    duration(ms) {
      const size = Math.max(0, ms)
      if (size < 1_000) return `${whole.format(size)} ms`
      if (size < 10_000) return `${tenths.format(size / 1_000)} s`
      if (size < MINUTE) return `${whole.format(Math.floor(size / 1_000))} s`
      if (size < HOUR) return pair(size, [MINUTE, 'min'], [1_000, 's'])
      if (size < DAY) return pair(size, [HOUR, 'h'], [MINUTE, 'min'])
      return pair(size, [DAY, 'd'], [HOUR, 'h'])
    },
    relative(at, now) {
      const difference = at - now
      const distance = Math.abs(difference)
      if (distance < 5_000) return 'just now'
      if (distance < MINUTE) return relative.format(Math.trunc(difference / 1_000), 'second')
      if (distance < HOUR) return relative.format(Math.trunc(difference / MINUTE), 'minute')
      if (distance < DAY) return relative.format(Math.trunc(difference / HOUR), 'hour')
      if (distance < 7 * DAY) return relative.format(Math.trunc(difference / DAY), 'day')
      return exactDay(at)
    },
    clock: (at) => clock.format(at),
    clockWithSeconds: (at) => clockWithSeconds.format(at),
    day: (at) => day.format(at),
    shortDay: (at) => shortDay.format(at),
    exact: (at) => exact.format(at),
    dayKey: (at) => key.format(at),
  }

  function pair(ms: number, [unit, name]: [number, string], [rest, restName]: [number, string]): string {
    const large = Math.floor(ms / unit)
    const small = Math.floor((ms - large * unit) / rest)
    return small === 0
      ? `${whole.format(large)} ${name}`
      : `${whole.format(large)} ${name} ${small} ${restName}`
  }

  function exactDay(at: number): string {
    return dates({ day: 'numeric', month: 'short', year: 'numeric' }).format(at)
  }
}

/** Formats in the reader's language and zone. */
export const formats = createFormats()

/** An RFC 3339 text as Unix ms; undefined for anything else. */
export function instantOf(time: unknown): number | undefined {
  if (typeof time !== 'string') return undefined
  const at = Date.parse(time)
  return Number.isNaN(at) ? undefined : at
}

/** `task_run` and `event_stream` as words: `task run`, `event stream`. */
export function words(name: string): string {
  return name.replaceAll(/[._]+/g, ' ')
}
