import { existsSync, readFileSync } from 'node:fs'
import { type Half, halfOf } from './half.ts'

/** An item of a set, as far as the frame needs it. */
interface Item {
  readonly subject: string
}

/**
 * Reads a half of a set from `bench/quality/<set>/<half>.json`; empty if there is no such file.
 *
 * @throws Error for an item whose subject belongs to the other half.
 */
export function readItems<T extends Item>(set: string, half: Half): readonly T[] {
  const file = new URL(`${set}/${half}.json`, import.meta.url)
  if (!existsSync(file)) return []
  const items: readonly T[] = JSON.parse(readFileSync(file, 'utf8'))
  const stray = items.find(({ subject }) => halfOf(subject) !== half)
  if (stray !== undefined) throw new Error(`${set}: ${stray.subject} does not belong to the half ${half}`)
  return items
}
