/** A value that was shortened if it was too long. */
export interface Bounded<T> {
  readonly value: T
  readonly isTruncated: boolean
}

/**
 * The limits that are tried for a value, from the largest to the smallest: characters of a text, elements of an array, fields of an object,
 * levels.
 */
const STEPS = [
  { text: 32_768, elements: 1_000, fields: 1_000, depth: 32 },
  { text: 8_192, elements: 200, fields: 200, depth: 16 },
  { text: 2_048, elements: 50, fields: 100, depth: 12 },
  { text: 512, elements: 20, fields: 50, depth: 8 },
  { text: 128, elements: 5, fields: 20, depth: 6 },
] as const

type Step = (typeof STEPS)[number]

const encoder = new TextEncoder()

/**
 * Shortens a JSON value to at most `maxBytes` bytes. A value that fits stays as it is. Otherwise long texts end with `…`, long arrays and
 * large objects lose their last elements and fields, and values that are nested too deeply become null. A value that is still too large
 * becomes `rest`.
 */
export function bounded<T, Rest>(value: T, maxBytes: number, rest: Rest): Bounded<T | Rest> {
  if (fits(value, maxBytes)) return { value, isTruncated: false }
  for (const step of STEPS) {
    // The same kind of value, so its type stays.
    const shortened = shorten(value, step, 0) as T
    if (fits(shortened, maxBytes)) return { value: shortened, isTruncated: true }
  }
  return { value: rest, isTruncated: true }
}

function fits(value: unknown, maxBytes: number): boolean {
  let json: string
  try {
    json = JSON.stringify(value) ?? ''
  } catch {
    // It is nested so deeply that it overflows the stack.
    return false
  }
  return json.length * 3 <= maxBytes || encoder.encode(json).byteLength <= maxBytes
}

function shorten(value: unknown, step: Step, depth: number): unknown {
  if (typeof value === 'string') return value.length <= step.text ? value : cutText(value, step.text)
  if (typeof value !== 'object' || value === null) return value
  if (depth === step.depth) return null
  if (Array.isArray(value)) {
    return value.slice(0, step.elements).map((element) => shorten(element, step, depth + 1))
  }
  const fields: [name: string, value: unknown][] = []
  for (const [name, field] of Object.entries(value)) {
    if (fields.length === step.fields) break
    if (name.length <= step.text) fields.push([name, shorten(field, step, depth + 1)])
  }
  // It also makes a field `__proto__`, which an assignment would not.
  return Object.fromEntries(fields)
}

/** A copy, so that the whole text is not kept in memory, and without a half of a surrogate pair. */
function cutText(text: string, length: number): string {
  return `${text.slice(0, length - 1)}…`.toWellFormed()
}
