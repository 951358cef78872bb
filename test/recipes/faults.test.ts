import { createClient } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import { lastValueFrom, toArray } from 'rxjs'
import { expect, it } from 'vitest'

it('gets every run once when the stream is cut three times', async () => {
  await using service = await createResearchService({
    docs: 'docs',
    faults: [{ kind: 'cut', after: 1, times: 3 }],
  })
  const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey, initialDelay: 0 })
  const { taskgroup_id } = await client.taskGroups.create()
  const inputs = ['a', 'b', 'c', 'd', 'e'].map((input) => ({ input, processor: 'base' }))
  const { run_ids } = await client.taskGroups.addRuns(taskgroup_id, { inputs })

  const events = await lastValueFrom(client.taskGroups.runs(taskgroup_id).pipe(toArray()))

  const ended = events.flatMap((event) => (event.type === 'task_run.state' ? event.data.run.run_id : []))
  expect(ended.toSorted()).toEqual(run_ids.toSorted())
  expect(service.faults.struck).toEqual({ cut: 3 })
})
