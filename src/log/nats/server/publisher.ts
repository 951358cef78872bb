import { JetStreamApiError, JetStreamError } from '@nats-io/jetstream'
import { createInbox, errors, headers } from '@nats-io/transport-node'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { isObject, parseJson } from '../../../protocol/json.ts'
import type { Seen } from './continuity.ts'

/**
 * The fields that the server reads: the unique id of a message, the id of the message directly before, the number of that message, and
 * the instruction to delete earlier ones.
 */
export const MESSAGE_ID = 'Nats-Msg-Id'
export const ROLLUP = 'Nats-Rollup'
export const LAST_ID = 'Nats-Expected-Last-Msg-Id'
export const LAST_NUMBER = 'Nats-Expected-Last-Sequence'

/** A message for a stream. */
export interface StreamPublication {
  readonly subject: string
  readonly payload: string | Uint8Array
  /** Values are ASCII. Default: none. */
  readonly fields?: Readonly<Record<string, string>>
}

/** Acknowledgement of a message by the server. */
export interface Acknowledgement {
  readonly sequence: number
  /** Whether the server already had a message with this id, within its window for duplicates. */
  readonly isDuplicate: boolean
}

interface UnacknowledgedMessage {
  readonly subject: string
  readonly fields: Readonly<Record<string, string>>
  /** Time of sending, by `performance.now`. */
  readonly sent: number
  readonly resolve: (acknowledgement: Acknowledgement) => void
  readonly reject: (error: unknown) => void
}

const decoder = new TextDecoder()

/**
 * Publishes messages to streams, any number at once. All acknowledgements have one subscription and one timer: where hundreds of
 * messages are under way, those of the client for each of them take most of the time.
 */
export class Publisher {
  readonly #nats: NatsConnection
  readonly #timeout: number
  readonly #inbox: string
  readonly #onAcknowledged: (message: Seen) => void
  /** Messages that are not acknowledged, in the order in which they were sent. */
  readonly #waiting = new Map<string, UnacknowledgedMessage>()
  #count = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * @param timeout Timeout of an acknowledgement, in ms.
   * @param onAcknowledged Called for each message that is stored.
   */
  constructor(
    nats: NatsConnection,
    timeout: number,
    inboxPrefix: string | undefined,
    onAcknowledged: (message: Seen) => void = () => {},
  ) {
    this.#nats = nats
    this.#onAcknowledged = onAcknowledged
    this.#timeout = timeout
    this.#inbox = `${createInbox(inboxPrefix)}.`
    const subscription = nats.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        if (error === null) this.#acknowledge(message)
        else this.#rejectAll(error)
      },
    })
    void subscription.closed.then(() => this.#rejectAll(new errors.ClosedConnectionError()))
    void this.#noticeRefusals()
  }

  /**
   * Publishes a message. Messages that are published directly afterwards arrive after it.
   *
   * Rejects with the client's error: a JetStreamApiError if the server refuses the message, and a TimeoutError if it is unknown whether
   * the server has it.
   */
  publish({ subject, payload, fields = {} }: StreamPublication): Promise<Acknowledgement> {
    const own = headers()
    for (const name in fields) own.append(name, fields[name] ?? '')
    return new Promise((resolve, reject) => {
      this.#count += 1
      const token = String(this.#count)
      this.#nats.publish(subject, payload, { headers: own, reply: this.#inbox + token })
      this.#waiting.set(token, { subject, fields, sent: performance.now(), resolve, reject })
      this.#timer ??= setTimeout(() => this.#expire(), this.#timeout)
    })
  }

  #acknowledge(message: Msg): void {
    const waiting = this.#take(message.subject.slice(this.#inbox.length))
    if (waiting === undefined) return
    const { data } = message
    if (data.length === 0 && message.headers?.code === 503) {
      waiting.reject(new errors.NoRespondersError(waiting.subject))
      return
    }
    const answer = parseJson(decoder.decode(data))
    const { stream, seq, duplicate, error } = isObject(answer) ? answer : {}
    if (isApiError(error)) waiting.reject(new JetStreamApiError(error))
    else if (typeof stream === 'string' && typeof seq === 'number' && seq > 0) {
      const { subject, fields } = waiting
      const isDuplicate = duplicate === true
      if (!isDuplicate) this.#onAcknowledged({ stream, sequence: seq, subject, fields })
      waiting.resolve({ sequence: seq, isDuplicate })
    } else waiting.reject(new JetStreamError('invalid acknowledgement'))
  }

  #take(token: string): UnacknowledgedMessage | undefined {
    const waiting = this.#waiting.get(token)
    this.#waiting.delete(token)
    if (this.#waiting.size === 0) {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    return waiting
  }

  /** Gives up messages whose timeout is over. */
  #expire(): void {
    this.#timer = undefined
    const now = performance.now()
    for (const [token, { sent, reject }] of this.#waiting) {
      const rest = sent + this.#timeout - now
      if (rest > 0) {
        this.#timer = setTimeout(() => this.#expire(), rest)
        return
      }
      this.#waiting.delete(token)
      reject(new errors.TimeoutError())
    }
  }

  #rejectAll(error: unknown): void {
    for (const [token, { reject }] of this.#waiting) {
      this.#take(token)
      reject(error)
    }
  }

  /** Rejects messages that the user may not publish, since they get no acknowledgement. */
  async #noticeRefusals(): Promise<void> {
    for await (const status of this.#nats.status()) {
      if (status.type !== 'error' || !(status.error instanceof errors.PermissionViolationError)) continue
      const { operation, subject } = status.error
      if (operation !== 'publish') continue
      for (const [token, waiting] of this.#waiting) {
        if (waiting.subject !== subject) continue
        this.#take(token)
        waiting.reject(status.error)
      }
    }
  }
}

function isApiError(value: unknown): value is ConstructorParameters<typeof JetStreamApiError>[0] {
  return isObject(value) && typeof value['err_code'] === 'number' && typeof value['code'] === 'number'
}
