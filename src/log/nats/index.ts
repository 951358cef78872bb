/**
 * The event log on NATS JetStream. It needs `@nats-io/transport-node`, `@nats-io/jetstream` and `@nats-io/kv` 3.4.
 *
 * @module rivulet/log/nats
 */
import { hostname } from 'node:os'
import {
  credsAuthenticator,
  nkeyAuthenticator,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from '@nats-io/transport-node'
import type { Authenticator } from '@nats-io/transport-node'
import { ArgumentError, hidden, shownUrl } from '../../protocol/argument-error.ts'
import { checkBoolean, checkFunction, checkInteger, checkOptions, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import { NatsLogStore } from './store.ts'
import type { LogStore } from '../store/contract.ts'
import { inboxLimits } from '../store/inbox-store.ts'
import type { InboxLimits } from '../store/inbox-store.ts'

/** How a log signs in at its server: one of these. */
export type NatsCredentials =
  | { readonly user: string; readonly password: string }
  | { readonly token: string }
  /** The text of a `.creds` file: a JWT and the seed of its key. */
  | { readonly creds: string }
  /** The seed of an NKEY. */
  | { readonly seed: string }

/** How a log uses TLS: certificates in PEM, as text or as the name of a file. */
export interface NatsTls {
  /** The authorities that may sign the server's certificate. */
  readonly ca?: string
  readonly caFile?: string
  /** The certificate that is shown to the server. */
  readonly cert?: string
  readonly certFile?: string
  /** The key of the certificate. */
  readonly key?: string
  readonly keyFile?: string
}

/** Settings of {@link natsStore}. */
export interface NatsStoreOptions {
  /**
   * One or several servers of a cluster, as `nats://host:4222` or `tls://host:4222`.
   *
   * The others of the cluster are found. The URLs have no credentials.
   */
  readonly servers: string | readonly string[]
  /**
   * Name of the log: letters, digits, `-` and `_`, at most 64.
   *
   * Logs with other names on the same server are other logs.
   */
  readonly name: string
  /** Whether a missing log is created. Default true. Otherwise it is a `LogServerError`. */
  readonly create?: boolean
  /**
   * `{ user, password }`, `{ token }`, `{ creds }` (the text of a `.creds` file) or `{ seed }` (NKEY). Default: none.
   *
   * They appear in no error.
   */
  readonly credentials?: NatsCredentials
  /**
   * PEM as text in `ca`, `cert` and `key`, or files in `caFile`, `certFile` and `keyFile`. Default: TLS if the server requires it.
   *
   * The authorities are those of Node by default. With `{}`, or if one of the servers is `tls://`, nothing is sent without TLS.
   */
  readonly tls?: NatsTls
  /**
   * Parts into which the sources are divided, 1 to 1,000, fixed when the log is created. Default 64, or the number of the log.
   *
   * So many workers can share them. A number that differs from that of the log is an `ArgumentError`.
   */
  readonly partitions?: number
  /**
   * Servers that have a copy of the log, 1 to 5. Default 3 for a new log in a cluster, otherwise 1.
   *
   * A log with fewer copies is a `LogServerError`.
   */
  readonly replicas?: number
  /**
   * Time without an answer until others take over the names of this open log, in ms, 1,000 to 3,600,000. Fixed when the log is created. Default
   * 10,000.
   *
   * The lease of an existing log stays as it is.
   */
  readonly lease?: number
  /** Name of this open log in the `LogInUseError` of others. Default: the process id and the host. */
  readonly owner?: string
  /**
   * Unix time in ms. Default `Date.now`.
   *
   * It gives `recorded` of the entries.
   */
  readonly clock?: () => number
  /** Webhooks that are stored and not recorded yet: `maxDeliveries`, default 10,000, and the size of their bodies, `maxBytes`, default 256 MiB. */
  readonly inbox?: InboxLimits
}

/**
 * A log on NATS JetStream, for any number of processes on any number of machines. The first call that needs it connects, and creates
 * the log's two streams and its bucket if they are missing.
 *
 * Appended entries are as durable as the streams: they survive a crash of the server, and with three replicas the loss of one server.
 * Calls wait for up to 30 seconds while no server answers.
 *
 * Methods reject with a `LogServerError` if the server cannot be reached or refuses something.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 */
export function natsStore(options: NatsStoreOptions): LogStore {
  checkOptions('options', options ?? null, [
    'servers',
    'name',
    'create',
    'credentials',
    'tls',
    'partitions',
    'replicas',
    'lease',
    'owner',
    'clock',
    'inbox',
  ])
  const {
    name,
    create = true,
    credentials,
    tls,
    partitions,
    replicas,
    lease,
    owner = `process ${process.pid} on ${hostname()}`,
    clock = Date.now,
    inbox,
  } = options
  const servers = checkedServers(options.servers)
  // The client takes the scheme for a host's, and connects without TLS if the server does not offer it.
  const isSecure = tls !== undefined || servers.some((server) => server.startsWith('tls:'))
  checkOptions('tls', tls, ['ca', 'caFile', 'cert', 'certFile', 'key', 'keyFile'])
  for (const [option, text] of Object.entries(tls ?? {})) {
    if (text !== undefined && !isText(text))
      throw new ArgumentError(`tls.${option}`, 'a non-empty text', hidden(text))
  }
  checkText('name', name)
  if (!/^[\w-]{1,64}$/.test(name)) {
    throw new ArgumentError('name', 'letters, digits, "-" and "_", at most 64', name)
  }
  if (partitions !== undefined) checkInteger('partitions', partitions, 1, 1_000)
  if (replicas !== undefined) checkInteger('replicas', replicas, 1, 5)
  checkBoolean('create', create)
  if (lease !== undefined) checkInteger('lease', lease, 1_000, 3_600_000)
  checkText('owner', owner)
  checkFunction('clock', clock)
  const authenticator = credentials === undefined ? undefined : checkedAuthenticator(credentials)
  return new NatsLogStore({
    client: {
      servers,
      name: `rivulet ${name}`,
      ...(authenticator && { authenticator }),
      ...(isSecure && { tls: tls ?? {} }),
    },
    log: name,
    create,
    partitions,
    replicas,
    lease,
    owner,
    clock,
    inbox: inboxLimits(inbox),
  })
}

function checkedServers(given: unknown): string[] {
  const servers: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (servers.length === 0) throw new ArgumentError('servers', 'at least one server', given)
  return servers.map((server) => {
    const url = typeof server === 'string' && URL.canParse(server) ? new URL(server) : undefined
    if (url === undefined || !['nats:', 'tls:'].includes(url.protocol) || url.hostname === '') {
      throw new ArgumentError('servers', 'like nats://host:4222 or tls://host:4222', shownUrl(server))
    }
    if (url.username !== '' || url.password !== '') {
      throw new ArgumentError('servers', 'without credentials, which are an option', shownUrl(server))
    }
    const isMore = !['', '/'].includes(url.pathname) || url.search !== '' || url.hash !== ''
    if (isMore) throw new ArgumentError('servers', 'a host with a port and nothing else', shownUrl(server))
    return `${url.protocol}//${url.host}`
  })
}

/** Returns credentials that can sign. A text that is no `.creds` file or no seed would fail only at the opening. */
function checkedAuthenticator(credentials: unknown): Authenticator {
  const authenticator = authenticatorOf(credentials)
  try {
    authenticator('a challenge')
  } catch {
    const expected = 'the text of a .creds file in { creds }, or the seed of an NKEY in { seed }'
    throw new ArgumentError('credentials', expected, hidden(credentials))
  }
  return authenticator
}

function authenticatorOf(credentials: unknown): Authenticator {
  const given: Readonly<Record<string, unknown>> = isObject(credentials) ? credentials : {}
  const { user, password, token, creds, seed } = given
  if (isText(user) && isText(password)) return usernamePasswordAuthenticator(user, password)
  if (isText(token)) return tokenAuthenticator(token)
  if (isText(creds)) return credsAuthenticator(new TextEncoder().encode(creds))
  if (isText(seed)) return nkeyAuthenticator(new TextEncoder().encode(seed))
  const expected = '{ user, password }, { token }, { creds } or { seed }, each a text'
  throw new ArgumentError('credentials', expected, hidden(credentials))
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}
