import { setTimeout as delay } from 'node:timers/promises'
import { AckPolicy, DeliverPolicy } from '@nats-io/jetstream'
import { createInbox } from '@nats-io/transport-node'
import type { Msg, Subscription } from '@nats-io/transport-node'
import { LogServerError } from '../../errors.ts'
import type { Connection } from './connection.ts'
import { tokenOf } from './continuity.ts'
import { retryTransient } from './retry-transient.ts'

/** A message as a stream has it. */
export interface StreamMessage {
  readonly sequence: number
  readonly subject: string
  /** The payload. Empty if only fields are read. */
  readonly data: Uint8Array
  /** See `tokenOf`. */
  readonly token: string
  /** Number of messages of the same subjects that followed when it was sent. */
  readonly pending: number
  /** The field of this name; an empty text for none. */
  field(name: string): string
}

/** Which messages to read. */
export interface CursorOptions {
  readonly stream: string
  /** Default: all of the stream. */
  readonly subject?: string
  /** Only messages after this number. Default 0, all. */
  readonly after?: number
  /**
   * Only the last message of each subject, for {@link MessageCursor.pull}. Servers lose some that are replaced or deleted while they are
   * read, so compare them with the subjects that the stream has. Default false.
   */
  readonly isLastOnly?: boolean
  /** Whether to leave out the payloads. `Nats-Msg-Size` has their sizes then. Default false. */
  readonly fieldsOnly?: boolean
}

/** Time for which the server keeps the consumer of an unused cursor, in ms. After that, the cursor goes on by the number of its last message. */
const IDLE = 30_000

/**
 * How long nothing may come after a request, in ms: at first, and at most if it is repeated. The server answers at once,
 * whether there is something or not; but if messages were deleted below a place, it may wait for others instead.
 */
const SILENCE = 250
const MAX_SILENCE = 5_000

/** Pause before it is asked again whether there is something, in ms. */
const INTERVAL = 100

/**
 * Reads the messages of a stream in order, as many as are asked for, without waiting for others. It does not notice that a server
 * was restarted, or that a connection was lost: it goes on after the last message that it has.
 *
 * The server's own word that there are no more messages is a hint: a copy may be behind its leader, and servers from 2.10 on also say so
 * where a message was deleted that they were about to send. {@link isComplete} asks the leader.
 */
export class MessageCursor {
  readonly #connection: Connection
  readonly #options: CursorOptions
  #consumer: string | undefined
  /** Subscription to the answers to all of its requests. */
  #subscription: Subscription | undefined
  #requests = 0
  /** Takes the answers to the request in flight. */
  #receive: (answer: Msg | Error) => void = ignore
  /** Number of messages that this consumer has sent. */
  #delivered = 0
  #last: number
  #messages: StreamMessage[] = []

  constructor(connection: Connection, options: CursorOptions) {
    this.#connection = connection
    this.#options = options
    this.#last = options.after ?? 0
  }

  /** The number of the last message. */
  get last(): number {
    return this.#last
  }

  /** The messages that the last {@link pull} has read. */
  get messages(): readonly StreamMessage[] {
    return this.#messages
  }

  /**
   * Reads on: at most `limit` messages, fewer if there are no more or their size together is large. Not to be called
   * again before it has resolved. They are in {@link messages} then: those of many pages stay in memory until a full collection
   * if they are the value of a promise, which took a fifth of a reader's time.
   *
   * @returns Whether there seemed to be no more of them: see {@link isComplete}.
   */
  async pull(limit: number): Promise<boolean> {
    this.#messages = []
    const isEnd = await retryTransient(this.#connection, async (attempt) => {
      try {
        return await this.#pull(limit, Math.min(MAX_SILENCE, SILENCE * 2 ** attempt))
      } catch (error) {
        // The server has mostly forgotten a consumer that was not used: the next attempt has another one.
        this.close()
        throw error
      }
    })
    const last = this.#messages.at(-1)
    const { stream } = this.#options
    if (last !== undefined)
      this.#connection.continuity.saw({ stream, sequence: last.sequence, token: last.token })
    return isEnd
  }

  /** Reads everything that is there, by what the leader of the stream knows, and forgets its place, also if its reader stops. */
  async *all(step = 1_000): AsyncGenerator<StreamMessage, void> {
    try {
      for (let isEnd = true; !isEnd || !(await this.isComplete());) {
        isEnd = await this.pull(step)
        yield* this.#messages
        if (this.#messages.length > 0) continue
        // The server that was asked is behind, or has passed over what the leader has.
        this.close()
        await delay(INTERVAL)
      }
    } finally {
      this.close()
    }
  }

  /** Deletes its consumer at the server. */
  close(): void {
    const consumer = this.#consumer
    this.#consumer = undefined
    this.#subscription?.unsubscribe()
    this.#subscription = undefined
    // Otherwise the server forgets it by itself.
    if (consumer !== undefined && !this.#connection.nats.isClosed()) {
      this.#connection.jsm.consumers.delete(this.#options.stream, consumer).catch(() => {})
    }
  }

  /** Whether the leader of the stream has nothing after the last message. */
  async isComplete(): Promise<boolean> {
    const { jsm } = this.#connection
    const { stream, subject = '>' } = this.#options
    const query = { seq: this.#last + 1, next_by_subj: subject }
    return (await retryTransient(this.#connection, () => jsm.streams.getMessage(stream, query))) === null
  }

  async #pull(limit: number, silence: number): Promise<boolean> {
    if (this.#consumer === undefined) {
      const { stream, subject, fieldsOnly = false, isLastOnly = false } = this.#options
      const { name, num_pending: pending } = await this.#connection.jsm.consumers.add(stream, {
        ack_policy: AckPolicy.None,
        ...(isLastOnly
          ? { deliver_policy: DeliverPolicy.LastPerSubject }
          : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: this.#last + 1 }),
        inactive_threshold: IDLE * 1e6,
        mem_storage: true,
        num_replicas: 1,
        headers_only: fieldsOnly,
        ...(subject !== undefined && { filter_subject: subject }),
      })
      this.#consumer = name
      this.#delivered = 0
      if (pending === 0) return true
    }
    return this.#request(this.#consumer, limit, silence)
  }

  /** The subject of the answers to the next request. */
  #nextInbox(): string {
    this.#subscription ??= this.#subscribe()
    this.#requests += 1
    return this.#subscription.getSubject().replace('*', String(this.#requests))
  }

  #subscribe(): Subscription {
    const { nats, inboxPrefix } = this.#connection
    const subscription = nats.subscribe(`${createInbox(inboxPrefix)}.*`, {
      callback: (error, message) => this.#receive(error ?? message),
    })
    void subscription.closed.then(() => {
      if (this.#subscription === subscription) this.#receive(new Error('the connection was closed'))
    })
    return subscription
  }

  async #request(consumer: string, limit: number, silence: number): Promise<boolean> {
    const { nats, js, log, maxPayload } = this.#connection
    const answered = Promise.withResolvers<boolean>()
    const lost = (problem: string) =>
      answered.reject(new LogServerError(log, `cannot be read: ${problem}`, { retryable: true }))
    const reply = this.#nextInbox()
    let answers = 0
    const timer = setTimeout(() => {
      const before = answers
      // Where the event loop was blocked, answers may be there that were not read yet.
      setImmediate(() => {
        if (answers === before) lost('the server does not answer')
      })
    }, silence)
    this.#receive = (answer) => {
      if (answer instanceof Error) return lost(answer.message)
      answers += 1
      timer.refresh()
      const end = this.#take(answer, reply, limit)
      if (typeof end === 'boolean') answered.resolve(end)
      else if (end !== undefined) lost(end.problem)
    }
    const request = { batch: limit, no_wait: true, max_bytes: 2 * maxPayload }
    try {
      nats.publish(
        `${js.apiPrefix}.CONSUMER.MSG.NEXT.${this.#options.stream}.${consumer}`,
        JSON.stringify(request),
        { reply },
      )
      return await answered.promise
    } catch (error) {
      if (this.#messages.length === 0) throw error
      // The messages before the failure are in order.
      this.close()
      return false
    } finally {
      clearTimeout(timer)
      this.#receive = ignore
    }
  }

  /** Takes an answer to a request. Once all answers have come, returns whether there seem to be no more messages, or the error. */
  #take(raw: Msg, reply: string, limit: number): boolean | { readonly problem: string } | undefined {
    const messages = this.#messages
    const { data } = raw
    const status = data.length === 0 ? (raw.headers?.code ?? 0) : 0
    // No more messages; and after some of them, or if they are too large together.
    if (status >= 400) {
      // Answers an earlier request, which had as many messages as it wanted.
      if (raw.subject !== reply) return undefined
      if (status === 404 || (status === 408 && messages.length > 0)) return true
      if (status === 409 && messages.length > 0) return false
      return { problem: `the server answered with ${status} ${raw.headers?.description ?? ''}` }
    }
    const { streamSequence, deliverySequence, time, pending } = placeOf(raw.reply)
    if (deliverySequence !== this.#delivered + 1) return { problem: 'a message is missing' }
    this.#delivered = deliverySequence
    this.#last = streamSequence
    messages.push(new ReceivedMessage(raw, data, streamSequence, time, pending))
    return messages.length === limit ? pending === 0 : undefined
  }
}

/** A message as the client has received it. */
class ReceivedMessage implements StreamMessage {
  readonly sequence: number
  readonly data: Uint8Array
  readonly pending: number
  readonly #raw: Msg
  readonly #time: string
  #token: string | undefined

  constructor(raw: Msg, data: Uint8Array, sequence: number, time: string, pending: number) {
    this.#raw = raw
    this.#time = time
    this.data = data
    this.sequence = sequence
    this.pending = pending
  }

  get token(): string {
    return (this.#token ??= tokenOf(BigInt(this.#time)))
  }

  /** Subject, which is read only when it is needed. */
  get subject(): string {
    return this.#raw.subject
  }

  field(name: string): string {
    return this.#raw.headers?.get(name) ?? ''
  }
}

function ignore(): void {}

/**
 * Parses the reply subject of a message. Its last tokens are the numbers of the message in the stream and in the consumer, its time, and
 * how many follow. Newer servers have two more tokens before, and one at the end.
 */
function placeOf(reply = '') {
  const tokens = reply.split('.')
  const last = tokens.length === 9 ? 8 : 10
  return {
    streamSequence: Number(tokens[last - 3]),
    deliverySequence: Number(tokens[last - 2]),
    time: tokens[last - 1] ?? '',
    pending: Number(tokens[last]),
  }
}
