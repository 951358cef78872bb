import { nuid } from '@nats-io/transport-node'
import { isObject, parseJson } from '../../../protocol/json.ts'
import { rebalanced } from '../../store/assignment.ts'
import type { Assignment } from '../../store/assignment.ts'
import { publishConditionally } from '../server/conditional-publish.ts'
import type { Connection } from '../server/connection.ts'
import { lastMessage } from '../server/write-order.ts'

/** The members of a group, and which of them has each part. */
export interface GroupState {
  readonly members: readonly string[]
  readonly assignment: Assignment
  /** The number of its message; 0 for a group that had no member yet. */
  readonly sequence: number
}

/**
 * The message of a group: its members, and their parts. Groups of the same name with different numbers of parts are different groups, so
 * that members that do not agree do not take turns in changing it.
 */
export class GroupRecord {
  readonly #connection: Connection
  readonly #subject: string
  readonly #parts: number

  constructor(connection: Connection, group: string, parts: number) {
    this.#connection = connection
    this.#subject = connection.names.group(group, parts)
    this.#parts = parts
  }

  /** Reads it from the leader. */
  async read(): Promise<GroupState> {
    const last = await lastMessage(this.#connection, this.#connection.names.state, this.#subject)
    return { ...this.#decoded(last?.message.string()), sequence: last?.end ?? 0 }
  }

  /**
   * Divides the parts among other members.
   *
   * @returns The new state; undefined if another one was faster.
   */
  async change(
    { assignment, sequence }: GroupState,
    members: readonly string[],
  ): Promise<GroupState | undefined> {
    const next = rebalanced(assignment, members)
    const indexes = new Map(members.map((member, index) => [member, index]))
    const owners = next.map((owner) => (owner === null ? null : (indexes.get(owner) ?? null)))
    const stored = await publishConditionally(this.#connection, {
      stream: this.#connection.names.state,
      subject: this.#subject,
      id: `group-${nuid.next()}`,
      expect: sequence,
      payload: JSON.stringify({ members, owners }),
      isRollup: true,
    })
    return stored === undefined ? undefined : { members, assignment: next, sequence: stored }
  }

  /** Decodes a message. Its unreadable parts belong to no member: the live members join again. */
  #decoded(text: string | undefined): Pick<GroupState, 'members' | 'assignment'> {
    const value = text === undefined ? undefined : parseJson(text)
    const { members, owners }: Readonly<Record<string, unknown>> = isObject(value) ? value : {}
    const known = Array.isArray(members) ? members.map((member) => (isMember(member) ? member : null)) : []
    const given: readonly unknown[] = Array.isArray(owners) ? owners : []
    const assignment = Array.from({ length: this.#parts }, (_, part) => {
      const index = given[part]
      return typeof index === 'number' ? (known[index] ?? null) : null
    })
    return { members: Array.from(new Set(known)).filter((member) => member !== null), assignment }
  }
}

/** Whether it is an open log and a number, as `GroupMember` makes them. Another text might match no lease, or all. */
function isMember(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{24}-\d+$/.test(value)
}
