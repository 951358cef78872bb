import type { NewEntry } from '../store/contract.ts'

/** A change to append to a stream: an entry, or another change of it. */
export interface StreamChange<Stream> {
  readonly stream: Stream
  readonly entry?: NewEntry
  /** Whether it comes after all changes before it, also those of other streams. */
  readonly isLast?: boolean
}

/** Changes of one stream, in the order of arrival. */
export interface StreamPart<Stream, Change> {
  readonly stream: Stream
  readonly changes: Change[]
}

/**
 * Groups changes by their stream, since each part of an append costs a check of its fence. Two streams may bring entries of one
 * source, such as the poll of a monitor and its webhooks: a stream has another part then, and each source keeps its order.
 */
export function streamParts<Stream, Change extends StreamChange<Stream>>(
  changes: readonly Change[],
): readonly StreamPart<Stream, Change>[] {
  const parts: StreamPart<Stream, Change>[] = []
  /** The index of the last part of each stream. */
  const partOf = new Map<Stream, number>()
  /** The index of the part that has the last entry of each source. */
  const lastOf = new Map<string, number>()
  for (const change of changes) {
    const { stream, entry, isLast = false } = change
    const source = entry?.source
    const earliest = isLast ? parts.length : ((source === undefined ? undefined : lastOf.get(source)) ?? 0)
    let index = partOf.get(stream) ?? -1
    if (index < earliest) {
      index = parts.push({ stream, changes: [] }) - 1
      partOf.set(stream, index)
    }
    parts[index]?.changes.push(change)
    if (source !== undefined) lastOf.set(source, index)
  }
  return parts
}
