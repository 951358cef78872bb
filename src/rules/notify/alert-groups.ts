import type { RateLimit } from './grouped-options.ts'

/** Events of one group that are not notified yet. */
interface PendingGroup<T> {
  readonly key: string
  readonly events: T[]
  /** When it may be notified. */
  due: number
  isSending: boolean
}

/** Events that are notified together. */
export interface Taken<T> {
  readonly keys: readonly string[]
  readonly events: readonly T[]
}

/** Bounds of {@link AlertGroups}. Times are in ms. */
export interface GroupBounds {
  readonly wait: number
  readonly interval: number
  /** Maximum number of events in a notification. */
  readonly maxEvents: number
  /** The same for one of several groups, which the limit has put together. */
  readonly maxTogether: number
  readonly limit: RateLimit | undefined
}

/** Puts events into notifications: by group, and at the limit of the rate all groups together. Times are ms of one clock. */
export class AlertGroups<T> {
  readonly #bounds: GroupBounds
  readonly #groups = new Map<string, PendingGroup<T>>()
  /** When notifications were taken, within the time of the limit. */
  #taken: number[] = []

  constructor(bounds: GroupBounds) {
    this.#bounds = bounds
  }

  add(key: string, event: T, now: number): void {
    const group = this.#groups.get(key)
    if (group === undefined) {
      const due = now + this.#bounds.wait
      this.#groups.set(key, { key, events: [event], due, isSending: false })
    } else {
      // Within the interval after a notification, `due` is its end.
      if (group.events.length === 0) group.due = Math.max(group.due, now + this.#bounds.wait)
      group.events.push(event)
    }
  }

  /** Removes an event of a group that waits and fulfills the condition, and returns it. */
  withdraw(key: string, condition: (event: T) => boolean): T | undefined {
    const events = this.#groups.get(key)?.events ?? []
    const at = events.findIndex(condition)
    return at < 0 ? undefined : events.splice(at, 1)[0]
  }

  /** The next notification, if one is due. Its groups wait until they are {@link sent}. */
  take(now: number): Taken<T> | undefined {
    const { maxEvents, maxTogether } = this.#bounds
    const free = this.#free(now)
    const due = [...this.#groups.values()].filter((group) => isReady(group) && group.due <= now)
    due.sort((a, b) => a.due - b.due)
    const [first] = due
    if (first === undefined || free <= 0) return undefined
    // The last notification that the limit permits contains all groups.
    const isTogether = free === 1 && due.length > 1
    const groups = isTogether ? due : [first]
    let room = isTogether || free === 1 ? maxTogether : maxEvents
    const keys: string[] = []
    const events: T[] = []
    for (const group of groups) {
      if (room <= 0) break
      const some = group.events.splice(0, room)
      room -= some.length
      events.push(...some)
      keys.push(group.key)
      group.isSending = true
    }
    if (this.#bounds.limit !== undefined) this.#taken.push(now)
    return { keys, events }
  }

  /** The notification of these groups has ended. */
  sent(keys: readonly string[], now: number): void {
    for (const key of keys) {
      const group = this.#groups.get(key)
      if (group === undefined) continue
      group.isSending = false
      // Alerts that had no room in the notification are not new.
      group.due = now + this.#bounds.interval
    }
  }

  /** When to take again; Infinity if nothing waits. */
  next(now: number): number {
    let next = Infinity
    for (const group of this.#groups.values()) {
      if (isReady(group)) next = Math.min(next, group.due)
      // A group without events is kept for its interval.
      else if (!group.isSending && group.due <= now) this.#groups.delete(group.key)
    }
    const { limit } = this.#bounds
    if (next === Infinity || limit === undefined || this.#free(now) > 0) return next
    return Math.max(next, (this.#taken[0] ?? now) + limit.per)
  }

  #free(now: number): number {
    const { limit } = this.#bounds
    if (limit === undefined) return Infinity
    this.#taken = this.#taken.filter((at) => at + limit.per > now)
    return limit.max - this.#taken.length
  }
}

function isReady<T>({ events, isSending }: PendingGroup<T>): boolean {
  return events.length > 0 && !isSending
}
