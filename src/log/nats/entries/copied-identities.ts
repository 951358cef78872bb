import type { Connection } from '../server/connection.ts'
import { deletedIdentities } from './deleted-identities.ts'
import type { DeletedIdentity } from './deleted-identities.ts'
import { MessageCursor } from '../server/message-cursor.ts'

/** How many identities are kept in memory, about. */
const MAX_KEPT = 500_000

/** Count of a group without an identity. */
const GROUP = 10

/**
 * The group of an identity that was copied from another log, as the last token of a subject: no source has it. There are 4,096 groups,
 * since the source of such an identity is not known.
 */
export function groupOf(key: string): string {
  return `copied-${key.slice(0, 2)}`
}

/** Identities of entries that were deleted in another log, of which this one is a copy. Those that are asked for are read by groups. */
export class CopiedIdentities {
  readonly #connection: Connection
  /** Groups in the order of their last use. */
  readonly #groups = new Map<string, ReadonlyMap<string, DeletedIdentity>>()
  #kept = 0

  constructor(connection: Connection) {
    this.#connection = connection
  }

  async find(key: string): Promise<DeletedIdentity | undefined> {
    const name = groupOf(key)
    const found = this.#groups.get(name)
    const group = found ?? (await this.#read(name))
    if (this.#groups.delete(name)) this.#kept -= group.size + GROUP
    this.#groups.set(name, group)
    this.#kept += group.size + GROUP
    this.#limit()
    return group.get(key)
  }

  async #read(name: string): Promise<ReadonlyMap<string, DeletedIdentity>> {
    const { names } = this.#connection
    const group = new Map<string, DeletedIdentity>()
    const cursor = new MessageCursor(this.#connection, {
      stream: names.state,
      subject: names.identities(name),
    })
    for await (const { data } of cursor.all()) {
      for (const identity of deletedIdentities(data)) group.set(identity[0], identity)
    }
    return group
  }

  #limit(): void {
    for (const [name, { size }] of this.#groups) {
      if (this.#kept <= MAX_KEPT) return
      this.#groups.delete(name)
      this.#kept -= size + GROUP
    }
  }
}
