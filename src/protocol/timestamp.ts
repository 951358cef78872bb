let last = { at: 0, text: '1970-01-01T00:00:00.000Z' }

/** Unix time in ms as RFC 3339. */
export function rfc3339(at: number): string {
  // Cached: events of one chunk share a millisecond, and formatting a date costs as much as the rest of an envelope.
  if (at !== last.at) last = { at, text: new Date(at).toISOString() }
  return last.text
}

const TIMESTAMP =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Whether it is a time of RFC 3339. The service also gives days, and events may come from anywhere. */
export function isTimestamp(value: unknown): value is string {
  const match = typeof value === 'string' ? TIMESTAMP.exec(value) : null
  if (match === null || Number.isNaN(Date.parse(match[0]))) return false
  // `Date.parse` takes 30 February for 2 March.
  const [, year, month, day] = match.map(Number)
  return day === new Date(Date.UTC(year ?? 0, (month ?? 0) - 1, day)).getUTCDate()
}
