import type { ResearchEvent } from 'rivulet'
import type { LogStore } from '../../src/log/store/contract.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

/** Appends events to a stream of the store, as its only writer. */
export async function append(
  store: LogStore,
  events: readonly ResearchEvent[],
  stream = 'test',
): Promise<void> {
  const fence = await store.claim(`stream:${stream}`)
  const [expect = null] = await store.streamPositions([fence.name])
  await store.append([{ fence, expect, entries: events.map((event) => newEntry(event)) }])
  await store.release(fence)
}
