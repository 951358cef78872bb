import { setTimeout as delay } from 'node:timers/promises'
import type { Connection } from '../server/connection.ts'
import { GroupRecord } from './group-record.ts'
import type { GroupState } from './group-record.ts'
import type { JournalChanges } from '../journal/journal-changes.ts'
import type { Lease } from '../journal/lease.ts'
import { retryTransient } from '../server/retry-transient.ts'
import { isTransient } from '../server/server-error.ts'

/** Maximum interval at which a member checks the group by itself, in ms: the message that reports a change may be lost. */
const INTERVAL = 2_000

/** Interval of checks while a watched lease was not renewed in time, in ms. */
const OVERDUE_INTERVAL = 250

/** Maximum pause after the first refused change, in ms. The pause is longer after each further one. */
const BACKOFF = 50

/** The parts of an open log that members of groups need. */
export interface Membership {
  readonly connection: Connection
  readonly changes: JournalChanges
  readonly lease: Lease
}

/** The lease of another member that this one watches. */
interface Watched {
  readonly member: string
  readonly renewal: number
  /** When this renewal was seen first, by `performance.now`. */
  readonly since: number
}

/**
 * One membership in a group. There is no leader: a member that joins or leaves changes the group itself. Each member watches the lease of
 * the next one, in the order in which they have joined. If that lease has expired, it takes the next one out, and those after it that
 * are gone too.
 */
export class GroupMember {
  readonly #membership: Membership
  /** Name under which changes of the group are reported. */
  readonly #name: string
  readonly #record: GroupRecord
  /** Unique id, also among the memberships of one open log. */
  readonly #id: string
  readonly #onChange: () => void
  readonly #left = new AbortController()
  #state: GroupState | undefined
  #watched: Watched | undefined
  #joining: Promise<void> | undefined
  #leaving: Promise<void> | undefined
  #failure: { readonly error: unknown } | undefined

  /**
   * @param number Number of the membership, unique within the open log.
   * @param onChange Called after the share has changed, and once it can no longer be known.
   */
  constructor(
    membership: Membership,
    group: string,
    parts: number,
    { number, onChange }: { readonly number: number; readonly onChange: () => void },
  ) {
    this.#membership = membership
    this.#name = `group:${group}`
    this.#record = new GroupRecord(membership.connection, group, parts)
    this.#id = `${membership.lease.instance}-${number}`
    this.#onChange = onChange
  }

  /** Its parts; undefined if others have taken it out, since its lease had expired. Throws the error that has ended the membership. */
  get parts(): ReadonlySet<number> | undefined {
    if (this.#failure !== undefined) throw this.#failure.error
    const { members = [], assignment = [] } = this.#state ?? {}
    if (!members.includes(this.#id)) return undefined
    return new Set(assignment.flatMap((owner, part) => (owner === this.#id ? [part] : [])))
  }

  /** Takes its share, and follows the group until it leaves. Rejects with a LogServerError. */
  join(): Promise<void> {
    this.#joining ??= this.#join()
    return this.#joining
  }

  /** Gives its share up. Resolves once that is stored: it is tried until the log is closed. */
  leave(): Promise<void> {
    this.#left.abort()
    this.#leaving ??= this.#leave()
    return this.#leaving
  }

  async #join(): Promise<void> {
    await this.#membership.lease.take()
    await this.#change((members) => (members.includes(this.#id) ? members : [...members, this.#id]))
    void this.#follow()
  }

  async #leave(): Promise<void> {
    // Its message may be stored nevertheless.
    await this.#joining?.catch(() => {})
    if (this.#joining === undefined) return
    const leave = () => this.#change((members) => members.filter((member) => member !== this.#id))
    // If it fails, the other members see by its lease that it is gone.
    await retryTransient(this.#membership.connection, leave, { patience: Infinity }).catch(() => {})
  }

  /** Takes its share of the changed group, and takes out the members that are gone. */
  async #follow(): Promise<void> {
    const look = async (): Promise<undefined> => {
      try {
        await this.#look()
      } catch (error) {
        // The share stays as it is until the server is there again: the claims decide.
        if (!isTransient(error)) throw error
      }
    }
    try {
      await this.#membership.changes.until(this.#name, look, this.#left.signal, () => this.#interval())
    } catch (error) {
      if (this.#left.signal.aborted) return
      this.#failure = { error }
      this.#onChange()
    }
  }

  async #look(): Promise<void> {
    this.#take(await this.#record.read())
    const gone = await this.#gone()
    if (gone.length > 0) await this.#change((members) => members.filter((member) => !gone.includes(member)))
  }

  #interval(): number {
    const { duration } = this.#membership.lease
    // A lease is renewed three times in its duration.
    const isOverdue = this.#watched !== undefined && performance.now() - this.#watched.since > duration / 2
    return isOverdue ? OVERDUE_INTERVAL : Math.min(INTERVAL, duration / 3)
  }

  /** The members between this one and the next one that lives. */
  async #gone(): Promise<readonly string[]> {
    const { lease } = this.#membership
    const { members = [] } = this.#state ?? {}
    const own = members.indexOf(this.#id)
    const gone: string[] = []
    if (own === -1) return gone
    for (const member of [...members.slice(own + 1), ...members.slice(0, own)]) {
      const renewal = await lease.renewal(instanceOf(member))
      if (typeof renewal === 'number') {
        if (this.#watched?.member !== member || this.#watched.renewal !== renewal) {
          this.#watched = { member, renewal, since: performance.now() }
        }
        return gone
      }
      if (renewal === 'expired' && !lease.isExpiryFinal) return gone
      gone.push(member)
    }
    return gone
  }

  /** Changes the members, whatever others change at the same time. */
  async #change(change: (members: readonly string[]) => readonly string[]): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const state = await this.#record.read()
      this.#take(state)
      const members = change(state.members)
      if (members.length === state.members.length) return
      const changed = await this.#record.change(state, members)
      if (changed === undefined) {
        // Many may do this at once, such as all of a deployment.
        await delay(Math.random() * Math.min(attempt, 10) * BACKOFF)
        continue
      }
      this.#take(changed)
      this.#membership.changes.notify(this.#name)
      return
    }
  }

  #take(state: GroupState): void {
    // A read may be answered after a later change.
    if (this.#state !== undefined && state.sequence <= this.#state.sequence) return
    this.#state = state
    this.#onChange()
  }
}

function instanceOf(member: string): string {
  return member.slice(0, member.lastIndexOf('-'))
}
