import { LogUnsupportedError } from '../errors.ts'
import type { LogStore } from '../store/contract.ts'

/** The name of a reader in the store that is a part of another one: `consumer.17:archive` of `consumer:archive`. */
export function partName(reader: string, part: number): string {
  const kind = reader.slice(0, reader.indexOf(':'))
  return `${kind}.${part}${reader.slice(kind.length)}`
}

/** The name of the whole reader that this one is a part of; its own name if it is no part. */
export function wholeName(reader: string): string {
  return reader.replace(/^([a-z]+)\.\d+:/, '$1:')
}

/** The names of a reader and its parts among the names of a log. The first part, which shows that there are parts, comes last. */
export function namesOf(reader: string, known: Iterable<string>): ReadonlySet<string> {
  const first = partName(reader, 0)
  const parts = Array.from(known).filter((name) => wholeName(name) === reader && name !== reader)
  return new Set([reader, ...parts.filter((name) => name !== first), ...parts])
}

/**
 * Whether a reader is divided into parts.
 *
 *     consumer:archive exists    consumer.0:archive exists
 *     yes                        no                           not shared so far
 *     yes                        yes                          being divided: none of them runs
 *     no                         yes                          divided
 */
export async function isDivided(store: LogStore, reader: string): Promise<boolean> {
  return (await store.reader(partName(reader, 0))) !== undefined && (await store.reader(reader)) === undefined
}

/** Rejects with a `LogUnsupportedError` for a reader that was divided. Call it after its name was claimed. */
export async function checkWhole(store: LogStore, reader: string): Promise<void> {
  const { count } = await store.sharing.partitions()
  if (count === 1 || (await store.reader(partName(reader, 0))) === undefined) return
  throw new LogUnsupportedError(
    `${JSON.stringify(reader)} is divided, since it ran with \`share\`: run it with \`share: true\`, use another name, or remove it with ` +
      'log.remove to begin anew',
  )
}
