/**
 * A timestamp in one spelling, to the picosecond, so that `…00Z` and `…00.000+00:00` name the same instant. Others stay as
 * they are.
 */
export function instant(timestamp: string): string {
  const ms = Date.parse(timestamp)
  if (Number.isNaN(ms)) return timestamp
  // A Date drops what is finer than a millisecond.
  const finer = /\.\d{3}(\d{1,9})/.exec(timestamp)?.[1]?.replace(/0+$/, '') ?? ''
  return new Date(ms).toISOString().replace('Z', `${finer}Z`)
}

/**
 * 53 bits of a JSON value's content, in base 36. Good to tell apart what has no id of its own; no defence against
 * somebody who looks for collisions.
 */
export function contentHash(value: unknown): string {
  const text = contentText(value)
  // cyrb53: two 32-bit lanes, so that a long-lived stream does not meet a 32-bit hash's birthday.
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
 * All of a JSON value, each list and object with its length ahead. Not `JSON.stringify`, which refuses what is nested more
 * deeply than its stack: `JSON.parse` has no such limit, so that it may come over the wire.
 */
function contentText(value: unknown): string {
  const rest: unknown[] = [value]
  let text = ''
  while (rest.length > 0) {
    const next = rest.pop()
    if (typeof next !== 'object' || next === null) {
      text += `${JSON.stringify(next)} `
      continue
    }
    // JSON has nothing that is undefined.
    const entries = Object.entries(next).filter(([, entry]) => entry !== undefined)
    text += `${Array.isArray(next) ? '[' : '{'}${entries.length} `
    for (const [key, entry] of entries) rest.push(entry, key)
  }
  return text
}
