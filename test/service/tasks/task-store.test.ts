import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { framesOf, NO_EVENTS } from '../../../src/http/server-sent-events.ts'
import { Interactions } from '../../../src/service/interactions/interactions.ts'
import { Memories } from '../../../src/service/memory/memories.ts'
import { TaskStore } from '../../../src/service/tasks/task-store.ts'
import { answerTo, temporaryFolder } from '../running.ts'
import { plainRun } from './plain-run.ts'

function storeOf(database: DatabaseSync): TaskStore {
  const clock = new ManualClock()
  const memories = new Memories(database, clock)
  return new TaskStore({
    database,
    clock,
    outbox: { post() {} },
    interactions: new Interactions(database),
    memories,
  })
}

function openStore() {
  const database = openDatabase(':memory:')
  onTestFinished(() => database.close())
  return {
    database,
    store: storeOf(database),
  }
}

const CREDENTIAL = 'Bearer of-the-tool-server'
const servers = [
  { type: 'url' as const, url: 'https://tools.example.com', name: 'tools', headers: { a: CREDENTIAL } },
]

describe('the credentials for a run’s tool servers', () => {
  it.each(['completed', 'failed'] as const)(
    'exist while it is executed, and are deleted once it has %s',
    (status) => {
      const { database, store } = openStore()
      const { run_id } = store.addRun(plainRun({ input: 'one', mcp_servers: servers }))
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

describe('the files of a service', () => {
  it('contain no credential once its run has ended', async () => {
    const folder = await temporaryFolder()
    const database = openDatabase(join(folder, 'service.db'))
    onTestFinished(() => database.close())
    const store = storeOf(database)
    const credential = (index: number) => `credential-${index}-${'x'.repeat(index * 7)}`
    const inputs = Array.from({ length: 400 }, (_, index) => ({
      input: 'one',
      mcp_servers: [
        {
          type: 'url' as const,
          url: 'https://tools.example',
          name: 'tools',
          headers: { a: credential(index) },
        },
      ],
    }))
    const { taskgroup_id: group } = store.createGroup(undefined)
    const { run_ids } = store.addRuns(
      group,
      inputs.map((input) => plainRun(input)),
    )
    for (const _ of run_ids) store.claim()
    // Every third run stays active, between those that end.
    const ended = run_ids.map((id, index) => ({ id, index })).filter(({ index }) => index % 3 !== 0)
    for (const { id } of ended) {
      store.finish(id, { status: 'completed', output: answerTo('one').output, warnings: [] })
    }
    const forgotten = store.forgetCredentials()
    const files = (await readdir(folder)).map((name) => readFileSync(join(folder, name)))
    const found = ended.filter(({ index }) => files.some((bytes) => bytes.includes(`credential-${index}-`)))

    expect(forgotten).toBe(true)
    expect(found).toEqual([])
    expect(files.some((bytes) => bytes.includes('credential-3-'))).toBe(true)
  })

  it('are cleared later if another process reads them', async () => {
    const file = join(await temporaryFolder(), 'service.db')
    const database = openDatabase(file)
    const reader = new DatabaseSync(file)
    onTestFinished(() => (reader.close(), database.close()))
    const store = storeOf(database)
    const { run_id } = store.addRun(plainRun({ input: 'one', mcp_servers: servers }))
    store.claim()
    reader.exec('BEGIN; SELECT * FROM task_runs')
    store.finish(run_id, { status: 'completed', output: answerTo('one').output, warnings: [] })
    const first = store.forgetCredentials()
    reader.exec('COMMIT')

    expect([first, store.forgetCredentials()]).toEqual([false, true])
    expect(readFileSync(`${file}-wal`).includes(CREDENTIAL)).toBe(false)
  })
})

describe('the log of a group, filtered by status', () => {
  it('is not read again where nothing matched', () => {
    const { store } = openStore()
    const { taskgroup_id: group } = store.createGroup(undefined)
    store.addRuns(
      group,
      ['one', 'two', 'three'].map((input) => plainRun({ input })),
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
