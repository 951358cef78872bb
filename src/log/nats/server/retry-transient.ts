import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from '@nats-io/transport-node'
import { LogServerError } from '../../errors.ts'
import { serverError } from './server-error.ts'

/** How long what fails for now is repeated, in ms. */
const PATIENCE = 30_000

/** Between two attempts, in ms. The client's own limits of time come on top. */
const INTERVAL = 100

/** How long a server of a cluster is asked that does not answer, in ms: longer than its cluster takes to elect a leader. */
const SAME_SERVER = 10_000

/** When each connection was moved last. */
const moved = new WeakMap<NatsConnection, number>()

/** The connection of a log. */
export interface Connected {
  readonly nats: NatsConnection
  /** The log in errors. */
  readonly log: string
}

/** What can be repeated without another effect, until the server answers. Rejects with a LogServerError after 30 seconds. */
export async function retryTransient<Result>(
  connection: Connected,
  work: () => Promise<Result>,
): Promise<Result> {
  const started = performance.now()
  for (;;) {
    try {
      return await work()
    } catch (cause) {
      const error = serverError(connection.log, cause)
      const isTransient = error instanceof LogServerError && error.retryable
      if (!isTransient || connection.nats.isClosed() || deadlinePassed(started)) throw error
      tryElsewhere(connection.nats, started)
      await delay(INTERVAL)
    }
  }
}

/** Whether what has begun then is not repeated any more. */
export function deadlinePassed(started: number): boolean {
  return performance.now() - started > PATIENCE
}

/**
 * Connects to another server of the cluster where a call has failed for long enough since it began: the one that is connected may be
 * cut off from the others.
 */
export function tryElsewhere(nats: NatsConnection, started: number): void {
  const now = performance.now()
  if (now - Math.max(started, moved.get(nats) ?? 0) < SAME_SERVER) return
  if (nats.isClosed() || nats.info?.cluster === undefined) return
  moved.set(nats, now)
  void nats.reconnect()
}
