import { describe, expect, it, onTestFinished } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { framesOf, NO_EVENTS } from '../../../src/service/http/event-batch.ts'
import { newRun } from '../../../src/service/tasks/run-request.ts'
import { TaskStore } from '../../../src/service/tasks/task-store.ts'
import { answerTo } from '../running.ts'

function openStore() {
  const database = openDatabase(':memory:')
  onTestFinished(() => database.close())
  return { database, store: new TaskStore(database, new ManualClock(), { post() {} }) }
}

const CREDENTIAL = 'Bearer of-the-tool-server'
const servers = [
  { type: 'url' as const, url: 'https://tools.example.com', name: 'tools', headers: { a: CREDENTIAL } },
]

describe('the credentials for a run’s tool servers', () => {
  it.each(['completed', 'failed'] as const)(
    'are there when it is carried out, and gone once it has %s',
    (status) => {
      const { database, store } = openStore()
      const { run_id } = store.addRun(newRun({ input: 'one', mcp_servers: servers }).run)
      const task = store.claim()
      const ending =
        status === 'completed'
          ? { status, output: answerTo('one').output, warnings: [] }
          : { status, error: { ref_id: 'ref', message: 'no luck', details: null } }
      store.finish(run_id, ending)

      expect(task?.input.mcp_servers).toEqual(servers)
      expect(store.run(run_id)?.status).toBe(status)
      expect(JSON.stringify(database.prepare('SELECT * FROM task_runs').all())).not.toContain(CREDENTIAL)
    },
  )
})

describe('the log of a group, narrowed to a status', () => {
  it('is not read again where it was found to hold nothing', () => {
    const { store } = openStore()
    const { taskgroup_id: group } = store.createGroup(undefined)
    store.addRuns(
      group,
      ['one', 'two', 'three'].map((input) => newRun({ input }).run),
    )
    const finish = (status: 'completed' | 'failed') => {
      const run = store.claim()
      if (run === undefined) throw new Error('no run is queued')
      if (status === 'failed') {
        store.finish(run.run_id, { status, error: { ref_id: 'ref', message: 'no luck', details: null } })
      } else {
        store.finish(run.run_id, { status, output: answerTo('').output, warnings: [] })
      }
    }
    finish('completed')
    finish('completed')
    const empty = store.log.read(group, 'runs', 0, { status: 'failed' })
    finish('failed')
    const found = store.log.read(group, 'runs', empty.position, { status: 'failed' })

    expect(empty).toEqual({ events: NO_EVENTS, position: 2 })
    expect(found.position).toBe(3)
    expect(framesOf(found.events)).toEqual([expect.stringContaining('"failed"')])
  })
})
