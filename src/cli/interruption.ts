import { exitCodeOfSignal, Interrupted, outputFailure } from './exit.ts'

/**
 * How close a second signal may follow the first and still be the same one, in ms: npm passes Ctrl-C on to what it
 * runs, although the terminal has sent it there already.
 */
const SAME_SIGNAL = 250

/** What is needed of a process to be interrupted. */
export interface Interruptible {
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown
  exit(code: number): void
}

/** Aborts at the first SIGINT or SIGTERM, so that the command can end cleanly; the next one ends the process at once. */
export function abortOnSignals(controller: AbortController, host: Interruptible): void {
  let first: number | undefined
  const interrupt = (signal: 'SIGINT' | 'SIGTERM') => {
    const now = performance.now()
    first ??= now
    if (now - first > SAME_SIGNAL) host.exit(exitCodeOfSignal(signal))
    else controller.abort(new Interrupted(signal))
  }
  host.on('SIGINT', interrupt)
  host.on('SIGTERM', interrupt)
}

/** Aborts when whoever reads the stream has gone away. */
export function abortWhenClosed(stream: NodeJS.WritableStream, controller: AbortController): void {
  stream.on('error', (error: Error) => controller.abort(outputFailure(error)))
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
