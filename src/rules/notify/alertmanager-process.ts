import type { ProcessOptions } from '../../log/process/process.ts'
import { checkAlert } from './alert-entry.ts'
import { labelsHash } from './alert-identity.ts'

/** The state of an alert in the log, by the hash of its labels. */
export interface AlertState {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** When it began to fire, in RFC 3339. */
  readonly since: string
  readonly episode: string
  /** When its last event was recorded, in Unix ms. */
  readonly recorded: number
  /** When its end was recorded, in Unix ms; null while it fires. */
  readonly resolved: number | null
}

/** How long an alert that has ended is kept, in ms: longer than it is sent. */
const KEPT = 3_600_000

/** The process that stores the alerts that fire, and alerts that have ended for an hour. */
export const alertProcess = {
  version: 1,
  types: ['alert.firing', 'alert.resolved', 'log.gap'],
  key(entry) {
    if (entry.type === 'log.gap') return undefined
    checkAlert(entry)
    return labelsHash(entry.data.labels)
  },
  init: () => null,
  event(_, entry, context) {
    if (entry.type === 'log.gap') return
    const { labels, annotations, since, episode } = entry.data
    const { recorded, type } = entry
    const isOver = type === 'alert.resolved'
    context.set({ labels, annotations, since, episode, recorded, resolved: isOver ? recorded : null })
    if (isOver) context.timer('forget', recorded + KEPT)
    else context.cancel('forget')
  },
  timer: (_, _due, context) => context.set(null),
  maxStateBytes: 256 * 1024,
  // The reader of the alerts reports it.
  onError: 'dead-letter',
} satisfies ProcessOptions<AlertState | null, 'alert.firing' | 'alert.resolved' | 'log.gap'>
