import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'

/** The ids of each source of a log, in the order of the server's stream. It knows nothing of the library but where its entries are. */
export async function audit(servers: string, log: string): Promise<Readonly<Record<string, string[]>>> {
  const nats = await connect({ servers })
  const stream = `rivulet_${log}_events`
  const { state } = await (await jetstreamManager(nats)).streams.info(stream)
  const sources: Record<string, string[]> = {}
  const consumer = await jetstream(nats).consumers.get(stream)
  let left = state.messages
  for await (const message of await consumer.consume()) {
    const { source, id } = message.json<{ source: string; id: string }>()
    sources[source] = [...(sources[source] ?? []), id]
    left -= 1
    if (left === 0) break
  }
  await nats.close()
  return sources
}
