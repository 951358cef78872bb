import type { EventLog } from '../../log/event-log/event-log.ts'
import type { Position } from '../../log/store/contract.ts'

/**
 * Waits for entries after a position. Resolves with false when there are none within the time, in ms, and when the signal is
 * aborted.
 */
export async function hasMore(
  log: EventLog,
  after: Position,
  time: number,
  stop: AbortSignal,
): Promise<boolean> {
  if (stop.aborted) return false
  const waiting = new AbortController()
  const end = () => waiting.abort()
  const timer = setTimeout(end, time)
  stop.addEventListener('abort', end)
  try {
    await log.wait(after, waiting.signal)
    return true
  } catch (error) {
    if (waiting.signal.aborted) return false
    throw error
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', end)
  }
}
