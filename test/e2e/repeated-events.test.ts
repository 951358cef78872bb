import { memoryStore, openLog } from 'rivulet/log'
import type { Fault } from 'rivulet/service'
import { lastValueFrom, take } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { entriesOf } from '../log/entries.ts'
import { withoutReceived } from '../operators/events.ts'
import { all, research } from './research.ts'

const QUESTIONS = ['one', 'two', 'three', 'four', 'five', 'six']

const DROPS: readonly Fault[] = [
  { kind: 'cut', after: 4, times: 3 },
  { kind: 'cut', after: 2, times: 1 },
  { kind: 'cut', at: 'line', after: 4 },
  { kind: 'close', after: 4 },
  { kind: 'close', after: 3, times: 2 },
  { kind: 'malformed', after: 4, times: 2 },
]

describe.each(['events', 'runs'] as const)('a stream of %s whose service repeats events', (stream) => {
  it.each(DROPS.flatMap((drop) => [1, 2, 3].map((count) => [count, drop] as const)))(
    'by %i on resumption emits all, in order, and then completes, under %j',
    async (count, drop) => {
      const { client, service, group } = await research()
      const id = await group(...QUESTIONS)
      const whole = await all(client.taskGroups[stream](id))
      service.faults.add({ kind: 'repeat-events', count })
      service.faults.add(drop)

      const emitted = await all(client.taskGroups[stream](id))

      expect(service.faults.struck['repeat-events']).toBeGreaterThan(0)
      const first = new Map(emitted.map((event) => [event.cursor, event]))
      expect(withoutReceived([...first.values()])).toEqual(withoutReceived(whole))
    },
  )
})

describe('log.record over a service that repeats events', () => {
  it('records each run once, across a disconnect and a restart', async () => {
    const { client, service, group } = await research()
    const id = await group(...QUESTIONS)
    service.faults.add({ kind: 'repeat-events', count: 3 })
    service.faults.add({ kind: 'close', after: 4 })
    await using log = await openLog(memoryStore())

    const stopped = log.record({ client, taskGroups: [id] })
    await lastValueFrom(log.consume('two runs', { types: ['task_run.state'] }).pipe(take(2)))
    await stopped.stop()
    await log.record({ client, taskGroups: [id] }).done

    const recorded = (await entriesOf(log)).flatMap((entry) =>
      entry.type === 'task_run.state' ? [entry.data.run.run_id] : [],
    )
    const runs = service.records().runs.map(({ run_id }) => run_id)
    expect(recorded.toSorted()).toEqual(runs.toSorted())
  })
})
