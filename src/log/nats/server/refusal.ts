import type { NatsConnection } from '@nats-io/transport-node'
import { LogServerError } from '../../errors.ts'
import { isRefused } from './server-error.ts'

/**
 * What a server has said to an open connection that it does not accept any more. The client connects again and again, so that the
 * log is there once it is accepted; the calls that wait for it would end as where no server answers.
 */
export class Refusal {
  #last: Error | undefined

  constructor(nats: NatsConnection) {
    void this.#follow(nats)
  }

  /** An error as it is reported: with what the server has said, where the connection is refused. */
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
