import { describe, expect, it, onTestFinished } from 'vitest'
import { firstValueFrom, tap } from 'rxjs'
import { ofType } from 'rivulet/operators'
import { withoutReceived } from '../operators/events.ts'
import { all, HeldRuns, QUIET_SOON, research } from './research.ts'

const names = (count: number) => Array.from({ length: count }, (_, n) => `question ${n}`)

describe('task groups, end to end', () => {
  it('adds more runs than fit one request, in order, and emits each once', async () => {
    const { client, service } = await research()
    const { taskgroup_id } = await firstValueFrom(client.taskGroups.create())
    const inputs = names(2_100).map((input) => ({ input, processor: 'lite' }))

    const answers = await all(client.taskGroups.addRuns(taskgroup_id, { inputs }))
    const events = await all(
      client.taskGroups.runs(taskgroup_id, { include_input: true, include_output: true }),
    )

    expect(answers.map(({ run_ids }) => run_ids.length)).toEqual([1_000, 1_000, 100])
    expect(answers.map(({ run_cursor }) => run_cursor === '')).toEqual([true, false, false])
    expect(service.records().runs.map(({ run_id }) => run_id)).toEqual(
      answers.flatMap(({ run_ids }) => run_ids),
    )
    const emitted = events.map((event) => (event.type === 'task_run.state' ? event.data : undefined))
    expect(new Set(emitted.map((data) => data?.run.run_id)).size).toBe(2_100)
    expect(emitted.map((data) => data?.input?.input).toSorted()).toEqual(names(2_100).toSorted())
    expect(
      emitted.every((data) => data?.output?.content === `about ${JSON.stringify(data?.input?.input)}`),
    ).toBe(true)
  })

  it.each(['events', 'runs'] as const)(
    'emits the same %s however often the stream breaks, at any event',
    async (stream) => {
      const { client, service, group, diagnostics } = await research()
      const id = await group(...names(12))
      const whole = await all(client.taskGroups[stream](id))

      for (let after = 0; after < 5; after++) {
        service.faults.add({ kind: 'cut', after, times: 4 })
        const pieced = await all(client.taskGroups[stream](id))
        expect(withoutReceived(pieced)).toEqual(withoutReceived(whole))
        service.faults.clear()
      }

      expect(diagnostics.filter(({ kind }) => kind === 'reconnect').length).toBeGreaterThan(12)
    },
  )

  it('resumes after every event', async () => {
    const { client, group } = await research({ client: QUIET_SOON })
    const id = await group(...names(4))
    const whole = await all(client.taskGroups.events(id))

    const resumed = await Promise.all(
      whole.map(({ cursor }) => all(client.taskGroups.events(id, { last_event_id: cursor ?? 'none' }))),
    )

    expect(resumed.map(withoutReceived)).toEqual(
      whole.map((_, index) => withoutReceived(whole.slice(index + 1))),
    )
  })

  it('starts at the cursors of the response to adding runs', async () => {
    const { client, group } = await research({ client: QUIET_SOON })
    const id = await group(...names(3))
    await all(client.taskGroups.events(id))

    const [added] = await all(
      client.taskGroups.addRuns(id, { inputs: [{ input: 'one more', processor: 'base' }] }),
    )
    const runs = await all(client.taskGroups.runs(id, { last_event_id: added?.run_cursor ?? 'none' }))
    const events = await all(client.taskGroups.events(id, { last_event_id: added?.event_cursor ?? 'none' }))

    expect(runs.map((event) => event.id)).toEqual([`${added?.run_ids[0]}:completed`])
    expect(events.filter(({ type }) => type === 'task_run.state')).toHaveLength(1)
  })

  it('continues after the one-hour close while a run is active', async () => {
    const processor = new HeldRuns()
    const { client, clock, group, diagnostics } = await research({ processor })
    const id = await group('slow')
    let statuses = 0

    const events = await all(
      client.taskGroups.events(id).pipe(
        tap(({ type }) => {
          if (type === 'task_group.status' && ++statuses === 1) clock.advance(3_600_000)
        }),
        tap({ subscribe: () => client.diagnostics.subscribe(() => processor.release()) }),
      ),
    )

    // The service sends a `retry:` of 20 ms.
    expect(diagnostics).toEqual([expect.objectContaining({ kind: 'reconnect', cause: undefined, delay: 20 })])
    expect(events.map(({ type }) => type)).toEqual([
      'task_group.status',
      'task_run.state',
      'task_group.status',
    ])
  })

  it('emits only runs with the given status', async () => {
    const { client, group } = await research({
      processor: {
        run: async ({ input }) => {
          if (input.input === 'bad') throw new Error('no such thing')
          return { output: { type: 'text', content: 'found', basis: [] } }
        },
      },
    })
    const id = await group('good', 'bad', 'good')

    const failed = await all(client.taskGroups.runs(id, { status: 'failed' }).pipe(ofType('task_run.state')))

    expect(failed.map(({ data }) => data.run.error?.message)).toEqual(['no such thing'])
  })

  it.each(['events', 'runs'] as const)(
    'of a group without runs emits only %s of the runs that are added later, and then completes',
    async (stream) => {
      const { client, group, diagnostics } = await research()
      const id = await group()
      const events = all(client.taskGroups[stream](id).pipe(ofType('task_run.state')))
      await until(() => diagnostics.length >= 3)

      const inputs = [{ input: 'late', processor: 'base' }]
      const [added] = await all(client.taskGroups.addRuns(id, { inputs }))

      expect((await events).map(({ data }) => data.run.run_id)).toEqual(added?.run_ids)
    },
  )

  it.each(['events', 'runs'] as const)(
    'of a group that is followed until it is closed continue with the %s of runs added after it is done',
    async (stream) => {
      const { client, group, diagnostics } = await research()
      const id = await group('early')
      const emitted: string[] = []
      let isComplete = false
      const following = client.taskGroups[stream](id, { until: 'closed' })
        .pipe(ofType('task_run.state'))
        .subscribe({
          next: ({ data }) => emitted.push(data.run.run_id),
          complete: () => (isComplete = true),
        })
      onTestFinished(() => following.unsubscribe())
      await until(() => emitted.length === 1 && diagnostics.length >= 5)

      const inputs = [{ input: 'late', processor: 'base' }]
      const [added] = await all(client.taskGroups.addRuns(id, { inputs }))
      await until(() => emitted.length === 2)

      expect(emitted[1]).toBe(added?.run_ids[0])
      expect(isComplete).toBe(false)
    },
  )

  it('of a watched group that is followed until it is closed do not end the stream', async () => {
    const { client, group, diagnostics } = await research()
    const id = await group('early')
    const emitted: string[] = []
    let isComplete = false
    const watching = client
      .watch({ taskGroups: [{ id, until: 'closed' }] })
      .pipe(ofType('task_run.state'))
      .subscribe({ next: ({ data }) => emitted.push(data.run.run_id), complete: () => (isComplete = true) })
    onTestFinished(() => watching.unsubscribe())
    await until(() => emitted.length === 1 && diagnostics.length >= 5)

    await all(client.taskGroups.addRuns(id, { inputs: [{ input: 'late', processor: 'base' }] }))
    await until(() => emitted.length === 2)

    expect(isComplete).toBe(false)
  })
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}
