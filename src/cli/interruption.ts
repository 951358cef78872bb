import { exitCodeOfSignal, Interrupted, outputFailure } from './exit.ts'

/** Time within which a repeated signal is an echo, in ms. npm forwards a signal that the process group has already received. */
const ECHO = 100

/** The used part of `process`. */
export interface Interruptible {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stderr: { readonly isTTY?: boolean; write(text: string): unknown }
  on(signal: 'SIGINT' | 'SIGTERM', listener: (signal: 'SIGINT' | 'SIGTERM') => void): unknown
  exit(code: number): void
}

/**
 * Aborts at the first SIGINT or SIGTERM, so that the command ends cleanly. The next one ends the process immediately, except
 * for npm's echo of the first. After the terminal's `^C`, prints a line end.
 */
export function abortOnSignals(controller: AbortController, host: Interruptible): void {
  let first: { readonly signal: string; readonly at: number } | undefined
  // Set by npm when it runs a script.
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

/** Aborts when the reader of the stream closes it. */
export function abortWhenClosed(stream: NodeJS.WritableStream, controller: AbortController): void {
  stream.on('error', (error: Error) => controller.abort(outputFailure(error)))
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}
