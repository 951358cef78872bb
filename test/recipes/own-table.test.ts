import { createClient } from 'rivulet'
import type { StreamItem } from 'rivulet'
import { createResearchService } from 'rivulet/service'
import { takeWhile } from 'rxjs'
import { expect, it } from 'vitest'

it('stores each event once, over a restart', async () => {
  await using service = await createResearchService({ docs: 'docs' })
  const client = createClient({ baseUrl: await service.listen(), apiKey: service.apiKey })
  const { taskgroup_id } = await client.taskGroups.create()
  const inputs = ['What is a tide?', 'What is a delta?'].map((input) => ({ input, processor: 'base' }))
  await client.taskGroups.addRuns(taskgroup_id, { inputs })

  // In place of two tables of a database, which are written in one transaction.
  const events: string[] = []
  const positions = new Map<string, string>()
  const save = ({ stream, event, position }: StreamItem) => {
    if (event !== undefined) events.push(event.id)
    if (position !== undefined) positions.set(stream.name, position.text())
  }
  const items = client.watch.positioned({
    taskGroups: [taskgroup_id],
    from: ({ name }) => positions.get(name),
  })

  const untilFirst = takeWhile((item: StreamItem) => (save(item), item.event === undefined))
  await items.pipe(untilFirst).forEach(() => {})
  await items.forEach(save)
  expect(events.length).toBeGreaterThanOrEqual(3)
  expect(new Set(events).size).toBe(events.length)
})
