import { annotationsOf } from './alert-entry.ts'
import type { FiringEntry, ResolvedEntry } from './alert-entry.ts'
import { labelsHash } from './alert-identity.ts'
import type { Pending } from './alert-reader.ts'
import type { Acceptances, AlertState } from './alertmanager-process.ts'

/** How long an alert that has ended is sent, in ms. */
const RESOLVED_SENT = 15 * 60_000

/** Number of pending events above which an event counts as notified as soon as it is accepted, without `minOpen`. */
const MANY_PENDING = 4_000

/** An alert as it is sent. */
export interface Alert {
  readonly key: string
  readonly labels: Readonly<Record<string, string>>
  /** Annotations of its last event. */
  annotations: Readonly<Record<string, string>>
  /** When it began to fire, Unix ms. */
  readonly startsAt: number
  readonly episode: string
  /** When its last event was recorded, in Unix ms. */
  recorded: number
  /** When its end was recorded; undefined while it fires. */
  resolvedAt: number | undefined
  /**
   * Whether it had ended and had been open for `minOpen` in an earlier run. Alertmanager does not notify an alert that has ended when it
   * first comes, nor one that ends within its `group_wait`.
   */
  isProven: boolean
  /**
   * The time until which it stays open: `minOpen` after a receiver first accepted it, also in an earlier run. In ms of `performance.now()`,
   * since the computer's clock may be set.
   */
  openUntil: number | undefined
  /** When a receiver first accepted it as open, in Unix ms. */
  openedAt: number | undefined
  /** Whether the process has stored `openedAt`, so that the next run goes on with it. */
  isStored: boolean
  /** When it ended for a receiver, in Unix ms. */
  endedAt: number | undefined
  /** Whether a receiver accepted that it has ended. */
  isEndAccepted: boolean
  /** Why a receiver does not take it. */
  refusal: Error | undefined
}

/** An event that waits for its notification. */
interface Waiting {
  readonly pending: Pending
  readonly alert: Alert
}

/** The alerts that are sent, and the events that wait until they are notified. */
export class Alerts implements Acceptances {
  newestAtStart: number | undefined
  readonly #minOpen: number
  readonly #byKey = new Map<string, Alert>()
  /** The waiting events, in the order of the log, in which they are acknowledged: so all events before the reader's cursor were notified. */
  #waiting: Waiting[] = []
  /** Alerts that a receiver accepted, in the order of the times at which they may end. */
  #opened: Alert[] = []

  constructor(minOpen: number) {
    this.#minOpen = minOpen
  }

  get(key: string): Alert | undefined {
    return this.#byKey.get(key)
  }

  keys(): Iterable<string> {
    return this.#byKey.keys()
  }

  /** When an alert ended for a receiver, in Unix ms; undefined while it is open. */
  endOf(alert: Alert): number | undefined {
    const { resolvedAt, isProven, openUntil } = alert
    if (resolvedAt === undefined) return undefined
    if (isProven) return resolvedAt
    if (openUntil === undefined || performance.now() < openUntil) return undefined
    // The same each time that it is sent.
    return (alert.endedAt ??= Date.now())
  }

  /** Time until an alert may end or an event is notified, in ms; undefined for none. */
  get due(): number | undefined {
    const until = this.#opened[0]?.openUntil
    return until === undefined ? undefined : Math.max(0, until - performance.now())
  }

  /** Takes an alert of the process's state, also if its events are known to be pending. */
  restore(key: string, state: AlertState): void {
    const { labels, annotations, since, episode, recorded, resolved, opened } = state
    const openUntil = opened === undefined ? undefined : opened + this.#minOpen
    // One that fires may be older than the notifier, and end soon. An end without `opened` was acknowledged, or is pending.
    const isProven = resolved !== null && (openUntil === undefined || openUntil <= resolved)
    let alert = this.#byKey.get(key)
    if (alert?.episode !== episode) {
      if (alert !== undefined && alert.recorded > recorded) return
      if (resolved !== null && Math.max(resolved, openUntil ?? 0) + RESOLVED_SENT < Date.now()) return
      alert = alertOf(key, { labels, annotations, since, episode }, recorded)
      alert.isProven = isProven
      this.#byKey.set(key, alert)
    }
    if (resolved !== null) alert.resolvedAt ??= resolved
    if (opened === undefined) return
    alert.isProven = isProven
    alert.isStored = true
    this.#open(alert, opened)
  }

  /** The process has stored a state. Returns whether events may be acknowledged now. */
  stored(key: string, { episode, opened }: AlertState): boolean {
    const alert = this.#byKey.get(key)
    if (opened === undefined || alert?.episode !== episode || alert.isStored) return false
    alert.isStored = true
    return true
  }

  openedAt(key: string, episode: string): number | null | undefined {
    const alert = this.#byKey.get(key)
    if (alert?.episode !== episode) return undefined
    return alert.openedAt ?? (alert.refusal === undefined ? undefined : null)
  }

  /**
   * Takes an event that is not known to be notified. The same event may come several times.
   *
   * @returns The alert that it changes.
   */
  take(entry: FiringEntry | ResolvedEntry): Alert {
    const { data, recorded } = entry
    const key = labelsHash(data.labels)
    const known = this.#byKey.get(key)
    const isKnown = known?.episode === data.episode
    // An event of an earlier episode has nothing to change.
    if (known !== undefined && !isKnown && known.recorded > recorded) return known
    const alert = isKnown ? known : alertOf(key, { ...data, annotations: annotationsOf(data) }, recorded)
    this.#byKey.set(key, alert)
    if (recorded >= alert.recorded) {
      alert.recorded = recorded
      alert.annotations = annotationsOf(data)
    }
    // A dead letter is handed out again.
    alert.refusal = undefined
    if (entry.type === 'alert.resolved') {
      // Its beginning was notified, or is no longer in the log.
      if (!isKnown) alert.isProven = true
      alert.resolvedAt ??= recorded
    } else {
      alert.isProven = false
      if (alert.openUntil === undefined) alert.isEndAccepted = false
    }
    return alert
  }

  /** Keeps an event until it is notified. */
  wait(pending: Pending, alert: Alert): void {
    this.#waiting.push({ pending, alert })
  }

  /** A receiver took the alert. */
  accepted(alert: Alert, isOpen: boolean): void {
    if (!isOpen) alert.isEndAccepted = true
    else this.#open(alert, Date.now())
  }

  /** @param openedAt When a receiver first accepted it, in Unix ms: perhaps in an earlier run, by a clock that was set since. */
  #open(alert: Alert, openedAt: number): void {
    if (alert.openUntil !== undefined) return
    const rest = Math.min(this.#minOpen, Math.max(0, openedAt + this.#minOpen - Date.now()))
    const until = performance.now() + rest
    alert.openUntil = until
    alert.openedAt = openedAt
    const before = this.#opened.findLastIndex(({ openUntil = 0 }) => openUntil <= until)
    this.#opened.splice(before + 1, 0, alert)
  }

  /** A receiver refused the alert, and would again. */
  refused(alert: Alert, error: Error): void {
    if (alert.openUntil === undefined && !alert.isEndAccepted) alert.refusal = error
  }

  /** Acknowledges the events that are notified. Returns the alerts that end now. */
  advance(): readonly Alert[] {
    const now = performance.now()
    const due = this.#opened.findIndex(({ openUntil = 0 }) => openUntil > now)
    const opened = this.#opened.splice(0, due === -1 ? this.#opened.length : due)
    let count = 0
    for (const waiting of this.#waiting) {
      const { pending, alert } = waiting
      const isMany = this.#waiting.length - count > MANY_PENDING
      if (alert.refusal !== undefined && pending.entry.type === 'alert.firing') pending.refuse(alert.refusal)
      else if (this.#isNotified(waiting, isMany, now)) pending.done()
      else break
      count++
    }
    this.#waiting.splice(0, count)
    return opened.filter((alert) => alert.resolvedAt !== undefined && this.#byKey.get(alert.key) === alert)
  }

  /** Forgets the alerts that were over for long enough. */
  forget(): void {
    const now = Date.now()
    for (const [key, alert] of this.#byKey) {
      const { isEndAccepted, refusal, resolvedAt } = alert
      // One that was refused has no end at a receiver.
      const end = refusal === undefined ? this.endOf(alert) : resolvedAt
      const isDone = isEndAccepted || refusal !== undefined
      if (end !== undefined && isDone && end + RESOLVED_SENT < now) this.#byKey.delete(key)
    }
  }

  #isNotified({ pending, alert }: Waiting, isMany: boolean, now: number): boolean {
    // Another episode has replaced it: for a receiver it is the same alert.
    if (this.#byKey.get(alert.key) !== alert || alert.refusal !== undefined) return true
    const { openUntil, isEndAccepted } = alert
    // The next run has the rest from the state of the process.
    if (alert.isStored) return true
    if (isEndAccepted && pending.entry.type === 'alert.resolved') return true
    if (isMany) return openUntil !== undefined
    return pending.entry.type === 'alert.firing' && openUntil !== undefined && now >= openUntil
  }
}

function alertOf(
  key: string,
  { labels, annotations, since, episode }: Pick<AlertState, 'labels' | 'annotations' | 'since' | 'episode'>,
  recorded: number,
): Alert {
  return {
    key,
    labels,
    annotations,
    // Another machine's clock may be ahead.
    startsAt: Math.min(Date.parse(since), recorded),
    episode,
    recorded,
    resolvedAt: undefined,
    isProven: false,
    openUntil: undefined,
    openedAt: undefined,
    isStored: false,
    endedAt: undefined,
    isEndAccepted: false,
    refusal: undefined,
  }
}
