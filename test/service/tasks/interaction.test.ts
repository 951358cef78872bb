import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { TaskRun } from '../../../src/protocol/index.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { type Caller, documentFolder, HeldProcessor, running, temporaryFolder } from '../running.ts'

/** Creates a run, and returns it. */
async function create({ post }: Caller, input: unknown, previous?: string): Promise<TaskRun> {
  const body = {
    input,
    processor: 'base',
    ...(previous !== undefined && { previous_interaction_id: previous }),
  }
  return (await post<TaskRun>('/v1/tasks/runs', body)).body
}

describe('a run that continues an interaction', () => {
  it('gets the earlier questions and answers, oldest first', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const first = await create(caller, 'one')
    ;(await processor.next()).complete()
    const second = await create(caller, { topic: 'two' }, first.interaction_id)
    const run = await processor.next()
    run.complete()
    await create(caller, 'three', second.interaction_id)

    const { task } = await processor.next()

    expect(run.task.context).toEqual([{ question: 'one', answer: 'Answer to one' }])
    expect(task.context).toEqual([
      { question: 'one', answer: 'Answer to one' },
      { question: '{"topic":"two"}', answer: 'Answer to {"topic":"two"}' },
    ])
  })

  it('waits for an earlier run that is active, while others are executed', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor, concurrency: 4 })
    const first = await create(caller, 'one')
    const earlier = await processor.next()
    await create(caller, 'two', first.interaction_id)
    await create(caller, 'three')

    const other = await processor.next()
    const waiting = processor.waiting
    earlier.complete()
    const followUp = await processor.next()

    expect([other.task.input.input, waiting, followUp.task.input.input]).toEqual(['three', 0, 'two'])
    expect(followUp.task.context).toEqual([{ question: 'one', answer: 'Answer to one' }])
  })

  it('gets the question of an earlier run that failed, without an answer', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const first = await create(caller, 'one')
    ;(await processor.next()).fail('no luck')
    await create(caller, 'two', first.interaction_id)

    const { task } = await processor.next()

    expect(task.context).toEqual([{ question: 'one', answer: '' }])
  })

  it('still gets them after a restart', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const before = await running({ docs, data })
    const first = await create(before, 'one')
    await before.get(`/v1/tasks/runs/${first.run_id}/result`)
    await before.service.close()

    const processor = new HeldProcessor()
    const after = await running({ docs, data, processor })
    await create(after, 'two', first.interaction_id)

    expect((await processor.next()).task.context).toEqual([{ question: 'one', answer: 'Answer to one' }])
  })

  it('gets the turn of a run that a version without interactions has stored', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const before = await running({ docs, data })
    const first = await create(before, 'one')
    await before.get(`/v1/tasks/runs/${first.run_id}/result`)
    await before.service.close()
    const database = openDatabase(data)
    database.exec('DROP TABLE interactions')
    database.close()

    const processor = new HeldProcessor()
    const after = await running({ docs, data, processor })
    await create(after, 'two', first.interaction_id)

    expect((await processor.next()).task.context).toEqual([{ question: 'one', answer: 'Answer to one' }])
  })

  it('is refused if the interaction is unknown, alone and in a group', async () => {
    const { group, post } = await running()
    const unknown = { input: 'x', processor: 'base', previous_interaction_id: 'intr_unknown' }
    const alone = await post('/v1/tasks/runs', unknown)
    const grouped = await post<{ detail: unknown }>(`/v1/tasks/groups/${await group()}/runs`, {
      inputs: [{ input: 'y' }, unknown],
    })

    expect([alone.status, grouped.status]).toEqual([422, 422])
    expect(alone.body.error.message).toContain(
      'previous_interaction_id: There is no interaction with the id intr_unknown',
    )
    expect(grouped.body.detail).toMatchObject([{ loc: ['body', 'inputs', '1', 'previous_interaction_id'] }])
  })
})
