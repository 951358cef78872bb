import { plain } from './plain.ts'

/** Replaces a field that is nested too deeply for `JSON.stringify`. */
const TOO_DEEP = '(nested too deeply to be shown)'

/**
 * A value as JSON on one line, as {@link plain} text. `JSON.parse` accepts deeper nesting than `JSON.stringify`. Fields that are nested too deeply are
 * replaced by a placeholder.
 */
export function jsonText(value: unknown): string {
  const whole = stringify(value)
  if (whole !== undefined) return whole
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(TOO_DEEP)
  const fields = Object.entries(value).map(([name, field]) => [
    name,
    stringify(field) === undefined ? TOO_DEEP : field,
  ])
  return JSON.stringify(Object.fromEntries(fields))
}

/** Undefined if the value is nested too deeply. */
function stringify(value: unknown): string | undefined {
  try {
    return plain(JSON.stringify(value) ?? 'null')
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
