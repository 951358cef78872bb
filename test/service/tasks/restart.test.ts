import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { TaskGroup } from '../../../src/protocol/index.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { documentFolder, HeldProcessor, running, temporaryFolder } from '../running.ts'

describe('a service that starts again with its data file', () => {
  it('executes running and queued runs, and none twice', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const processor = new HeldProcessor()
    const before = await running({ docs, data, processor, concurrency: 2 })
    const id = await before.group()
    const { run_ids } = await before.add(id, 'one', 'two', 'three', 'four')
    const stream = await before.stream(`/v1/tasks/groups/${id}/runs`)
    const [first] = [await processor.next(), await processor.next()]
    first.complete()
    const seen = await stream.next()
    await before.service.close()

    const after = await running({ docs, data })
    const cursor = encodeURIComponent(seen?.id ?? 'none')
    const rest = await after.events(`/v1/tasks/groups/${id}/runs?last_event_id=${cursor}`)
    const group = await after.get<TaskGroup>(`/v1/tasks/groups/${id}`)

    expect(seen?.data.run?.run_id).toBe(run_ids[0])
    expect(rest.map(({ data: { run } }) => run?.run_id).toSorted()).toEqual(run_ids.slice(1).toSorted())
    expect(group.body.status).toMatchObject({
      num_task_runs: 4,
      task_run_status_counts: { completed: 4 },
      is_active: false,
    })
    expect(after.service.records().runs.map(({ run_id }) => run_id)).toEqual(run_ids)
  })

  it('executes runs that a crash interrupted', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const before = await running({ docs, data })
    const id = await before.group()
    const { run_ids } = await before.add(id, 'one')
    await before.events(`/v1/tasks/groups/${id}/runs`)
    await before.service.close()
    // The state after a killed process: a run with the status running that is not executed.
    const database = openDatabase(data)
    database.exec(`
      INSERT INTO task_runs (run_id, taskgroup_id, status, processor, input, created_at, modified_at)
      VALUES ('trun_left', '${id}', 'running', 'base', '{"input":"left"}', 0, 0)
    `)
    database.close()

    const after = await running({ docs, data })
    const events = await after.events(`/v1/tasks/groups/${id}/runs`)

    expect(events.map(({ data: { run } }) => run?.run_id)).toEqual([...run_ids, 'trun_left'])
  })

  it('streams the same events as before, with the same ids', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const before = await running({ docs, data })
    const id = await before.group()
    await before.add(id, 'one', 'fail', 'three')
    const streamed = await before.events(`/v1/tasks/groups/${id}/events`)
    await before.service.close()

    const after = await running({ docs, data })
    const again = await after.events(`/v1/tasks/groups/${id}/events`)

    expect(streamed).toHaveLength(7)
    expect(again).toEqual(streamed)
  })

  it('aborts running runs when it closes, and does not store their outcomes', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const processor = new HeldProcessor()
    const { service, group, add } = await running({ docs, data, processor })
    await add(await group(), 'one')
    const run = await processor.next()
    await service.close()
    run.complete()
    const database = openDatabase(data)
    const stored = database.prepare('SELECT status, output FROM task_runs').all()
    database.close()
    expect(run.signal.aborted).toBe(true)
    expect(stored.map(({ status, output }) => [status, output])).toEqual([['queued', null]])
  })
})
