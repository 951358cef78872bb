import { nuid } from '@nats-io/transport-node'
import { publishConditionally } from '../server/conditional-publish.ts'
import type { Connection } from '../server/connection.ts'
import { BARRIER } from './entry-message.ts'
import type { MessageTimes } from './entry-message.ts'

/**
 * Publishes a barrier: a message of a source that is no entry, and has a number that no writer can have expected before. Whatever was
 * decided before it is refused after it, also if the messages before it are deleted, and the source looks again as it did.
 *
 * Retention deletes it with the entries around it, and nothing else does: server 2.9 loses count of a subject when a single message was
 * deleted before a purge up to a number, and says then that it has none. An expectation, and what a writer reads first, depend on that.
 *
 * It has the times of a write, since it may be the last message of the log, by which the next writer knows the time.
 *
 * @param expect The number of the last message of the source; 0 for none.
 * @returns The number of the barrier; undefined if the source has another last message.
 */
export function publishBarrier(
  connection: Connection,
  subject: string,
  expect: number,
  { recorded, known }: MessageTimes,
): Promise<number | undefined> {
  return publishConditionally(connection, {
    stream: connection.names.events,
    subject,
    id: `barrier-${nuid.next()}`,
    expect,
    fields: { [BARRIER]: `${recorded} ${known}` },
    payload: '',
  })
}
