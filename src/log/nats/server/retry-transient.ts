import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from '@nats-io/transport-node'
import { backoffDelay } from '../../../protocol/backoff.ts'
import { isTransient, serverError } from './server-error.ts'

/** Deadline of retries after transient errors, in ms. */
const PATIENCE = 30_000

/** Delays between two attempts, in ms. The client's own timeouts come on top. */
const BACKOFF = { initialDelay: 20, maxDelay: 1_000 }

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

/** How work is retried. */
interface RetryOptions {
  /** Whether the same work may succeed after this error. Default: {@link isTransient}. */
  readonly isTransient?: (cause: unknown) => boolean
  /** How long it is retried, in ms. Default 30,000. */
  readonly patience?: number
}

/**
 * Retries idempotent work while it fails with transient errors, until the connection is closed. Every retry of a call to the server is
 * made here. Rejects with a LogServerError after 30 seconds.
 *
 * @param work Makes one attempt. `attempt` counts from 0.
 */
export async function retryTransient<Result>(
  { nats, log }: Connected,
  work: (attempt: number) => Promise<Result>,
  { isTransient: mayPass = isTransient, patience = PATIENCE }: RetryOptions = {},
): Promise<Result> {
  const started = performance.now()
  for (let attempt = 0; ; attempt++) {
    try {
      return await work(attempt)
    } catch (cause) {
      if (!mayPass(cause) || nats.isClosed() || performance.now() - started > patience) {
        throw serverError(log, cause)
      }
      tryElsewhere(nats, started)
      await delay(backoffDelay(attempt, BACKOFF))
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
