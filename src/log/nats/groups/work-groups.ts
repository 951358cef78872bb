import { JoinedGroups } from '../../store/joined-groups.ts'
import { GroupMember } from './group-member.ts'
import type { Membership } from './group-member.ts'

/** Divides work among open logs. It only says which of them should try: the work is claimed, and the claims decide. */
export class NatsWorkGroups {
  readonly #membership: Membership
  /** Aborted once the log is closed. Its reason is the error with which calls reject from then on. */
  readonly #closed: AbortSignal
  readonly #joined: JoinedGroups
  /** The memberships that it has not given up yet. */
  readonly #members = new Set<GroupMember>()
  #number = 0

  constructor(membership: Membership, owner: string, closed: AbortSignal) {
    this.#membership = membership
    this.#closed = closed
    this.#joined = new JoinedGroups(membership.connection.log, owner)
  }

  /** Yields the parts of this open log, as they change, until the signal is aborted. After a lost lease: none, and then those of a new member. */
  async *share(
    group: string,
    parts: number,
    signal: AbortSignal,
  ): AsyncGenerator<ReadonlySet<number>, void, void> {
    this.#closed.throwIfAborted()
    if (signal.aborted) return
    const leaveGroup = this.#joined.join(group)
    const until = AbortSignal.any([signal, this.#closed])
    let changed = Promise.withResolvers<void>()
    const wake = () => changed.resolve()
    const ended = Promise.withResolvers<void>()
    let member: GroupMember | undefined
    // The member leaves even if nothing asks for a share then.
    const leave = () => {
      wake()
      ended.resolve()
      leaveGroup()
      if (member !== undefined) this.#leave(member)
    }
    until.addEventListener('abort', leave, { once: true })
    let known: string | undefined
    try {
      while (!until.aborted) {
        changed = Promise.withResolvers()
        const own = member?.parts
        const share = own === undefined ? '' : Array.from(own).join()
        if (known !== undefined && share !== known) {
          known = share
          yield new Set(own)
        } else if (own === undefined) {
          if (member !== undefined) this.#leave(member)
          member = this.#newMember(group, parts, wake)
          await Promise.race([member.join(), ended.promise])
        } else if (known === undefined) {
          known = share
          yield own
        } else {
          await changed.promise
        }
      }
      if (!signal.aborted) this.#closed.throwIfAborted()
    } finally {
      until.removeEventListener('abort', leave)
      leave()
    }
  }

  /** Leaves all groups. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#members, (member) => member.leave()))
  }

  #newMember(group: string, parts: number, onChange: () => void): GroupMember {
    this.#number += 1
    const member = new GroupMember(this.#membership, group, parts, { number: this.#number, onChange })
    this.#members.add(member)
    return member
  }

  #leave(member: GroupMember): void {
    void member.leave().then(() => this.#members.delete(member))
  }
}
