import type { EntryOf } from '../../log/consume/consumer-options.ts'
import type { EventLog } from '../../log/event-log/event-log.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import { AlertEventError, checkAlert } from './alert-entry.ts'
import type { AlertEntry } from './alert-entry.ts'
import { report } from './notify-problem.ts'
import type { OnProblem } from './notify-problem.ts'

/** The types of events that a reader can have. */
export type AlertType = AlertEntry['type']

/** Settings of {@link readAlerts}. */
export interface AlertReading {
  readonly name: string
  readonly types: readonly AlertType[]
  /** Maximum number of entries that are not handled. */
  readonly capacity: number
  readonly onProblem: OnProblem
}

/** An alert that has to be notified. */
export interface Pending {
  readonly entry: AlertEntry
  /** The alert was notified. */
  done(): void
  /** The alert cannot be notified, and becomes a dead letter of the log. */
  refuse(error: unknown): void
}

/**
 * Reads alerts as a consumer that begins at the end of the log. Alerts that are neither done nor refused come again at the next start.
 *
 * @param next Called for each alert, in the order of the log.
 */
export function readAlerts(
  log: EventLog,
  { name, types, capacity, onProblem }: AlertReading,
  next: (pending: Pending) => void,
): LogJob {
  return log.consume(
    name,
    {
      types: [...types, 'log.gap'],
      startAt: 'end',
      concurrency: capacity,
      maxUnacknowledged: capacity,
      retries: 0,
      deadLetters: 'log',
      // Alerts that are not notified when the job ends are not waited for: they come again.
      drainTimeout: 0,
    },
    (entry: EntryOf<AlertType | 'log.gap'>) => {
      if (entry.type === 'log.gap') {
        const error = new AlertEventError(
          'entries of the log were deleted before they were read: alerts among them are not notified',
        )
        report(onProblem, { notifier: name, error, attempt: 0 })
        return
      }
      try {
        checkAlert(entry)
      } catch (error) {
        if (error instanceof Error) report(onProblem, { notifier: name, error, attempt: 0 })
        throw error
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      next({ entry, done: resolve, refuse: reject })
      return promise
    },
  )
}
