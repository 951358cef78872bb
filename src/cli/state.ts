import { openCheckpoint } from 'rivulet'
import type { Checkpoint } from 'rivulet'
import type { Inbox } from 'rivulet/webhooks'

/** Loaded where it is needed: without SQLite the command starts sooner. */
const sqlite = () => import('rivulet/state/sqlite')

/** Opens the place of a pipeline in a state file; disposing of it saves it. */
export async function openPlace(
  file: string,
): Promise<{ readonly checkpoint: Checkpoint } & AsyncDisposable> {
  const { sqliteCheckpointStore } = await sqlite()
  const checkpoint = await openCheckpoint(sqliteCheckpointStore(file))
  return { checkpoint, [Symbol.asyncDispose]: () => checkpoint.close() }
}

/** Opens the inbox in a state file, in which webhooks wait until they are handled. */
export async function openInbox(file: string): Promise<{ readonly inbox: Inbox } & Disposable> {
  const { sqliteInbox } = await sqlite()
  const inbox = sqliteInbox(file)
  return { inbox, [Symbol.dispose]: () => inbox.close() }
}
