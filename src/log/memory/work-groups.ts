import { LogInUseError } from '../errors.ts'
import { rebalanced } from '../store/assignment.ts'
import type { Assignment } from '../store/assignment.ts'
import { WaitingCalls } from './waiting-calls.ts'

interface WorkGroup<Member> {
  readonly members: Map<Member, string>
  assignment: Assignment
  /** Calls that wait for a change of the members. */
  readonly waiting: WaitingCalls<Member, true>
}

/** Open logs that divide work. */
export class MemoryWorkGroups<Member extends { readonly owner: string }> {
  readonly #log: string
  readonly #groups = new Map<string, WorkGroup<Member>>()
  #joined = 0

  constructor(log: string) {
    this.#log = log
  }

  async *share(
    name: string,
    parts: number,
    member: Member,
    signal: AbortSignal,
  ): AsyncGenerator<ReadonlySet<number>, void, void> {
    if (signal.aborted) return
    const group = this.#join(name, parts, member)
    const id = group.members.get(member)
    let known: string | undefined
    const leave = () => {
      // It may have joined again since.
      if (group.members.get(member) === id) this.#leave(group, member)
    }
    // The member leaves even if nothing asks for a share then.
    signal.addEventListener('abort', leave, { once: true })
    try {
      while (!signal.aborted) {
        const own = group.assignment.flatMap((owner, part) => (owner === id ? [part] : []))
        // A share that was lost without its knowledge is lost.
        if (known === own.join()) await group.waiting.add(member, signal)
        else {
          known = own.join()
          yield new Set(own)
        }
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', leave)
      leave()
    }
  }

  /** Ends the memberships of an open log, with this error. */
  close(member: Member, error: Error): void {
    for (const group of this.#groups.values()) {
      group.waiting.reject(member, error)
      this.#leave(group, member)
    }
  }

  /** Ends them without its knowledge. */
  lose(member: Member): void {
    for (const group of this.#groups.values()) this.#leave(group, member)
  }

  #join(name: string, parts: number, member: Member): WorkGroup<Member> {
    const found = this.#groups.get(name)
    if (found?.members.has(member) === true) throw new LogInUseError(this.#log, `group:${name}`, member.owner)
    const group = found ?? { members: new Map(), assignment: [], waiting: new WaitingCalls() }
    this.#groups.set(name, group)
    this.#joined += 1
    group.members.set(member, String(this.#joined))
    if (group.assignment.length !== parts) group.assignment = Array.from({ length: parts }, () => null)
    this.#rebalance(group)
    return group
  }

  #leave(group: WorkGroup<Member>, member: Member): void {
    if (group.members.delete(member)) this.#rebalance(group)
  }

  #rebalance(group: WorkGroup<Member>): void {
    group.assignment = rebalanced(group.assignment, Array.from(group.members.values()))
    group.waiting.settle(() => true)
  }
}
