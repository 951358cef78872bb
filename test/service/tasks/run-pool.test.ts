import { describe, expect, it, onTestFinished } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { RunPool } from '../../../src/service/tasks/run-pool.ts'
import { Interactions } from '../../../src/service/interactions/interactions.ts'
import { Memories } from '../../../src/service/memory/memories.ts'
import { ProcessorSlots } from '../../../src/service/processor/slots.ts'
import { TaskStore } from '../../../src/service/tasks/task-store.ts'
import { answerTo } from '../running.ts'
import { plainRun } from './plain-run.ts'

/** A pool over a database that refuses this status of runs until it is repaired. */
function startPool(refused: 'running' | 'completed') {
  const database = openDatabase(':memory:')
  const clock = new ManualClock()
  const store = new TaskStore({
    database,
    clock,
    outbox: { post() {} },
    interactions: new Interactions(database),
    memories: new Memories(database, clock),
  })
  database.exec(`
    CREATE TRIGGER refuse BEFORE UPDATE OF status ON task_runs WHEN new.status = '${refused}' BEGIN
      SELECT RAISE(ABORT, 'the disk is full');
    END
  `)
  const failures: unknown[] = []
  const failed = Promise.withResolvers<void>()
  let carriedOut = 0
  const pool = new RunPool({
    store,
    clock,
    slots: new ProcessorSlots(1),
    processor: {
      async run({ input }) {
        carriedOut += 1
        return answerTo(input.input)
      },
    },
    onError: (error) => {
      failures.push(error)
      failed.resolve()
    },
  })
  pool.start()
  onTestFinished(() => {
    pool.stop()
    database.close()
  })
  return {
    store,
    pool,
    clock,
    failures,
    failed: failed.promise,
    repair: () => database.exec('DROP TRIGGER refuse'),
    carriedOut: () => carriedOut,
  }
}

function ended(store: TaskStore, runId: string): Promise<void> {
  return new Promise((resolve) => {
    store.changes.on(runId, () => {
      if (store.run(runId)?.is_active === false) resolve()
    })
  })
}

describe('when the database fails', () => {
  it.each([
    ['to give out a run', 'running'],
    ['to store how a run ended', 'completed'],
  ] as const)('%s, that is tried again after 5 s, and the run is carried out once', async (_, refused) => {
    const { store, pool, clock, failures, failed, repair, carriedOut } = startPool(refused)
    const { run_id } = store.addRun(plainRun({ input: 'one' }))
    pool.wake()
    await failed
    repair()
    const end = ended(store, run_id)
    clock.advance(5_000)
    await end

    expect(store.run(run_id)?.status).toBe('completed')
    expect(carriedOut()).toBe(1)
    expect(failures).toEqual([expect.objectContaining({ message: 'the disk is full' })])
  })

  it('permanently, no retry is left when the pool stops', async () => {
    const { store, pool, clock, failed } = startPool('completed')
    const { run_id } = store.addRun(plainRun({ input: 'one' }))
    pool.wake()
    await failed
    pool.stop()

    expect(clock.next).toBeUndefined()
    expect(store.run(run_id)?.status).toBe('queued')
  })
})
