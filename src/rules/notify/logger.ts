import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkOptions, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { checkLog } from '../../protocol/check-log.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import { annotationsOf } from './alert-entry.ts'
import type { AlertEntry } from './alert-entry.ts'
import { readAlerts } from './alert-reader.ts'
import { jobOf } from './notifier-job.ts'
import { warn } from './notify-problem.ts'
import { oneLine } from '../../protocol/one-line.ts'

/** A receiver of log lines: a logger of pino, for instance. */
interface AlertLogger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void
  warn(fields: Readonly<Record<string, unknown>>, message: string): void
}

/** Settings of {@link notifyLogger}. */
export interface AlertLoggerOptions {
  /** Name of the consumer in the log. Default `alert-log`. */
  readonly name?: string
  /** Logger that gets each alert event. Default: a line of text on stderr. */
  readonly logger?: AlertLogger
}

/**
 * Writes a line when an alert fires, is over, is unknown and is known again: to a logger such as pino's, `warn` if it fires or is unknown and
 * `info` otherwise, or to stderr. A new name begins at the end of the log. A line has no control characters of an event.
 *
 * Rejects, as `done`, if the log fails. An event for which the logger throws is a dead letter of the consumer.
 *
 * @throws ArgumentError at the call, for an invalid setting.
 */
export function notifyLogger(log: EventLog, options: AlertLoggerOptions = {}): LogJob {
  checkLog(log)
  checkOptions('options', options, ['name', 'logger'])
  const { name = 'alert-log', logger } = options
  checkText('name', name)
  const methods: unknown = logger
  const isLogger =
    isObject(methods) && typeof methods['info'] === 'function' && typeof methods['warn'] === 'function'
  if (logger !== undefined && !isLogger) {
    throw new ArgumentError('logger', 'a logger with info and warn', logger)
  }
  const types = ['alert.firing', 'alert.resolved', 'alert.unknown', 'alert.known'] as const
  const reader = readAlerts(
    log,
    { name, types, capacity: 100, onProblem: warn },
    ({ entry, done, refuse }) => {
      try {
        write(entry, logger)
        done()
      } catch (error) {
        refuse(error)
      }
    },
  )
  return jobOf([reader])
}

function write(entry: AlertEntry, logger: AlertLogger | undefined): void {
  const message = messageOf(entry)
  if (logger === undefined) {
    process.stderr.write(`${new Date(entry.recorded).toISOString()} ${message}\n`)
    return
  }
  const { type, data } = entry
  const fields = { type, alert: data.alert, labels: data.labels, ...partOf(entry) }
  logger[type === 'alert.resolved' || type === 'alert.known' ? 'info' : 'warn'](fields, message)
}

function partOf(entry: AlertEntry): Readonly<Record<string, unknown>> {
  if (entry.type === 'alert.known') return {}
  const { since } = entry.data
  if (entry.type === 'alert.unknown') return { since, reason: entry.data.reason }
  const { episode } = entry.data
  const part = entry.type === 'alert.firing' ? { value: entry.data.value } : { reason: entry.data.reason }
  return { since, ...part, annotations: annotationsOf(entry.data), episode }
}

/** `firing ErrorBurst{monitor="mon_1"} value 3: three errors` */
function messageOf(entry: AlertEntry): string {
  const { type, data } = entry
  const labels = Object.entries(data.labels)
    .filter(([name]) => name !== 'alertname')
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
  const shown = labels.length === 0 ? '' : `{${labels.join(',')}}`
  const value = 'value' in data && data.value !== null ? ` value ${data.value}` : ''
  const incomplete = 'complete' in data && data.complete === false ? ' (incomplete)' : ''
  const reason = 'reason' in data ? ` (${data.reason})` : ''
  const summary = 'annotations' in data ? data.annotations['summary'] : undefined
  const text = `${type.slice('alert.'.length)} ${data.alert}${shown}${value}${incomplete}${reason}`
  return oneLine(summary === undefined ? text : `${text}: ${summary}`, 2_000)
}
