/** Normalizes a timestamp, to the picosecond: `…00Z` and `…00.000+00:00` become equal. Other text is returned unchanged. */
export function instant(timestamp: string): string {
  const ms = Date.parse(timestamp)
  if (Number.isNaN(ms)) return timestamp
  // A Date drops digits below a millisecond.
  const finer = /\.\d{3}(\d{1,9})/.exec(timestamp)?.[1]?.replace(/0+$/, '') ?? ''
  return new Date(ms).toISOString().replace('Z', `${finer}Z`)
}

/** A hash of a JSON value's content, 53 bits in base 36, for events without an id. It does not resist deliberate collisions. */
export function contentHash(value: unknown): string {
  return hashOfText(contentText(value))
}

/** Like {@link contentHash}, but independent of the order of an object's fields. */
export function unorderedHash(value: unknown): string {
  return hashOfText(contentText(value, true))
}

function hashOfText(text: string): string {
  // cyrb53, since a long-lived stream would reach the birthday bound of a 32-bit hash.
  let a = 0xdeadbeef
  let b = 0x41c6ce57
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 2654435761)
    b = Math.imul(b ^ code, 1597334677)
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909)
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909)
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36)
}

/**
 * A canonical text of a JSON value, with the length before each array and object. Not `JSON.stringify`, which overflows the
 * stack on nesting that `JSON.parse` accepts.
 */
function contentText(value: unknown, isSorted = false): string {
  const rest: unknown[] = [value]
  let text = ''
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next !== 'object' || next === null) {
      text += `${JSON.stringify(next)} `
      continue
    }
    // JSON omits undefined fields.
    const entries = Object.entries(next).filter(([, entry]) => entry !== undefined)
    if (isSorted && !Array.isArray(next)) entries.sort(([a], [b]) => (a < b ? -1 : 1))
    text += `${Array.isArray(next) ? '[' : '{'}${entries.length} `
    for (const [key, entry] of entries) rest.push(entry, key)
  }
  return text
}
