import type { Connection } from './connection.ts'
import { retryTransient } from './retry-transient.ts'

/** Deletes a message, also in the server's files. Without effect for one that is gone. */
export async function eraseMessage(connection: Connection, stream: string, sequence: number): Promise<void> {
  const { jsm } = connection
  await retryTransient(connection, async () => {
    if ((await jsm.streams.getMessage(stream, { seq: sequence })) === null) return
    await jsm.streams.deleteMessage(stream, sequence, true)
  })
}
