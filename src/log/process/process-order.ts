import { ArgumentError } from '../../protocol/argument-error.ts'
import { progressEvent } from '../../protocol/log-event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import { listOf, listsIn, StoredNameLists } from '../record/name-lists.ts'
import type { NameLists } from '../record/name-lists.ts'
import type { Recorder } from '../record/recorder.ts'
import type { LogStore } from '../store/contract.ts'

/** The stream whose position is the order: the names in `after`, by the name of their process. */
const STREAM = 'processes'

/** Which processes of a log come after which others, in all programs that open it. */
export class ProcessOrder {
  readonly #store: Pick<LogStore, 'streamPositions'>
  readonly #record: (use: (recorder: Recorder) => Promise<void>) => Promise<void>

  /** @param record Calls a function with a recorder, which it closes. */
  constructor(
    store: Pick<LogStore, 'streamPositions'>,
    record: (use: (recorder: Recorder) => Promise<void>) => Promise<void>,
  ) {
    this.#store = store
    this.#record = record
  }

  /** Whether another process comes after this one. */
  async isAwaited(process: string): Promise<boolean> {
    return isAwaitedIn(await this.#lists(), process)
  }

  /**
   * Sets which processes one comes after. Call it under the claim of the process.
   *
   * @throws ArgumentError if they come after it themselves, directly or through others.
   */
  async set(process: string, after: readonly string[], signal: AbortSignal): Promise<void> {
    if (after.length === 0 && listOf(await this.#lists(), process).length === 0) return
    const change = this.#record((recorder) =>
      new StoredNameLists(recorder, STREAM).set(process, after, signal, (lists) => {
        const way = wayRound(process, lists)
        if (way === undefined) return
        const message =
          `${JSON.stringify(process)} cannot come after ${JSON.stringify(way[1])}, since processes would wait for each other: ` +
          `${way.join(' → ')}. If one of them is gone, remove it with log.remove`
        throw new ArgumentError('after', { message }, after)
      }),
    )
    // The log closes the recorder when it is closed.
    await change.catch((error: unknown) => {
      signal.throwIfAborted()
      throw error
    })
  }

  /** A process was removed: it comes after no other one, and no other one waits for it. */
  async remove(process: string): Promise<void> {
    const lists = await this.#lists()
    const isAwaited = isAwaitedIn(lists, process)
    if (!isAwaited && listOf(lists, process).length === 0) return
    await this.#record(async (recorder) => {
      await new StoredNameLists(recorder, STREAM).set(process, [], recorder.ending)
      if (!isAwaited) return
      const stream = await recorder.openInTurn(STREAM, recorder.ending)
      const at = rfc3339(Date.now())
      const progress = { process, part: undefined, through: null, complete: true }
      stream.add(progressEvent(progress, `removed:${at}`, { time: at, received: at }))
      await stream.close()
    })
  }

  async #lists(): Promise<NameLists> {
    const [position] = await this.#store.streamPositions([`stream:${STREAM}`])
    return listsIn(position)
  }
}

function isAwaitedIn(lists: NameLists, process: string): boolean {
  return Object.values(lists).some((after) => after.includes(process))
}

/** The way from a process over those that it comes after back to itself; undefined if there is none. */
function wayRound(process: string, lists: NameLists): readonly string[] | undefined {
  const seen = new Set<string>()
  const ways: (readonly string[])[] = [[process]]
  for (let way = ways.pop(); way !== undefined; way = ways.pop()) {
    for (const next of listOf(lists, way.at(-1) ?? '')) {
      if (next === process) return [...way, next]
      if (seen.has(next)) continue
      seen.add(next)
      ways.push([...way, next])
    }
  }
  return undefined
}
