import { spawnSync } from 'node:child_process'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { NatsServer } from '../../test/real/nats/server.ts'
import { SkippedError } from '../figure.ts'

const PROGRAM = 'nats-server'

/** Starts a server of its own. Throws a SkippedError where the program is missing. */
export async function startNats(): Promise<NatsServer & AsyncDisposable> {
  const { error } = spawnSync(PROGRAM, ['--version'])
  if (error !== undefined)
    throw new SkippedError(`${PROGRAM} is not installed (Debian: apt-get install nats-server)`)
  const server = await NatsServer.start()
  return Object.assign(server, { [Symbol.asyncDispose]: () => server.remove() })
}

/** Number of entries that a log has, by its server: each source has one message more, its barrier. Then the log is deleted. */
export async function removeLog(servers: string, name: string): Promise<number> {
  const nats = await connect({ servers })
  const jsm = await jetstreamManager(nats)
  const { state } = await jsm.streams.info(`rivulet_${name}_events`)
  for (const stream of [`rivulet_${name}_events`, `rivulet_${name}_state`, `KV_rivulet_${name}_leases`]) {
    await jsm.streams.delete(stream)
  }
  await nats.close()
  return state.messages - (state.num_subjects ?? 0)
}
