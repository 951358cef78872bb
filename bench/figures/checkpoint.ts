import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises'
import { createClient, openCheckpoint } from 'rivulet'
import type { Checkpoint } from 'rivulet'
import { deliver, ofType } from 'rivulet/operators'
import { sqliteCheckpointStore } from 'rivulet/state/sqlite'
import { count, lastValueFrom } from 'rxjs'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { alternately, perSecond } from '../rounds.ts'
import type { Comparison } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 6_000
const BYTES = 400
const CONCURRENCY = 16

/**
 * Runs a second from `client.watch` over one group to `deliver` at concurrency 16, with a checkpoint in an SQLite file, a
 * new one each time, against the very same without a checkpoint. The handler waits for a timer of a millisecond, as little as
 * a call to another machine takes. In the details stands the same with a handler that is done after one turn of the event
 * loop: then hardly anything is measured but what the checkpoint takes of the processor.
 */
export const measure: Measure = async () => {
  await using server = await startServer('watched-groups')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const group = `${EVENTS}x${BYTES}`
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-bench-'))
  let files = 0

  const handled = async (handler: () => Promise<unknown>, checkpoint?: Checkpoint) => {
    const config = checkpoint === undefined ? {} : { checkpoint }
    const events = client.watch({ taskGroups: [group], ...config })
    const delivery = deliver(handler, { concurrency: CONCURRENCY, ...config })
    const got = await lastValueFrom(events.pipe(ofType('task_run.state'), delivery, count()))
    if (got !== EVENTS) throw new Error(`${got} runs were handled, ${EVENTS} were to be`)
  }
  const checkpointed = async (handler: () => Promise<unknown>) => {
    files += 1
    const file = join(folder, `${files}.db`)
    const checkpoint = await openCheckpoint(sqliteCheckpointStore(file))
    const rate = await perSecond(EVENTS, () => handled(handler, checkpoint))
    await checkpoint.close()
    const saved = savedIn(file)
    if (saved !== EVENTS) throw new Error(`${saved} runs are saved as handled, ${EVENTS} were to be`)
    return rate
  }
  const compare = (handler: () => Promise<unknown>): Promise<Comparison> =>
    alternately(
      () => checkpointed(handler),
      () => perSecond(EVENTS, () => handled(handler)),
    )

  try {
    const { ratio, ...details } = await compare(() => sleep(1))
    const oneTurn = await compare(() => turn())
    return [
      result(
        'checkpointed-deliver',
        ratio,
        { atLeast: 0.9 },
        {
          ...details,
          oneTurnHandler: rounded(oneTurn.ratio),
          oneTurnOurs: oneTurn.ours,
          oneTurnTheirs: oneTurn.theirs,
          unit: 'events/s',
        },
      ),
    ]
  } finally {
    await rm(folder, { recursive: true })
  }
}

function savedIn(file: string): number {
  using database = new DatabaseSync(file)
  return Number(database.prepare('SELECT count(*) AS rows FROM rivulet_checkpoint_handled').get()?.['rows'])
}
