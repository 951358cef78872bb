import type { StoredMsg } from '@nats-io/jetstream'
import { LogServerError } from '../errors.ts'
import type { Connection } from './connection.ts'
import { MessageCursor } from './message-cursor.ts'
import { patiently } from './patience.ts'

/** The field of the number of the last message that the writer of a message knew of its subject, as the client sends it. */
export const EXPECTED = 'Nats-Expected-Last-Subject-Sequence'

/** The last message of a subject that counts. */
export interface LastMessage {
  readonly message: StoredMsg
  /** The number of the last message at all: the next one has to follow it. */
  readonly end: number
}

/**
 * Whether a message of a subject is the next one after another number.
 *
 * A single server stores a message only where the last one of its subject is as expected. The leader of a stream with copies looks at
 * that before it sends the message to the copies, by what it has stored itself; so of several messages that are sent at the same
 * moment, it takes all. In the order of the stream, the first one of them is next to the one that its writer knew, and counts. The others
 * are without effect: their writers see that, and so does each reader.
 */
export async function isNext(
  connection: Connection,
  stream: string,
  subject: string,
  place: { readonly after: number; readonly sequence: number },
): Promise<boolean> {
  const { after, sequence } = place
  if (!connection.isReplicated || sequence === after + 1) return true
  const { jsm, log } = connection
  return patiently(connection, async () => {
    const query = { seq: after + 1, next_by_subj: subject }
    const next = await jsm.streams.getMessage(stream, query)
    if (next !== null && next.seq <= sequence) return next.seq === sequence
    const { state } = await jsm.streams.info(stream)
    // Deleted by what came after it.
    if (state.last_seq >= sequence) return false
    throw new LogServerError(log, 'has a new leader that is behind', { retryable: true })
  })
}

/** The last message of a subject that counts, by the leader; undefined for none. */
export async function lastMessage(
  connection: Connection,
  stream: string,
  subject: string,
): Promise<LastMessage | undefined> {
  const { jsm } = connection
  for (;;) {
    const found = await patiently(connection, () => jsm.streams.getMessage(stream, { last_by_subj: subject }))
    if (found === null) return undefined
    const after = Number(found.header.get(EXPECTED))
    const end = found.seq
    if (await isNext(connection, stream, subject, { after, sequence: end })) return { message: found, end }
    const last = await lastThatCounts(connection, stream, subject)
    if (last.end === 0) continue
    const query = { seq: last.sequence }
    const message = await patiently(connection, () => jsm.streams.getMessage(stream, query))
    if (message !== null) return { message, end: last.end }
  }
}

/** The number of that message, by all of the subject. The first one counts: what was before it was deleted because of it. */
async function lastThatCounts(connection: Connection, stream: string, subject: string) {
  const cursor = new MessageCursor(connection, { stream, subject, fieldsOnly: true })
  let sequence = 0
  let end = 0
  for await (const message of cursor.all()) {
    if (end === 0 || Number(message.field(EXPECTED)) === end) ({ sequence } = message)
    end = message.sequence
  }
  return { sequence, end }
}
