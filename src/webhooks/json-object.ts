import { isObject } from '../protocol/json.ts'

/** A JSON object and its text. */
interface ParsedObject {
  readonly text: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Has no state between two bodies, not even after a malformed one. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Parses bytes as a JSON object; undefined if they are anything else. */
export function parseObject(bytes: Uint8Array): ParsedObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { text, value } : undefined
  } catch {
    return undefined
  }
}
