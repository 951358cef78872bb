import { FencedError, LogFileError, LogInUseError, LogServerError } from '../log/errors.ts'
import type { EventLog } from '../log/event-log.ts'
import type { ProcessOptions } from '../log/process/process.ts'

/** How long after a failure that may be over a view is run again, in ms. */
const RETRY = 1_000

/**
 * Runs the process of a view until the signal is aborted or the log closed. Waits while another gateway runs it, in any process
 * that opens the log, and continues when that gateway ends. Rejects when the view can no longer be maintained.
 *
 * @param name Of the process.
 */
export async function runView(
  log: EventLog,
  name: string,
  options: ProcessOptions<unknown>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    // It waits for its name until it is stopped.
    const wait = new AbortController().signal
    const process = log.process(name, { ...options, wait })
    const stop = () => void process.stop().catch(() => {})
    signal.addEventListener('abort', stop)
    try {
      await process.done
      return
    } catch (error) {
      if (!isTransient(error)) throw error
    } finally {
      signal.removeEventListener('abort', stop)
    }
    await pause(signal)
  }
}

/** Whether it may work later: another run has it, or the file was busy. */
function isTransient(error: unknown): boolean {
  if (error instanceof LogInUseError || error instanceof FencedError) return true
  return (error instanceof LogFileError || error instanceof LogServerError) && error.retryable
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, RETRY)
    signal.addEventListener('abort', end)
  })
}
