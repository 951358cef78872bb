import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from '@nats-io/transport-node'
import { LogServerError } from '../../errors.ts'
import { serverError } from './server-error.ts'

/** Deadline of retries after transient errors, in ms. */
const PATIENCE = 30_000

/** Pause between two attempts, in ms. The client's own timeouts come on top. */
const INTERVAL = 100

/** Time after which another server of a cluster is tried, in ms: longer than the cluster takes to elect a leader. */
const SAME_SERVER = 10_000

/** Times at which connections were moved last, by `performance.now`. */
const moved = new WeakMap<NatsConnection, number>()

/** The connection of a log. */
export interface Connected {
  readonly nats: NatsConnection
  /** The log in errors. */
  readonly log: string
}

/** Retries idempotent work while it fails with transient errors. Rejects with a LogServerError after 30 seconds. */
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

/** Whether work that has started at this time, by `performance.now`, is no longer retried. */
export function deadlinePassed(started: number): boolean {
  return performance.now() - started > PATIENCE
}

/**
 * Connects to another server of the cluster if a call has failed for long enough since it started: the current server may be cut off
 * from the others.
 */
export function tryElsewhere(nats: NatsConnection, started: number): void {
  const now = performance.now()
  if (now - Math.max(started, moved.get(nats) ?? 0) < SAME_SERVER) return
  if (nats.isClosed() || nats.info?.cluster === undefined) return
  moved.set(nats, now)
  void nats.reconnect()
}
