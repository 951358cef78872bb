import { setTimeout as delay } from 'node:timers/promises'
import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream'
import { LogServerError } from '../../errors.ts'
import type { Connected } from './retry-transient.ts'
import { deadlinePassed, retryTransient } from './retry-transient.ts'

/** Pause between two checks of a leader that is behind, in ms. */
const INTERVAL = 100

/** Maximum time to wait for a lost connection, in ms. A request that is sent meanwhile is lost, and repeated after twice as long. */
const RECONNECTION = 1_000

/** A message that the server has acknowledged, with its subject and its fields, or one that was read, with its token. */
export type Seen = { readonly stream: string; readonly sequence: number } & (
  | { readonly token: string }
  | { readonly subject: string; readonly fields: Readonly<Record<string, string>> }
)

/** The connection to streams whose server may be restored to an earlier state. */
interface Host extends Connected {
  readonly jsm: JetStreamManager
  /** Whether the streams have copies. */
  readonly isReplicated: boolean
}

/**
 * The token of a message: when the server has stored it, in ns since 1970, in base 36. It is the same on all copies of a stream, stays when
 * the stream is copied and put back, and differs for another message that gets the same number later.
 */
export function tokenOf(nanoseconds: bigint): string {
  return nanoseconds.toString(36)
}

/** The token of a message that was read by its number or subject. */
export function storedToken({ timestamp }: StoredMsg): string {
  // The client's own time has no more than milliseconds.
  const [seconds = '', fraction = ''] = timestamp.replace('Z', '').split('.')
  return tokenOf(BigInt(Date.parse(`${seconds}Z`)) * 1_000_000n + BigInt(fraction.padEnd(9, '0')))
}

/**
 * Notices that a server was restored to an earlier state, from a backup or by a power cut: it has lost messages that it had acknowledged
 * or sent, or has other messages at their numbers. The open log then relies on a state that is gone, and its next write could lose
 * events. So the connection is closed, which ends all calls in flight. A log that is opened again begins with the state of the server,
 * and records again what is missing. The check follows each reconnect, since such a server was restarted.
 *
 * A restored server of a cluster gets the lost messages from the others. So the check asks the leader, which has all messages that were
 * acknowledged or sent.
 */
export class Continuity {
  readonly #host: Host
  /** The last message of each stream. */
  readonly #last = new Map<string, Seen>()
  /** Whether the log has reconnected since the last check. */
  #isDue = false
  #checking: Promise<void> | undefined
  #failure: LogServerError | undefined
  /** Resolves once a lost connection is back. */
  #connected = Promise.withResolvers<void>()

  constructor(host: Host) {
    this.#host = host
    this.#connected.resolve()
    void this.#follow()
  }

  /** Notes a message that was acknowledged or read. */
  saw(message: Seen): void {
    const { stream, sequence } = message
    if ((this.#last.get(stream)?.sequence ?? 0) < sequence) this.#last.set(stream, message)
  }

  /** The reason why the connection was closed; undefined while it is open. */
  get failure(): LogServerError | undefined {
    return this.#failure
  }

  /** Resolves once the streams were checked after the last reconnect. Rejects with a LogServerError if the server does not answer. */
  async verifyAfterReconnect(): Promise<void> {
    await this.#reconnected()
    while (this.#isDue || this.#checking !== undefined) {
      await (this.#checking ??= this.#check().finally(() => (this.#checking = undefined)))
    }
  }

  async #follow(): Promise<void> {
    for await (const { type } of this.#host.nats.status()) {
      if (type === 'disconnect') this.#connected = Promise.withResolvers()
      if (type !== 'reconnect') continue
      this.#connected.resolve()
      this.#isDue = true
      // Calls in flight have to end even if no other call follows. If the check fails, the next call repeats it.
      this.verifyAfterReconnect().catch(() => {})
    }
  }

  /** Waits for a while for a lost connection. */
  async #reconnected(): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, RECONNECTION)
    await Promise.race([this.#connected.promise, late])
    clearTimeout(timer)
  }

  async #check(): Promise<void> {
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

  async #isThere(seen: Seen): Promise<boolean> {
    const { jsm } = this.#host
    const { stream, sequence } = seen
    if (!(await this.#reaches(seen))) return false
    const found = await retryTransient(this.#host, () => jsm.streams.getMessage(stream, { seq: sequence }))
    // It may have been deleted since.
    if (found === null) return true
    if ('token' in seen) return storedToken(found) === seen.token
    const { subject, fields } = seen
    return (
      found.subject === subject &&
      Object.entries(fields).every(([name, value]) => found.header.get(name) === value)
    )
  }

  /**
   * Whether the stream has reached a number. A new leader may not have applied all of its messages yet, and one that was cut off may not
   * know that it is no longer the leader. So messages count as lost once the same leader has stayed at the same number for 30 seconds.
   */
  async #reaches({ stream, sequence }: Seen): Promise<boolean> {
    const { jsm, isReplicated } = this.#host
    let stood = ''
    let since = performance.now()
    for (;;) {
      const { state, cluster } = await retryTransient(this.#host, () => jsm.streams.info(stream))
      if (state.last_seq >= sequence) return true
      if (!isReplicated) return false
      const stands = `${cluster?.leader} ${state.last_seq}`
      if (stands === stood && deadlinePassed(since)) return false
      if (stands !== stood) since = performance.now()
      stood = stands
      await delay(INTERVAL)
    }
  }
}
