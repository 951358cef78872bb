import { MAX_NAME_LENGTH, RefusedEffect } from './effects.ts'

/** Maximum number of keys of one entry. */
const MAX_KEYS = 10_000

/**
 * The keys that `key` gave for an entry, each once, in the order of their texts.
 *
 * @throws {RefusedEffect} for what is no key.
 */
export function keysOf(given: unknown): readonly string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) return [checkedKey(given)]
  if (given.length > MAX_KEYS) {
    throw new RefusedEffect(`its ${given.length} keys are too many for an entry: at most ${MAX_KEYS}`)
  }
  // It may have holes.
  return [...new Set(Array.from(given, checkedKey))].toSorted()
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string' && key.length <= MAX_NAME_LENGTH) return key
  throw new RefusedEffect(
    `its key must be a text of up to ${MAX_NAME_LENGTH} characters, several of them, or undefined`,
  )
}
