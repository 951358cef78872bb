import type { ResearchEvent } from '../../../protocol/event.ts'
import type { Entry, Fence, LogStore, Position } from '../contract.ts'
import { newEntry } from '../new-entry.ts'

/** Events as entries. */
export const entriesOf = (...events: ResearchEvent[]) => events.map((event) => newEntry(event))

/** Appends to streams that have no upstream position. */
export const append = (log: LogStore, fence: Fence, ...events: ResearchEvent[]) =>
  log.append([{ fence, expect: null, entries: entriesOf(...events) }])

/** Reads on to the end. */
export async function readAll(
  log: LogStore,
  after?: Position,
  options: { readonly limit?: number; readonly types?: readonly string[] } = {},
): Promise<readonly Entry[]> {
  let position = after ?? (await log.positionAt('start'))
  const entries: Entry[] = []
  for (;;) {
    const page = await log.read(position, { limit: 100, ...options })
    entries.push(...page.entries)
    position = page.position
    if (page.isEnd) return entries
  }
}

/** The ids of events. */
export const idsOf = (entries: readonly { readonly id: string }[]) => entries.map(({ id }) => id)

/** The ids of each source, in order. The order between sources is not promised. */
export function bySource(entries: readonly Entry[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(entries, ({ source }) => source)).map(([source, group]) => [
      source,
      idsOf(group ?? []),
    ]),
  )
}

/** Whether a promise is settled, after the log had every opportunity to settle it. */
export async function isSettled(promise: Promise<unknown>, log: LogStore): Promise<boolean> {
  let settled = false
  const settle = () => (settled = true)
  promise.then(settle, settle)
  for (let i = 0; i < 5; i++) await log.positionAt('end')
  return settled
}
