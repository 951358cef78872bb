import type { StoredMsg } from '@nats-io/jetstream'
import { LogServerError } from '../../errors.ts'
import type { Connection } from './connection.ts'
import { MessageCursor } from './message-cursor.ts'
import { retryTransient } from './retry-transient.ts'
import { MESSAGE_ID } from './publisher.ts'

/** The field, named by the client, with the number of the last message of the subject that the writer knew. */
export const EXPECTED = 'Nats-Expected-Last-Subject-Sequence'

/** The field of the id of a write to a stream with copies. */
export const WRITE_ID = 'Rv-Write'

/**
 * The fields that let the server store a message only if the last one of its subject is as expected, and let its writer recognise it.
 *
 * A stream with copies gets nothing that one of them may refuse after its leader has taken it: no id for the server's window, and not
 * that a subject is empty. Servers before 2.9.21 lose count of such refusals when one was restarted or cut off, and then messages.
 */
export function conditions(
  { isReplicated }: Connection,
  id: string,
  expect: number,
): Readonly<Record<string, string>> {
  if (!isReplicated) return { [MESSAGE_ID]: id, [EXPECTED]: String(expect) }
  return { [WRITE_ID]: id, ...(expect > 0 && { [EXPECTED]: String(expect) }) }
}

/** The id with which a message was written. */
export function writeIdOf(field: (name: string) => string): string {
  return field(WRITE_ID) || field(MESSAGE_ID)
}

/** Whether the message of an entry is without effect. @param before The number of the last message of its source before it; 0 if none is known. */
export function isOvertaken(field: (name: string) => string, before: number): boolean {
  // A single server has checked the expectation.
  return field(WRITE_ID) !== '' && Number(field(EXPECTED)) < before
}

/** The last message of a subject that counts. */
export interface LastMessage {
  readonly message: StoredMsg
  /** The number of the last message, whether it counts or not: the next one has to follow it. */
  readonly end: number
}

/**
 * Whether a message of a subject is the next one after another number.
 *
 * A single server stores a message only if the last one of its subject is as expected. The leader of a stream with copies looks at
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
  return !connection.isReplicated || (await isNextAt(connection, stream, subject, place))
}

/** The same as {@link isNext}, without regard to whether the stream has copies now. */
export async function isNextAt(
  connection: Connection,
  stream: string,
  subject: string,
  { after, sequence }: { readonly after: number; readonly sequence: number },
): Promise<boolean> {
  if (sequence === after + 1) return true
  const { jsm, log } = connection
  return retryTransient(connection, async () => {
    const query = { seq: after + 1, next_by_subj: subject }
    const next = await jsm.streams.getMessage(stream, query)
    if (next !== null && next.seq <= sequence) return next.seq === sequence
    const { state } = await jsm.streams.info(stream)
    // A later message has deleted it.
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
    const found = await retryTransient(connection, () =>
      jsm.streams.getMessage(stream, { last_by_subj: subject }),
    )
    if (found === null) return undefined
    const after = Number(found.header.get(EXPECTED))
    const end = found.seq
    if (await isNext(connection, stream, subject, { after, sequence: end })) return { message: found, end }
    const last = await lastThatCounts(connection, stream, subject)
    if (last.end === 0) continue
    const query = { seq: last.sequence }
    const message = await retryTransient(connection, () => jsm.streams.getMessage(stream, query))
    if (message !== null) return { message, end: last.end }
  }
}

/** The number of the last message that counts, from all messages of the subject. The first one counts: it has replaced those before it. */
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
