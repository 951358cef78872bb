import { createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { createResearchService } from 'rivulet/service'
import { expect, it } from 'vitest'

it('bills a run that ended while the billing service was down', async () => {
  await using service = await createResearchService({ docs: 'docs' })
  const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
  const { taskgroup_id } = await client.taskGroups.create()
  const inputs = [{ input: 'What is a tide?', processor: 'base' }]
  const { run_ids } = await client.taskGroups.addRuns(taskgroup_id, { inputs })
  await using log = await openLog(memoryStore())
  await log.record({ client, taskGroups: [taskgroup_id] }).done
  const options = { types: ['task_run.state'], retries: 0, deadLetters: 'log' } as const

  const failed = Promise.withResolvers<void>()
  const billing = log.consume('billing', options, () => {
    failed.resolve()
    throw new Error('the billing service is down')
  })
  await failed.promise
  await billing.stop()
  const letters = log.deadLetters('billing')
  for await (const { error } of letters.list()) expect(error.message).toBe('the billing service is down')
  expect(await letters.count()).toBe(1)

  await letters.redeliver('all')
  const billed = Promise.withResolvers<string>()
  const mended = log.consume('billing', options, ({ data }) => billed.resolve(data.run.run_id))
  expect(await billed.promise).toBe(run_ids[0])
  await mended.stop()
  expect(await letters.count()).toBe(0)
})
