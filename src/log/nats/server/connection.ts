import { JetStreamApiError, jetstream, jetstreamManager } from '@nats-io/jetstream'
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream'
import { Kvm } from '@nats-io/kv'
import type { KV } from '@nats-io/kv'
import { connect, errors } from '@nats-io/transport-node'
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node'
import { ArgumentError } from '../../../protocol/argument-error.ts'
import { LogServerError } from '../../errors.ts'
import { Names } from './names.ts'
import { Publisher } from './publisher.ts'
import { Refusal } from './refusal.ts'
import { Continuity } from './continuity.ts'
import { retryTransient } from './retry-transient.ts'
import type { Connected } from './retry-transient.ts'
import { isTransient } from './server-error.ts'
import { configOf, createOnce, ensureStream, isThere } from './stored-stream.ts'

/** Timeout of a request, in ms. Requests that a killed server had received get no answer, and are sent again then. */
const ANSWER = 2_000

/** Least value of a server's maximum size of a message, in bytes: the default of NATS. A commit is one message. */
const MIN_PAYLOAD = 1024 * 1024

/** Settings of the connection of a log to a server or a cluster. */
export interface ConnectionSettings {
  /** Settings of the NATS client: servers, credentials, TLS. */
  readonly client: NodeConnectionOptions
  readonly log: string
  /** Whether a missing log is created. Default true. */
  readonly create?: boolean
  readonly partitions: number
  /** Number of servers that have a copy of each stream. Undefined for 3 in a cluster, otherwise 1. */
  readonly replicas: number | undefined
  /** Duration of a lease, in ms: an owner that does not answer keeps its names for so long. Undefined for that of the log; 10,000 in a new one. */
  readonly lease: number | undefined
}

const DEFAULT_LEASE = 10_000
const MIN_LEASE = 1_000

/** Interval between two attempts to connect to a server, in ms. */
const RECONNECT_INTERVAL = 250

/** Jitter of that interval, in ms, so that processes do not come back to a server all at once. */
const RECONNECT_JITTER = 100

/** What a connection has found at its server. */
type Opened = Pick<
  Connection,
  'nats' | 'jsm' | 'leases' | 'lease' | 'names' | 'log' | 'isReplicated' | 'inboxPrefix'
>

/** A connection with the streams and the bucket of one log, which it has created if they were missing. */
export class Connection {
  readonly nats: NatsConnection
  readonly js: JetStreamClient
  readonly jsm: JetStreamManager
  readonly publisher: Publisher
  readonly leases: KV
  /** Duration of a lease, in ms: an owner that does not answer keeps its names for so long. */
  readonly lease: number
  readonly names: Names
  readonly refusal: Refusal
  readonly continuity: Continuity
  /** The log in errors. */
  readonly log: string
  /** Maximum size of a message with its fields, in bytes. */
  readonly maxPayload: number
  /** Whether its streams have copies, which may be behind, and several writers at the same moment: see `write-order.ts`. */
  readonly isReplicated: boolean
  /** Prefix of the subjects of answers; undefined for the default. */
  readonly inboxPrefix: string | undefined

  private constructor(opened: Opened) {
    const { nats, jsm, leases, lease, names, log, isReplicated, inboxPrefix } = opened
    this.log = log
    this.maxPayload = nats.info?.max_payload ?? MIN_PAYLOAD
    this.isReplicated = isReplicated
    this.inboxPrefix = inboxPrefix
    this.nats = nats
    this.refusal = new Refusal(nats)
    this.js = jetstream(nats, { timeout: ANSWER })
    this.jsm = jsm
    const continuity = new Continuity(this)
    this.continuity = continuity
    this.publisher = new Publisher(nats, ANSWER, this.inboxPrefix, (message) => continuity.saw(message))
    this.leases = leases
    this.lease = lease
    this.names = names
  }

  static async open(settings: ConnectionSettings): Promise<Connection> {
    const { client, log, create = true, partitions, replicas } = settings
    const names = new Names(log, partitions)
    const nats = await connect({
      reconnectDelayHandler: reconnectDelay(),
      ...client,
      maxReconnectAttempts: -1,
      // Otherwise a log that was refused twice would never be there again.
      ignoreAuthErrorAbort: true,
      // Two stack traces for each request take half of its time.
      noAsyncTraces: true,
    })
    try {
      const { max_payload: maxPayload = MIN_PAYLOAD } = nats.info ?? {}
      if (maxPayload < MIN_PAYLOAD) {
        const problem = `is at a server with a max_payload of ${maxPayload} bytes: set it to at least ${MIN_PAYLOAD}`
        throw new LogServerError(logName(log), problem)
      }
      const connected = { nats, log: logName(log) }
      const jsm = await openManager(connected)
      const host = { ...connected, jsm }
      if (!(await isThere(host, names)) && !create) throw missing(log)
      // A stream with one copy in a cluster is gone with one server.
      const copies = replicas ?? (nats.info?.cluster === undefined ? 1 : 3)
      const stored = await Promise.all([
        ensureStream(host, {
          name: names.events,
          subjects: [names.allEntries],
          description: `Entries of ${logName(log)}: one message each, an event as JSON`,
          replicas: copies,
        }),
        ensureStream(host, {
          name: names.state,
          subjects: names.allState,
          description: `State of ${logName(log)}: positions, consumers, processes, inbox`,
          replicas: copies,
        }),
      ])
      const fewest = Math.min(...stored)
      if (fewest < (replicas ?? Math.min(copies, 2))) {
        const problem = `has ${fewest} of ${copies} copies: raise num_replicas of its streams, or open it with \`replicas: ${fewest}\``
        throw new LogServerError(logName(log), problem)
      }
      const bucket = await configOf(host, names.leaseStream)
      const lease = bucket === undefined ? (settings.lease ?? DEFAULT_LEASE) : bucket.max_age / 1e6
      if (settings.lease !== undefined && settings.lease !== lease) {
        throw new ArgumentError('lease', `${lease}, as the log has, or none`, settings.lease)
      }
      if (lease < MIN_LEASE) {
        const problem = `has leases that do not run out in time: set max_age of its stream ${names.leaseStream} to at least ${MIN_LEASE} ms`
        throw new LogServerError(logName(log), problem)
      }
      const kvm = new Kvm(nats)
      if (bucket === undefined) {
        const description = `Leases of ${logName(log)}: which processes have it open`
        const ofBucket = { description, history: 1, ttl: lease, replicas: copies, storage: 'file' } as const
        await createOnce(host, names.leaseStream, () => kvm.create(names.leases, ofBucket))
      }
      const leases = await retryTransient(host, () => kvm.open(names.leases))
      const isReplicated = Math.max(...stored) > 1
      return new Connection({ ...host, leases, lease, names, isReplicated, inboxPrefix: client.inboxPrefix })
    } catch (error) {
      await nats.close()
      throw error
    }
  }

  async close(): Promise<void> {
    await this.nats.close()
  }
}

function missing(log: string): LogServerError {
  return new LogServerError(logName(log), 'does not exist on its server: name one that was created')
}

/** The name of a log in errors. */
export function logName(log: string): string {
  return `the log ${JSON.stringify(log)}`
}

/**
 * How long to wait after the last attempt to connect to a server, in ms, for the client, which looks at the wall clock. If that was set back by an
 * hour meanwhile, it would not connect for an hour: once the time is over by the monotonic clock, there is no wait.
 */
function reconnectDelay(): () => number {
  let since = performance.now()
  return () => {
    const now = performance.now()
    const isOver = now - since >= RECONNECT_INTERVAL
    if (isOver) since = now
    return isOver ? -Infinity : RECONNECT_INTERVAL + Math.random() * RECONNECT_JITTER
  }
}

/** Opens JetStream. A cluster that has just started leaves requests unanswered or refuses them for now; a server without JetStream refuses at once. */
function openManager(connected: Connected): Promise<JetStreamManager> {
  const isStarting = (error: unknown) =>
    error instanceof errors.TimeoutError || (error instanceof JetStreamApiError && isTransient(error))
  return retryTransient(connected, () => jetstreamManager(connected.nats, { timeout: ANSWER }), {
    isTransient: isStarting,
  })
}
