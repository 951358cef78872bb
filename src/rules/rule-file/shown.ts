/** A value in a message, cut. */
export function shown(value: unknown): string {
  if (typeof value !== 'string') return String(value).slice(0, 60)
  return /^[\w.-]{1,60}$/.test(value)
    ? value
    : JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
}
