import { parseJson } from '../../../protocol/json.ts'
import type { Connection } from '../server/connection.ts'
import { retryTransient } from '../server/retry-transient.ts'

/**
 * An identity of a deleted entry as it is stored: its key, its revision and its completeness, and of a forgotten one the number of
 * the entry.
 */
export type DeletedIdentity = readonly [
  key: string,
  revision: number,
  completeness: number,
  sequence?: number,
]

/** Maximum number of identities in one message, and of messages that are sent at once. */
const STEP = 5_000
const CONCURRENCY = 32

/** An entry that is going to be deleted. */
export interface DeletedEntry {
  /** The hash of its source. */
  readonly source: string
  readonly identity: DeletedIdentity
}

/** Age of the log when they were stored. */
export interface IdentityAge {
  readonly uptime: number
  readonly identities: number
}

/** The fields of an {@link IdentityAge}. */
export const UPTIME = 'Rv-Uptime'
export const IDENTITIES = 'Rv-Identities'

/** Stores the identities of entries before these are deleted, by source. Stored twice, they are the same. */
export async function storeIdentities(
  connection: Connection,
  subjectOf: (source: string) => string,
  entries: readonly DeletedEntry[],
  age: IdentityAge,
): Promise<void> {
  const fields = { [UPTIME]: String(age.uptime), [IDENTITIES]: String(age.identities) }
  const messages: { readonly subject: string; readonly payload: string }[] = []
  for (const [source, group] of Map.groupBy(entries, (entry) => entry.source)) {
    const identities = group.map(({ identity }) => identity)
    for (let at = 0; at < identities.length; at += STEP) {
      const payload = JSON.stringify(identities.slice(at, at + STEP))
      messages.push({ subject: subjectOf(source), payload })
    }
  }
  for (let at = 0; at < messages.length; at += CONCURRENCY) {
    await Promise.all(
      messages
        .slice(at, at + CONCURRENCY)
        .map((message) =>
          retryTransient(connection, () => connection.publisher.publish({ ...message, fields })),
        ),
    )
  }
}

/** The identities in a message. */
export function deletedIdentities(data: Uint8Array): readonly DeletedIdentity[] {
  const stored = parseJson(new TextDecoder().decode(data))
  return Array.isArray(stored) ? stored.filter(isDeletedIdentity) : []
}

function isDeletedIdentity(value: unknown): value is DeletedIdentity {
  return Array.isArray(value) && typeof value[0] === 'string' && value.slice(1, 3).every(Number.isInteger)
}
