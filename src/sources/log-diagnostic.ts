import type { Diagnostic } from './context.ts'

/** What takes the lines of a log, each as its details and a message: pino's loggers fit. */
export interface Logger {
  debug(details: object, message: string): void
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** The levels that a {@link Logger} has. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/**
 * Logs what the client did on the way: `warn` for what failed and is tried again or given up, `debug` for what is ordinary.
 * Of an error the message alone: no key is in it.
 */
export function logDiagnostic(log: Logger, diagnostic: Diagnostic): void {
  switch (diagnostic.kind) {
    case 'retry': {
      const { method, path, attempt, delay, error } = diagnostic
      log.warn(
        { method, path, attempt, delay: Math.round(delay), error: messageOf(error) },
        'a request failed and is sent again',
      )
      return
    }
    case 'reconnect': {
      const { source, attempt, cause } = diagnostic
      const delay = Math.round(diagnostic.delay)
      if (cause === undefined) log.debug({ source, attempt, delay }, 'closed cleanly, connecting again')
      else log.warn({ source, attempt, delay, error: messageOf(cause) }, 'dropped, connecting again')
      return
    }
    case 'duplicate': {
      const { id, source, type, via } = diagnostic.event
      log.debug({ id, source, type, via }, 'dropped a copy of an event')
      return
    }
    case 'warnings': {
      const { source, warnings } = diagnostic
      for (const { type, message } of warnings) log.warn({ source, type }, message)
      return
    }
    case 'backpressure': {
      const { source, ahead } = diagnostic
      log.warn({ source, ahead }, 'events wait within an operator, and the source cannot be held back')
      return
    }
    case 'expansion':
      log.warn(
        { source: diagnostic.event.source, error: messageOf(diagnostic.error) },
        'what a webhook points to could not be fetched',
      )
      return
    default:
      diagnostic satisfies never
  }
}

/** What an error says. An error object itself may hold more than a log should. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
