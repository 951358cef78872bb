/** The longest wait that `Retry-After` and `retry:` can request, in ms: one hour, the longest window of the service's quotas. */
export const MAX_RETRY_AFTER = 3_600_000

/**
 * A `Retry-After` header in ms from now, at most `max`; undefined if it is absent or malformed. A date is compared with the
 * response's own `Date`, so that a wrong local clock does not matter.
 */
export function parseRetryAfter(
  value: string | null | undefined,
  date: string | null | undefined,
  now: number,
  max = MAX_RETRY_AFTER,
): number | undefined {
  if (value === undefined || value === null) return undefined
  const text = value.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return Math.min(Number(text) * 1_000, max)
  const until = parseHttpDate(text)
  if (until === undefined) return undefined
  return Math.min(Math.max(0, until - (parseHttpDate(date ?? '') ?? now)), max)
}

/** Parses the three forms of an HTTP date. All begin with the day's name and are in GMT. */
function parseHttpDate(text: string): number | undefined {
  if (!/^[A-Za-z]{3,9},? /.test(text)) return undefined
  const ms = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`)
  return Number.isNaN(ms) ? undefined : ms
}
