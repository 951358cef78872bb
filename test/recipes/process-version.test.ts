import { createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { createResearchService } from 'rivulet/service'
import { filter, firstValueFrom } from 'rxjs'
import { expect, it } from 'vitest'

/** Version 1: the number of runs of each status. */
const countRuns = (log: EventLog) =>
  log.process('runs', {
    version: 1,
    types: ['task_run.state'],
    key: ({ data }) => data.run.status,
    init: () => 0,
    event: (count, _entry, context) => context.set(count + 1),
  })

/** Version 2: also the latest run, which the states of version 1 do not have. */
const countRunsAndLatest = (log: EventLog) =>
  log.process('runs', {
    version: 2,
    types: ['task_run.state'],
    key: ({ data }) => data.run.status,
    init: () => ({ count: 0, latest: '' }),
    event: ({ count }, { data }, context) => context.set({ count: count + 1, latest: data.run.run_id }),
    // Or `rebuild: true`, as long as the log has its beginning.
    migrate: (count) => ({ count: Number(count), latest: '' }),
  })

it('keeps the counts of version 1 in version 2', async () => {
  await using service = await createResearchService({ docs: 'docs' })
  const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
  await using log = await openLog(memoryStore())
  const record = async (...questions: string[]) => {
    const { taskgroup_id } = await client.taskGroups.create()
    const inputs = questions.map((input) => ({ input, processor: 'base' }))
    const { run_ids } = await client.taskGroups.addRuns(taskgroup_id, { inputs })
    await log.record({ client, taskGroups: [taskgroup_id] }).done
    return run_ids
  }

  await record('What is a tide?', 'What is a river?')
  const first = countRuns(log)
  await firstValueFrom(first.changes().pipe(filter(({ state }) => state === 2)))
  await first.stop()

  const [latest] = await record('What is a brook?')
  const second = countRunsAndLatest(log)
  const { state } = await firstValueFrom(second.changes().pipe(filter((change) => change.state?.count === 3)))

  expect(state).toEqual({ count: 3, latest })
})
