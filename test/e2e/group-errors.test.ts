import { describe, expect, it } from 'vitest'
import { all, HeldRuns, research } from './research.ts'

describe('errors of a group, end to end', () => {
  it('emits what is known after each failed run, and at last all errors of the group, the most frequent first', async () => {
    const { client, clock } = await research({
      concurrency: 1,
      processor: {
        run: async ({ input }) => {
          clock.advance(1_000)
          if (input.input === 'good') return { output: { type: 'text', content: 'yes', basis: [] } }
          throw new Error(String(input.input))
        },
      },
    })
    const start = clock.now()
    const at = (second: number) => new Date(start + second * 1_000).toISOString()
    const { taskgroup_id: id } = await client.taskGroups.create()
    const messages = ['no space', 'page trun_0123456789ab is gone', 'good', 'page trun_ba9876543210 is gone']
    const { run_ids } = await client.taskGroups.addRuns(id, { inputs: messages.map((input) => ({ input })) })

    const emitted = await all(client.taskGroups.errors(id))

    expect(emitted.map(({ failed, errors }) => [failed, errors.length])).toEqual([
      [1, 1],
      [2, 2],
      [3, 2],
    ])
    expect(await client.taskGroups.errors(id)).toEqual({
      failed: 3,
      errors: [
        {
          kind: null,
          message: 'page … is gone',
          count: 2,
          first: at(2),
          last: at(4),
          run_ids: [run_ids[1], run_ids[3]],
        },
        { kind: null, message: 'no space', count: 1, first: at(1), last: at(1), run_ids: [run_ids[0]] },
      ],
      others: 0,
    })
  })

  it('emits while the group is active, and once at the end if no run failed', async () => {
    const held = new HeldRuns()
    const { client } = await research({
      processor: {
        run: async (task, signal) => {
          if (task.input.input === 'bad') throw new Error('bad')
          return held.run(task, signal)
        },
      },
    })
    const { taskgroup_id: id } = await client.taskGroups.create()
    await client.taskGroups.addRuns(id, { inputs: [{ input: 'bad' }, { input: 'slow' }] })
    for await (const { failed } of client.taskGroups.errors(id)) {
      expect(failed).toBe(1)
      break
    }
    held.release()
    const { taskgroup_id: good } = await client.taskGroups.create()
    await client.taskGroups.addRuns(good, { inputs: [{ input: 'fine' }] })

    expect(await all(client.taskGroups.errors(good))).toEqual([{ failed: 0, errors: [], others: 0 }])
  })
})
