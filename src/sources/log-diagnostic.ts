import { RivuletError } from '../protocol/rivulet-error.ts'
import type { Diagnostic } from './context.ts'

/** Receives log entries, each as details and a message, such as pino's loggers. */
export interface Logger {
  /** Normal operation, such as a dropped duplicate. */
  debug(details: object, message: string): void
  /** Requests wait for their quota, or a paused recorder continues. */
  info(details: object, message: string): void
  /** A failure that the client handles, or a warning of the service. */
  warn(details: object, message: string): void
  /** Not called by the client. */
  error(details: object, message: string): void
}

/** The levels of a {@link Logger}. */
export const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/**
 * Logs a diagnostic of the client: `warn` for failures and warnings, `debug` for normal operation. Of an error, only the message and the
 * code are logged, which never contain a key.
 */
export function logDiagnostic(log: Logger, diagnostic: Diagnostic): void {
  switch (diagnostic.kind) {
    case 'retry': {
      const { method, path, attempt, delay, error } = diagnostic
      log.warn(
        { method, path, attempt, delay: Math.round(delay), ...shown(error) },
        'request failed, retrying',
      )
      return
    }
    case 'quota': {
      const { quota, delay } = diagnostic
      log.info({ quota, delay: Math.round(delay) }, 'requests wait for their quota')
      return
    }
    case 'reconnect': {
      const { source, attempt, cause } = diagnostic
      const delay = Math.round(diagnostic.delay)
      if (cause === undefined) log.debug({ source, attempt, delay }, 'connection closed, reconnecting')
      else log.warn({ source, attempt, delay, ...shown(cause) }, 'connection failed, reconnecting')
      return
    }
    case 'duplicate': {
      const { id, source, type, via } = diagnostic.event
      log.debug({ id, source, type, via }, 'dropped a duplicate')
      return
    }
    case 'barren_pages': {
      const { path, pages } = diagnostic
      log.warn({ path, pages }, 'the pages of a list have nothing new')
      return
    }
    case 'warnings': {
      const { source, warnings } = diagnostic
      for (const { type, message } of warnings) log.warn({ source, type }, message)
      return
    }
    case 'retention': {
      const { pausedBy } = diagnostic
      if (pausedBy === null) log.info({}, 'recording goes on')
      else log.warn({ reader: pausedBy }, 'recording is paused: the log is full, and this reader is behind')
      return
    }
    case 'clock': {
      const { state, by } = diagnostic
      if (state === 'returned') log.info({ by }, 'the wall clock is right again')
      else log.warn({ state, by }, 'the wall clock has jumped')
      return
    }
    case 'expansion':
      log.warn(
        { source: diagnostic.event.source, ...shown(diagnostic.error) },
        'could not fetch the events of a webhook',
      )
      return
    case 'expansion_retry': {
      const { source, attempt, delay, cause } = diagnostic
      log.warn(
        { source, attempt, delay: Math.round(delay), ...shown(cause) },
        'could not fetch the events of a webhook, which waits, retrying',
      )
      return
    }
    case 'cancellation': {
      const { source, error } = diagnostic
      log.warn({ source, ...shown(error) }, 'could not cancel a run')
      return
    }
    default:
      diagnostic satisfies never
  }
}

/** Only the message and the code, since an error object may have fields that must not be logged. */
function shown(error: unknown): { readonly error: string; readonly code?: string } {
  if (error instanceof RivuletError) return { error: error.message, code: error.code }
  return { error: error instanceof Error ? error.message : String(error) }
}
