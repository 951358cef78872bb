import { describe, expect, it } from 'vitest'
import { firstValueFrom, tap } from 'rxjs'
import { ofType } from 'rivulet/operators'
import { all, HeldRuns, research } from './research.ts'

const names = (count: number) => Array.from({ length: count }, (_, n) => `question ${n}`)

describe('task groups, end to end', () => {
  it('adds more runs than one request takes, in order, and tells of each once', async () => {
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
    const told = events.map((event) => (event.type === 'task_run.state' ? event.data : undefined))
    expect(new Set(told.map((data) => data?.run.run_id)).size).toBe(2_100)
    expect(told.map((data) => data?.input?.input).toSorted()).toEqual(names(2_100).toSorted())
    expect(
      told.every((data) => data?.output?.content === `about ${JSON.stringify(data?.input?.input)}`),
    ).toBe(true)
  })

  it.each(['events', 'runs'] as const)(
    'tells the same %s however often the stream is cut, at any event',
    async (stream) => {
      const { client, service, group, diagnostics } = await research()
      const id = await group(...names(12))
      const whole = await all(client.taskGroups[stream](id))

      for (let after = 0; after < 5; after++) {
        service.faults.add({ kind: 'cut', after, times: 4 })
        const pieced = await all(client.taskGroups[stream](id))
        expect(pieced).toEqual(whole)
        service.faults.clear()
      }

      expect(diagnostics.filter(({ kind }) => kind === 'reconnect').length).toBeGreaterThan(12)
    },
  )

  it('resumes behind every event', async () => {
    const { client, group } = await research()
    const id = await group(...names(4))
    const whole = await all(client.taskGroups.events(id))

    const resumed = await Promise.all(
      whole.map(({ cursor }) => all(client.taskGroups.events(id, { last_event_id: cursor ?? 'none' }))),
    )

    expect(resumed).toEqual(whole.map((_, index) => whole.slice(index + 1)))
  })

  it('begins at the cursors that adding runs gave', async () => {
    const { client, group } = await research()
    const id = await group(...names(3))
    await all(client.taskGroups.events(id))

    const [added] = await all(
      client.taskGroups.addRuns(id, { inputs: [{ input: 'one more', processor: 'base' }] }),
    )
    const runs = await all(client.taskGroups.runs(id, { last_event_id: added?.run_cursor ?? 'none' }))
    const events = await all(client.taskGroups.events(id, { last_event_id: added?.event_cursor ?? 'none' }))

    expect(runs.map(({ id: fact }) => fact)).toEqual([`${added?.run_ids[0]}:completed`])
    expect(events.filter(({ type }) => type === 'task_run.state')).toHaveLength(1)
  })

  it('goes on over the one-hour close while a run is active', async () => {
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

    expect(diagnostics).toEqual([expect.objectContaining({ kind: 'reconnect', cause: undefined, delay: 0 })])
    expect(events.map(({ type }) => type)).toEqual([
      'task_group.status',
      'task_run.state',
      'task_group.status',
    ])
  })

  it('tells only of runs with the status asked for', async () => {
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

  it('completes for a group without runs', async () => {
    const { client, group } = await research()
    const id = await group()

    expect(await all(client.taskGroups.runs(id))).toEqual([])
    expect((await all(client.taskGroups.events(id))).every(({ type }) => type === 'task_group.status')).toBe(
      true,
    )
  })
})
