let last = { at: 0, text: '1970-01-01T00:00:00.000Z' }

/** Unix time in ms as RFC 3339. */
export function rfc3339(at: number): string {
  // Cached: events of one chunk share a millisecond, and formatting a date costs as much as the rest of an envelope.
  if (at !== last.at) last = { at, text: new Date(at).toISOString() }
  return last.text
}
