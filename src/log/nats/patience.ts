import { setTimeout as delay } from 'node:timers/promises'
import type { NatsConnection } from '@nats-io/transport-node'
import { LogServerError } from '../errors.ts'
import { serverError } from './server-error.ts'

/** How long what fails for now is repeated, in ms. */
export const PATIENCE = 30_000

/** Between two attempts, in ms. The client's own limits of time come on top. */
const INTERVAL = 100

/** The connection of a log. */
export interface Connected {
  readonly nats: NatsConnection
  /** The log in errors. */
  readonly log: string
}

/** What can be repeated without another effect, until the server answers. Rejects with a LogServerError after 30 seconds. */
export async function patiently<Result>(connection: Connected, work: () => Promise<Result>): Promise<Result> {
  const deadline = performance.now() + PATIENCE
  for (;;) {
    try {
      return await work()
    } catch (cause) {
      const error = serverError(connection.log, cause)
      const isPassing = error instanceof LogServerError && error.retryable
      if (!isPassing || connection.nats.isClosed() || performance.now() > deadline) throw error
      await delay(INTERVAL)
    }
  }
}
