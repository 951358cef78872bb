import { cutText } from '../../protocol/cut-text.ts'

/** A value as messages have it: quoted if it is no word, and truncated. */
export function displayValue(value: unknown): string {
  if (typeof value !== 'string') return cutText(String(value), 60)
  return /^[\w.-]{1,60}$/.test(value)
    ? value
    : JSON.stringify(value.length > 60 ? `${cutText(value, 60)}…` : value)
}
