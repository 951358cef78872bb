/** The limits of the interface (§8), and limits beyond the interface document that a client must know. */

/** Maximum number of events per page of a monitor's list (§4.1). */
export const MAX_PAGE_LIMIT = 100
/** Default number of events per page (§4.1). */
export const DEFAULT_PAGE_LIMIT = 20
/** Maximum number of inputs in an add-runs request (§4.3). */
export const MAX_RUNS_PER_REQUEST = 1_000
/** How long the service keeps a group's event stream open, in ms (§4.4). */
export const MAX_STREAM_DURATION = 3_600_000
/** How long the service keeps a single run's event stream open, in ms; beyond the interface document. */
export const MAX_RUN_STREAM_DURATION = 570_000
/** Maximum length of a key of a monitor's metadata, in characters (§2.1). */
export const MAX_METADATA_KEY = 16
/** Maximum length of a value of a monitor's metadata, in characters (§2.1). */
export const MAX_METADATA_VALUE = 512
/** Shortest time between a monitor's executions, in ms (§2.1). */
const MIN_FREQUENCY = 3_600_000
/** Longest time between a monitor's executions, in ms (§2.1). */
const MAX_FREQUENCY = 30 * 86_400_000
/** Delay before a webhook's first retry, in ms; it doubles with each retry (§6.1). */
export const FIRST_WEBHOOK_RETRY = 5_000
/** How long a webhook is retried, in ms (§6.1). */
export const WEBHOOK_HORIZON = 48 * 3_600_000
/** Maximum length of a run's spec and input together, in characters; beyond the interface document. */
export const MAX_RUN_CHARACTERS = 25_000

/** Maximum time in a query, in s; beyond the interface document. */
export const MAX_SECONDS = 999_999_999.999

const FREQUENCY_UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** A frequency such as `12h` in ms (§2.1); undefined if it is malformed or outside 1h to 30d. */
export function parseFrequency(frequency: string): number | undefined {
  const match = /^([1-9]\d{0,3})([hdw])$/.exec(frequency)
  if (match === null) return undefined
  const duration = Number(match[1]) * (FREQUENCY_UNITS[match[2] ?? ''] ?? Number.NaN)
  return duration >= MIN_FREQUENCY && duration <= MAX_FREQUENCY ? duration : undefined
}

/** Whether the text is a real calendar date written YYYY-MM-DD. */
export function isCalendarDate(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.valueOf()) && date.toISOString().startsWith(text)
}

/** Whether the text has the form of an ISO 3166-1 alpha-2 country code, case-insensitively. */
export function isCountryCode(text: string): boolean {
  return /^[A-Za-z]{2}$/.test(text)
}

/** Whether the text is a domain such as `example.org` or a suffix such as `.edu` (§2.8). */
export function isDomain(text: string): boolean {
  return (
    text.length <= 254 &&
    /^\.?(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/i.test(text)
  )
}
