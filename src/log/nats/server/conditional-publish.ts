import { JetStreamApiError } from '@nats-io/jetstream'
import type { StoredMsg } from '@nats-io/jetstream'
import type { Connection } from './connection.ts'
import { retryTransient } from './retry-transient.ts'
import { ROLLUP } from './publisher.ts'
import { conditions, isNext, writeIdOf } from './write-order.ts'

/** A message that is stored only if the last message of its subject is as expected. */
export interface ConditionalMessage {
  readonly stream: string
  readonly subject: string
  /**
   * Unique id of the write, so that a repeated write is recognised. Within the server's window for duplicates, another message with the
   * same id is not stored.
   */
  readonly id: string
  /** The number of the last message of the subject; 0 for none. */
  readonly expect: number
  /** The fields besides the payload. Values are ASCII. */
  readonly fields?: Readonly<Record<string, string>>
  readonly payload: string | Uint8Array
  /**
   * Whether the earlier messages of the subject are deleted with it; in a cluster right after it, once it is known to count. Default
   * false.
   */
  readonly isRollup?: boolean
}

/** Error codes of the server's JetStream API. */
const WRONG_LAST_SEQUENCE = 10_071

/**
 * Publishes a message if the last one of its subject is as expected. This is the fence of every write: a writer that
 * was suspended or cut off meanwhile is refused, however long ago its check was.
 *
 * A cluster may store several messages if one was expected. The first one counts: see `write-order.ts`.
 *
 * A write without an answer is repeated. If it was stored the first time, the repetition is refused, since the subject has
 * moved; so the last message decides: the own id means that it is stored. Within the server's window for duplicates the repetition is
 * acknowledged instead; nothing relies on that.
 *
 * @returns The number of the message; undefined if the subject has another last message. Rejects with a LogServerError.
 */
export async function publishConditionally(
  connection: Connection,
  message: ConditionalMessage,
): Promise<number | undefined> {
  const { stream, subject, expect, isRollup = false } = message
  const { jsm, isReplicated } = connection
  const sequence = await publish(connection, message)
  if (sequence === undefined || !isReplicated) return sequence
  if (!(await isNext(connection, stream, subject, { after: expect, sequence }))) return undefined
  // Not before it counts: a write that was overtaken must delete nothing. The next rollup deletes them otherwise.
  if (isRollup) await jsm.streams.purge(stream, { filter: subject, seq: sequence }).catch(() => {})
  return sequence
}

function publish(connection: Connection, message: ConditionalMessage): Promise<number | undefined> {
  const { publisher, jsm, isReplicated } = connection
  const { stream, subject, id, expect, fields = {}, payload, isRollup = false } = message
  const own = {
    ...conditions(connection, id, expect),
    ...(isRollup && !isReplicated && { [ROLLUP]: 'sub' }),
    ...fields,
  }
  const last = () => jsm.streams.getMessage(stream, { last_by_subj: subject })
  const isOwn = ({ header }: StoredMsg) => writeIdOf((name) => header.get(name)) === id
  return retryTransient(connection, async () => {
    try {
      if (isReplicated && expect === 0) {
        const first = await last()
        if (first !== null) return isOwn(first) ? first.seq : undefined
      }
      const { sequence } = await publisher.publish({ subject, payload, fields: own })
      return sequence
    } catch (cause) {
      const isRefused = cause instanceof JetStreamApiError && cause.code === WRONG_LAST_SEQUENCE
      const found = await last().catch((unanswered: unknown) => {
        // Without the last message, it is unknown what was refused: the message, or its repetition.
        throw isRefused ? unanswered : cause
      })
      if (found !== null && isOwn(found)) return found.seq
      if (isRefused) return undefined
      throw cause
    }
  })
}
