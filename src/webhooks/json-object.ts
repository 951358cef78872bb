import { isObject } from '../protocol/event.ts'

/** A JSON object, and the text that it was parsed from. */
interface ParsedObject {
  readonly text: string
  readonly value: Readonly<Record<string, unknown>>
}

/** Keeps nothing between two bodies, not even after one that is malformed. */
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON object that these bytes are, undefined where they are anything else. */
export function parseObject(bytes: Uint8Array): ParsedObject | undefined {
  try {
    const text = utf8.decode(bytes)
    const value: unknown = JSON.parse(text)
    return isObject(value) ? { text, value } : undefined
  } catch {
    return undefined
  }
}
