import type { ResearchEvent } from 'rivulet'
import { onTestFinished } from 'vitest'
import { checkedStore } from '../../../src/log/store/checked-store.ts'
import type { Entry, Fence, LogStore, Position } from '../../../src/log/store/contract.ts'
import { sharedPages } from '../../../src/log/store/shared-pages.ts'
import type { InboxLimits } from '../../../src/log/store/inbox-store.ts'

/** A fresh log under test. */
export interface LogUnderTest {
  /** Opens the log once more, as another process does. `owner` is the name in the errors of others. */
  connect(owner: string): Promise<LogStore>
  /**
   * Frees the claims of an open log that does not notice: as if its process was killed, or suspended while its locks were
   * lost. The open log may still be called.
   */
  loseClaims(store: LogStore): Promise<void>
  /** Closes what is open, and removes the log. */
  remove(): Promise<void>
}

/** Opens a fresh log. `clock` is the Unix time in ms. */
export type OpenFreshLog = (options: {
  readonly clock: () => number
  readonly inbox?: InboxLimits
}) => Promise<LogUnderTest>

/** A fresh log, opened once, and removed at the end of the test. */
export type Open = (
  clock?: () => number,
  inbox?: InboxLimits,
) => Promise<
  Pick<LogUnderTest, 'connect' | 'loseClaims'> & {
    readonly log: LogStore
  }
>

/** Opens fresh logs for tests. Without a clock, it is always the same time. */
export function opening(openFresh: OpenFreshLog): Open {
  return async (clock = () => 1_000, inbox = {}) => {
    const underTest = await openFresh({ clock, inbox })
    onTestFinished(() => underTest.remove())
    const stores = new Map<LogStore, LogStore>()
    // As `openLog` does.
    const connect = async (owner: string) => {
      const store = await underTest.connect(owner)
      const log = checkedStore(sharedPages(store))
      stores.set(log, store)
      return log
    }
    return {
      log: await connect('first'),
      connect,
      loseClaims: (log) => underTest.loseClaims(stores.get(log) ?? log),
    }
  }
}

/** Events as entries. */
export const entriesOf = (...events: ResearchEvent[]) => events.map((event) => ({ event }))

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
