import { hash, hashString } from '../../protocol/identity-hash.ts'
import type { Json } from '../../protocol/json.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** Longer texts of key values are hashed in the key of a state, which has at most 1,024 characters. */
const MAX_KEY_TEXT = 400

/** Maximum length of the text of a value in an alert, in characters. */
export const MAX_VALUE_TEXT = 1_024

/** The prefix of the keys of a rule's states. The values of the rule's key follow it. */
export function keyPrefix({ name, version }: Pick<CompiledRule, 'name' | 'version'>): string {
  return `${name}/${version}/`
}

/** The key of a rule's state for these values. `prefix` is the result of {@link keyPrefix}. */
export function stateKey(prefix: string, values: readonly string[]): string {
  const text = JSON.stringify(values)
  return prefix + (text.length > MAX_KEY_TEXT ? `#${hashOf(text)}` : text)
}

/** Reads the name of a rule and the prefix of its keys from the key of a state. A key without a version holds the rule's counters. */
export function ruleOfKey(key: string): { readonly name: string; readonly prefix: string | undefined } {
  const [name = '', version] = key.split('/', 2)
  return { name, prefix: version === undefined ? undefined : keyPrefix({ name, version }) }
}

/** A value as the text of a key; undefined for what cannot be one. */
export function keyText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** The text, with `…` in place of what is longer. */
export function truncated(text: string, maxLength: number): string {
  return text.length > maxLength ? `${cutText(text, maxLength - 1)}…` : text
}

/** A hash of a text, 128 bits in hexadecimal. */
export function hashOf(text: string): string {
  hashString(text)
  return Array.from(hash, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Maximum length of a text that a state keeps of an event, in characters. */
export const MAX_TEXT = 500

/** A value as a state keeps it. */
export function valueText(value: Json): string {
  return truncated(typeof value === 'string' ? value : JSON.stringify(value), MAX_TEXT)
}
