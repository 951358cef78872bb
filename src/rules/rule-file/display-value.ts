/** A value as messages have it: quoted where it is no word, and truncated. */
export function displayValue(value: unknown): string {
  if (typeof value !== 'string') return String(value).slice(0, 60)
  return /^[\w.-]{1,60}$/.test(value)
    ? value
    : JSON.stringify(value.length > 60 ? `${value.slice(0, 60)}…` : value)
}
