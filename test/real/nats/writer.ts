import type { LogStore } from '../../../src/log/store/contract.ts'
import { FencedError, LogConflictError, LogServerError } from '../../../src/log/errors.ts'
import { change } from '../../operators/events.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** An upstream stream: its events are numbered, and their number is its position. Sources alternate. */
export interface Upstream {
  readonly stream: string
  readonly sources: readonly string[]
  /** It may change while it is written. */
  readonly count: number
  /** Number of events in one append. */
  readonly batch: number
}

/** What became of a writer. */
export interface Written {
  readonly fenced: number
  readonly failed: number
}

/** Appends what an upstream stream has, as a recorder does: from its position in the log on, whatever fails. */
export async function write(
  log: LogStore,
  upstream: Upstream,
  reached: (position: number) => void = () => {},
): Promise<Written> {
  const { stream, sources, batch } = upstream
  const wait = new AbortController().signal
  const written = { fenced: 0, failed: 0 }
  let fence = await log.claim(stream, { wait })
  for (let position: string | null | undefined; ;) {
    try {
      if (position === undefined) [position = null] = await log.streamPositions([stream])
      const { count } = upstream
      const from = Number(position)
      if (from >= count) {
        await log.release(fence)
        return written
      }
      const to = Math.min(count, from + batch)
      const entries = Array.from({ length: to - from }, (_, i) =>
        newEntry(change(String(from + i), sources[(from + i) % sources.length])),
      )
      await log.append([{ fence, expect: position, position: String(to), entries }])
      position = String(to)
      reached(to)
    } catch (error) {
      position = undefined
      if (error instanceof FencedError) {
        written.fenced += 1
        fence = await log.claim(stream, { wait })
      } else if (error instanceof LogConflictError || (error instanceof LogServerError && error.retryable)) {
        written.failed += 1
      } else {
        throw error
      }
    }
  }
}

/** The numbers of the events of each source of some upstream streams, each once and in order. */
export function expectedIds(...upstreams: readonly Upstream[]): Readonly<Record<string, readonly string[]>> {
  const sources: Record<string, Set<number>> = {}
  for (const { sources: names, count } of upstreams) {
    for (let i = 0; i < count; i++) {
      const source = `/v1/monitors/${names[i % names.length]}`
      ;(sources[source] ??= new Set()).add(i)
    }
  }
  return Object.fromEntries(
    Object.entries(sources).map(([source, numbers]) => {
      return [source, [...numbers].toSorted((a, b) => a - b).map(String)]
    }),
  )
}
