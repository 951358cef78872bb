import { exitCodeOfSignal, Interrupted, outputFailure } from './exit.ts'

/**
 * How close behind the first signal its echo may be, in ms: npm passes signals on to what it runs, although the terminal,
 * or whoever else signals to a whole group of processes, has sent them there already.
 */
const ECHO = 100

/** What is needed of a process to be interrupted. */
export interface Interruptible {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown }
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown
  exit(code: number): void
}

/**
 * Aborts at the first SIGINT or SIGTERM, so that the command can end cleanly; the next one ends the process at once. Under
 * npm, the echo of the first is not the next. The line that a terminal shows `^C` on is ended, so that what follows, the
 * prompt at the latest, begins in a line of its own.
 */
export function abortOnSignals(controller: AbortController, host: Interruptible): void {
  let first: { readonly signal: string; readonly at: number } | undefined
  // npm names the script there that it runs.
  let mayEcho = host.env['npm_lifecycle_event'] !== undefined
  const interrupt = (signal: 'SIGINT' | 'SIGTERM') => {
    const at = performance.now()
    if (first === undefined) {
      first = { signal, at }
      if (signal === 'SIGINT' && host.stderr.isTTY === true) host.stderr.write('\n')
      controller.abort(new Interrupted(signal))
    } else if (mayEcho && signal === first.signal && at - first.at <= ECHO) {
      mayEcho = false
    } else {
      host.exit(exitCodeOfSignal(signal))
    }
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
