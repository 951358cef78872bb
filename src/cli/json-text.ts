/** What stands for a part that is nested more deeply than can be written. */
const TOO_DEEP = '(nested too deeply to be shown)'

/**
 * A value as JSON, on one line. JSON that came in may be nested more deeply than JSON can be written: then of its fields those
 * that can, and a remark for each other.
 */
export function jsonText(value: unknown): string {
  const whole = written(value)
  if (whole !== undefined) return whole
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return JSON.stringify(TOO_DEEP)
  const fields = Object.entries(value).map(([name, field]) => [
    name,
    written(field) === undefined ? TOO_DEEP : field,
  ])
  return JSON.stringify(Object.fromEntries(fields))
}

/** Undefined for what is nested too deeply. */
function written(value: unknown): string | undefined {
  try {
    return JSON.stringify(value) ?? 'null'
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
