import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import type { KV } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { Names } from './names.ts'

/** How long an answer is waited for, in ms. What a server that was killed had received has none, and is sent again then. */
const ANSWER = 2_000

/** What a log needs of a server, or of a cluster of them. */
export interface ConnectionSettings {
  /** Settings of the NATS client: servers, credentials, TLS. */
  readonly client: NodeConnectionOptions
  readonly log: string
  readonly partitions: number
  /** Number of servers that have a copy of each stream. */
  readonly replicas: number
  /** How long an owner that does not answer keeps its names, in ms. */
  readonly lease: number
}

/** How long after an attempt to connect again the next one is made, in ms. */
const RECONNECT_INTERVAL = 250

/** A connection with the streams and the bucket of one log, which it has created where they were missing. */
export class Connection {
  readonly nats: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  readonly leases: KV
  readonly names: Names
  /** The log in errors. */
  readonly log: string
  /** Maximum size of a message with its fields, in bytes. */
  readonly maxPayload: number
  /** Whether its streams have copies, which may be behind. */
  readonly isReplicated: boolean
  /** Of the subjects of answers; undefined for the default. */
  readonly inboxPrefix: string | undefined

  private constructor(
    nats: NatsConnection,
    jsm: JetStreamManager,
    leases: KV,
    names: Names,
    settings: ConnectionSettings,
  ) {
    this.log = logName(settings.log)
    this.maxPayload = nats.info?.max_payload ?? 1024 * 1024
    this.isReplicated = settings.replicas > 1
    this.inboxPrefix = settings.client.inboxPrefix
    this.nats = nats
    this.js = jetstream(nats, { timeout: ANSWER })
    this.jsm = jsm
    this.leases = leases
    this.names = names
  }

  static async open(settings: ConnectionSettings): Promise<Connection> {
    const { client, log, partitions, replicas, lease } = settings
    const names = new Names(log, partitions)
    const nats = await connect({ reconnectTimeWait: RECONNECT_INTERVAL, ...client, maxReconnectAttempts: -1 })
    try {
      const jsm = await jetstreamManager(nats, { timeout: ANSWER })
      const common = {
        storage: 'file',
        num_replicas: replicas,
        allow_rollup_hdrs: true,
        // Reads that decide go to the leader.
        allow_direct: false,
        deny_delete: false,
        deny_purge: false,
        discard: 'new',
      } as const
      await ensure(jsm, names.events, { ...common, subjects: [names.allEntries] })
      await ensure(jsm, names.state, { ...common, subjects: [...names.allState] })
      const leases = await new Kvm(nats).create(names.leases, {
        history: 1,
        ttl: lease,
        replicas,
        storage: 'file',
      })
      return new Connection(nats, jsm, leases, names, settings)
    } catch (error) {
      await nats.close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.nats.close()
  }
}

/** How a log is called in errors. */
export function logName(log: string): string {
  return `the log ${JSON.stringify(log)}`
}

type NewStream = Omit<Parameters<JetStreamManager['streams']['add']>[0], 'name'>

/** Creates a stream; without effect for one that is there. */
async function ensure(jsm: JetStreamManager, name: string, config: NewStream): Promise<void> {
  await jsm.streams.add({ name, ...config })
}
