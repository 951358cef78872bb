import type { JetStreamManager } from '@nats-io/jetstream'
import { LogServerError } from '../../errors.ts'
import type { Connected } from './patience.ts'
import { patiently } from './patience.ts'

/** A message that the server has acknowledged. */
export interface Acknowledged {
  readonly stream: string
  readonly sequence: number
  readonly subject: string
  readonly fields: Readonly<Record<string, string>>
}

/** Where streams are that may be put back. */
interface Host extends Connected {
  readonly jsm: JetStreamManager
}

/**
 * Notices that a server was put back to an earlier state, from a backup or by a power cut: it has lost what it had acknowledged, or has other
 * messages there. All that the open log knows is wrong then, and a write that follows from it could lose events. So its connection is
 * closed, which ends everything that is under way; a log that is opened again begins with what the server has, and records again what is
 * missing. Looked at after each reconnect, since such a server was started again.
 */
export class Continuity {
  readonly #host: Host
  /** The last message that was acknowledged, of each stream. */
  readonly #last = new Map<string, Acknowledged>()
  /** Whether the connection is another one than that of the last look. */
  #isDue = false
  #looking: Promise<void> | undefined
  #failure: LogServerError | undefined

  constructor(host: Host) {
    this.#host = host
    void this.#follow()
  }

  acknowledged(message: Acknowledged): void {
    const { stream, sequence } = message
    if ((this.#last.get(stream)?.sequence ?? 0) < sequence) this.#last.set(stream, message)
  }

  /** Why the connection was closed. */
  get failure(): LogServerError | undefined {
    return this.#failure
  }

  /** Resolves once it was looked at since the last reconnect. Rejects with a LogServerError where the server does not answer. */
  async looked(): Promise<void> {
    while (this.#isDue || this.#looking !== undefined) {
      await (this.#looking ??= this.#look().finally(() => (this.#looking = undefined)))
    }
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#host.nats.status()) {
      if (type !== 'reconnect') continue
      this.#isDue = true
      // What is under way is ended also where no call follows. One that follows looks again where this fails.
      this.looked().catch(() => {})
    }
  }

  async #look(): Promise<void> {
    const { nats, log } = this.#host
    this.#isDue = false
    try {
      for (const last of this.#last.values()) {
        if (await this.#isThere(last)) continue
        const problem =
          'was put back to an earlier state by its server: open it again, which goes on from there'
        this.#failure = new LogServerError(log, problem)
        await nats.close()
        return
      }
    } catch (error) {
      this.#isDue = true
      throw error
    }
  }

  async #isThere({ stream, sequence, subject, fields }: Acknowledged): Promise<boolean> {
    const { jsm } = this.#host
    const { state } = await patiently(this.#host, () => jsm.streams.info(stream))
    if (state.last_seq < sequence) return false
    const found = await patiently(this.#host, () => jsm.streams.getMessage(stream, { seq: sequence }))
    // It may have been deleted since.
    if (found === null) return true
    return (
      found.subject === subject &&
      Object.entries(fields).every(([name, value]) => found.header.get(name) === value)
    )
  }
}
