import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { createClient, openCheckpoint } from 'rivulet'
import type { Checkpoint } from 'rivulet'
import { deliver, ofType } from 'rivulet/operators'
import { sqliteCheckpointStore } from 'rivulet/state/sqlite'
import { count, lastValueFrom } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 6_000
const BYTES = 400
const CONCURRENCY = 16

/**
 * `checkpointed-deliver`: runs per second from `client.watch` of one group to `deliver` at concurrency 16, with a checkpoint in a
 * new SQLite file, against the same without a checkpoint. The handler waits for a timer of 1 ms.
 * `checkpointed-deliver-one-turn`: the same with a handler of one turn of the event loop.
 */
export const measure: Measure = async (folder) => {
  await using server = await startServer('watched-groups')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const group = `${EVENTS}x${BYTES}`
  let files = 0

  const handled = async (handler: () => Promise<unknown>, checkpoint?: Checkpoint) => {
    const config = checkpoint === undefined ? {} : { checkpoint }
    const events = client.watch({ taskGroups: [group], ...config })
    const delivery = deliver(handler, { concurrency: CONCURRENCY, ...config })
    expectCount(await lastValueFrom(events.pipe(ofType('task_run.state'), delivery, count())), EVENTS, 'runs')
  }
  const checkpointed = async (handler: () => Promise<unknown>) => {
    files += 1
    const file = join(folder, `${files}.db`)
    const checkpoint = await openCheckpoint(sqliteCheckpointStore(file))
    const rate = await perSecond(EVENTS, () => handled(handler, checkpoint))
    await checkpoint.close()
    expectCount(savedIn(file), EVENTS, 'saved runs')
    return rate
  }
  const measured = async (name: string, handler: () => Promise<unknown>) => {
    const { ratio, ...details } = await alternately(
      () => checkpointed(handler),
      () => perSecond(EVENTS, () => handled(handler)),
    )
    return result(name, ratio, { atLeast: 0.9 }, { ...details, unit: 'events/s' })
  }
  return [
    await measured('checkpointed-deliver', () => sleep(1)),
    await measured('checkpointed-deliver-one-turn', () => turn()),
  ]
}

function savedIn(file: string): number {
  using database = new DatabaseSync(file)
  return Number(database.prepare('SELECT count(*) AS rows FROM rivulet_checkpoint_handled').get()?.['rows'])
}
