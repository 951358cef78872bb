import { setTimeout as delay } from 'node:timers/promises'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'

/** Which member has each part. */
export type Owners = readonly (string | undefined)[]

/** Reads who has each part of the only group of a log, as the server has it. It knows nothing of the library but where that is. */
export async function groupReader(servers: string, log: string) {
  const nats = await connect({ servers, reconnectTimeWait: 50, maxReconnectAttempts: -1 })
  const jsm = await jetstreamManager(nats, { timeout: 500 })
  return {
    async read(): Promise<{ readonly members: readonly string[]; readonly owners: Owners }> {
      const query = { last_by_subj: `rv.${log}.gr.*` }
      const last = () => jsm.streams.getMessage(`rivulet_${log}_state`, query)
      // While the server is away, requests have no answer.
      let found = await last().catch(() => undefined)
      while (found === undefined && !nats.isClosed()) {
        await delay(50)
        found = await last().catch(() => undefined)
      }
      if (found === null || found === undefined) return { members: [], owners: [] }
      const { members, owners } = found.json<{ members: string[]; owners: (number | null)[] }>()
      return { members, owners: owners.map((index) => members[index ?? -1]) }
    },
    /** Stores another text in its place. */
    async replace(text: string): Promise<void> {
      const found = await jsm.streams.getMessage(`rivulet_${log}_state`, { last_by_subj: `rv.${log}.gr.*` })
      await jetstream(nats).publish(found?.subject ?? '', text)
    },
    close: () => nats.close(),
  }
}

/** The parts that another member has now. */
export function moved(before: Owners, after: Owners): readonly number[] {
  return after.flatMap((owner, part) => (before[part] === owner ? [] : [part]))
}
