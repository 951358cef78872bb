import type { ProcessOptions } from '../../log/process/process.ts'
import { annotationsOf, checkAlert } from './alert-entry.ts'
import { labelsHash } from './alert-identity.ts'

/** The events that the process reads. */
type AlertEventType = 'alert.firing' | 'alert.resolved' | 'log.gap'

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
  /** When a receiver first accepted it as open, in Unix ms; absent while that is not known. */
  readonly opened?: number | undefined
}

/** How long an alert that has ended is kept, in ms: longer than it is sent. */
const KEPT = 3_600_000

/** How long after its event it is first asked whether a receiver accepted an alert, and how often then, at first and at last, in ms of the log. */
const FIRST_ASKED = 1_000
const ASKED = 5_000
const LAST_ASKED = 300_000

/** What is known of the receivers: not in the log, so that another run may find it at another entry. */
export interface Acceptances {
  /** When a receiver first accepted an alert as open, in Unix ms; undefined if it is not known, and null if the alert is refused. */
  openedAt(key: string, episode: string): number | null | undefined
  /** When the newest entry was recorded at the start, in Unix ms: nothing is sent before the process has read it. Undefined until it is known. */
  readonly newestAtStart: number | undefined
}

/**
 * The process that stores the alerts that fire, and alerts that have ended for an hour and `minOpen`.
 *
 * It also stores when a receiver accepted an alert, so that this survives a restart. A timer asks for it until the alert is accepted, refused
 * or forgotten.
 */
export function alertProcess(
  minOpen: number,
  acceptances: Acceptances,
): ProcessOptions<AlertState | null, AlertEventType> {
  return {
    version: 1,
    types: ['alert.firing', 'alert.resolved', 'log.gap'],
    key(entry) {
      if (entry.type === 'log.gap') return undefined
      checkAlert(entry)
      return labelsHash(entry.data.labels)
    },
    init: () => null,
    event(state, entry, context) {
      if (entry.type === 'log.gap') return
      const { labels, since, episode } = entry.data
      const { recorded, type } = entry
      const isOver = type === 'alert.resolved'
      const opened = state?.episode === episode ? state.opened : undefined
      context.set({
        labels,
        annotations: annotationsOf(entry.data),
        since,
        episode,
        recorded,
        resolved: isOver ? recorded : null,
        opened,
      })
      if (isOver) context.timer('forget', recorded + KEPT + minOpen)
      else context.cancel('forget')
      if (opened === undefined) context.timer('opened', recorded + FIRST_ASKED)
    },
    timer(state, _due, context, name) {
      if (name === 'forget') {
        context.cancel('opened')
        context.set(null)
        return
      }
      if (state === null) return
      const opened = acceptances.openedAt(context.key, state.episode)
      if (opened === null) return
      if (opened !== undefined) return context.set({ ...state, opened })
      const now = context.now()
      // A receiver may be down for long.
      const pause = Math.min(Math.max(now - state.recorded, ASKED), LAST_ASKED)
      // A process that is catching up passes hours of the log in a moment.
      context.timer('opened', Math.max(now + pause, acceptances.newestAtStart ?? -Infinity))
    },
    maxStateBytes: 256 * 1024,
    // The reader of the alerts reports it.
    onError: 'dead-letter',
  }
}
