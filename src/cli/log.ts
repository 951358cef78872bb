import { pino } from 'pino'
import type { Logger } from 'pino'
import { RivuletError } from 'rivulet'
import { variable } from './environment.ts'
import { UsageError } from './exit.ts'
import { jsonText } from './json-text.ts'
import { oneLine } from './plain.ts'

export type { Logger } from 'pino'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/**
 * The command's log on stderr: lines of text for a terminal, otherwise NDJSON. Its level is `RIVULET_LOG_LEVEL`, else `debug` with
 * `verbose`, else `usual`. It never contains settings or requests, and so no key.
 *
 * @throws UsageError for an unknown level.
 */
export function createLog({ verbose = false }: { readonly verbose?: boolean }, usual = 'info'): Logger {
  const level = variable('RIVULET_LOG_LEVEL') ?? (verbose ? 'debug' : usual)
  if (!LEVELS.includes(level)) {
    throw new UsageError(
      `RIVULET_LOG_LEVEL must be one of ${LEVELS.join(', ')}, got ${JSON.stringify(level)}`,
    )
  }
  const options = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  // Synchronous, so that the last entries of a process are not lost.
  const stderr = pino.destination({ fd: 2, sync: true })
  if (!process.stderr.isTTY) return pino(options, stderr)
  return pino(options, { write: (entry) => void stderr.write(`${logLine(entry)}\n`) })
}

/** An entry of the log for a person: `warn: disconnected, reconnecting (source: /v1/…, attempt: 1)`. */
export function logLine(entry: string): string {
  const { level, msg, time: _, ...fields } = JSON.parse(entry)
  const details = Object.entries(fields).map(([name, value]) => {
    return `${name}: ${typeof value === 'string' ? value : jsonText(value)}`
  })
  const text = `${level}: ${msg}${details.length === 0 ? '' : ` (${details.join(', ')})`}`
  return oneLine(text, Number.POSITIVE_INFINITY)
}

/** Logs an error of a service that runs in this process. */
export function logServiceError(log: Logger, error: unknown, ref_id?: string): void {
  log.error({ ...errorFields(error), ...(ref_id !== undefined && { ref_id }) }, 'the service failed')
}

/** The message and the code of an error. Its other fields may be secret. */
export function errorFields(error: unknown): { readonly error: string; readonly code?: string } {
  if (error instanceof RivuletError) return { error: error.message, code: error.code }
  return { error: error instanceof Error ? error.message : String(error) }
}
