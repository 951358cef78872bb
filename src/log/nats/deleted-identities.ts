import type { Connection } from './connection.ts'
import type { DeletedIdentity } from './identities.ts'
import { patiently } from './patience.ts'

/** How many identities are in one message. */
const STEP = 5_000

/** An entry that is going to be deleted. */
export interface DeletedEntry {
  /** The hash of its source. */
  readonly source: string
  readonly identity: DeletedIdentity
}

/** How old the log was when they were stored. */
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
  for (const [source, group] of Map.groupBy(entries, (entry) => entry.source)) {
    const identities = group.map(({ identity }) => identity)
    for (let at = 0; at < identities.length; at += STEP) {
      const payload = JSON.stringify(identities.slice(at, at + STEP))
      await patiently(connection, () =>
        connection.publisher.publish({ subject: subjectOf(source), payload, fields }),
      )
    }
  }
}
