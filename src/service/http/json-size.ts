/** Limits of JSON text: more would overflow the stack of recursive code, or take minutes. */
export interface JsonLimits {
  /** Maximum depth of nested objects and lists. */
  readonly levels: number
  /** Maximum number of objects, lists and their entries. */
  readonly values: number
}

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/**
 * The first limit that JSON text exceeds, or undefined. Counts on the bytes, before parsing: 30 million empty lists in 90 MB
 * take half a minute and gigabytes to parse. The result for text that is not JSON is arbitrary.
 */
export function limitExceeded(
  bytes: Uint8Array,
  { levels, values }: JsonLimits,
): keyof JsonLimits | undefined {
  let depth = 0
  let count = 0
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index]
    if (byte === QUOTE) index = endOfString(bytes, index)
    else if (byte === COMMA) count += 1
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      count += 1
      depth += 1
      if (depth > levels) return 'levels'
    }
    if (count > values) return 'values'
  }
  return undefined
}

/** The index of the closing quote of a string: the first one after an even number of backslashes. */
function endOfString(bytes: Uint8Array, start: number): number {
  let end = start
  for (;;) {
    end = bytes.indexOf(QUOTE, end + 1)
    if (end === -1) return bytes.length
    let first = end
    while (bytes[first - 1] === BACKSLASH) first -= 1
    if ((end - first) % 2 === 0) return end
  }
}
