import type { NatsConnection } from '@nats-io/transport-node'
import { LogServerError } from '../../errors.ts'
import { isRefused } from './server-error.ts'

/**
 * The reason why a server no longer accepts the connection. The client connects again and again, so that the log works once it is
 * accepted. Without this reason, the waiting calls would end as if no server had answered.
 */
export class Refusal {
  #last: Error | undefined

  constructor(nats: NatsConnection) {
    void this.#follow(nats)
  }

  /** The error to report: with the server's reason, if it refuses the connection. */
  explain(log: string, error: unknown): unknown {
    const isUnanswered = error instanceof LogServerError && error.retryable
    if (this.#last === undefined || !isUnanswered) return error
    const problem = `was refused by its server: ${this.#last.message}`
    return new LogServerError(log, problem, { cause: this.#last, retryable: true })
  }

  async #follow(nats: NatsConnection): Promise<void> {
    for await (const status of nats.status()) {
      if (status.type === 'reconnect') this.#last = undefined
      if (status.type === 'error' && isRefused(status.error)) this.#last = status.error
    }
  }
}
