import { describe, expect, it } from 'vitest'
import { firstValueFrom, take } from 'rxjs'
import { ArgumentError, createClient, MissingHeadersError, UncertainWriteError } from 'rivulet'
import type { ResearchClient, RetriedRun, RetryOptions, RunInput, TaskRunState } from 'rivulet'
import type { Processor } from 'rivulet/service'
import { all, HeldRuns, research } from './research.ts'

const RUNS = '/v1/tasks/groups'
const exactly = { exactlyOnce: true, settleDelay: 0 } as const

/** Fails the first runs of these inputs. */
function failing(isFailing: (name: string, attempt: number) => boolean): Processor {
  const attempts = new Map<string, number>()
  return {
    run: async ({ input }) => {
      const name = String(input.input)
      const attempt = (attempts.get(name) ?? 0) + 1
      attempts.set(name, attempt)
      if (isFailing(name, attempt)) throw new Error(`${name} failed`)
      return { output: { type: 'text', content: `about ${name}`, basis: [] } }
    },
  }
}
const failingOnce = failing.bind(undefined, (_, attempt) => attempt === 1)

/** A group of these inputs, whose runs have ended. */
async function ended(client: ResearchClient, inputs: readonly RunInput[]): Promise<string> {
  const { taskgroup_id } = await client.taskGroups.create()
  await client.taskGroups.addRuns(taskgroup_id, { inputs })
  await all(client.taskGroups.runs(taskgroup_id))
  return taskgroup_id
}

/** The ended runs of a group, by id. */
async function statesOf(client: ResearchClient, id: string): Promise<ReadonlyMap<string, TaskRunState>> {
  const events = await all(client.taskGroups.runs(id, { include_input: true }))
  return new Map(
    events.flatMap((event) =>
      event.type === 'task_run.state' ? [[event.data.run.run_id, event.data] as const] : [],
    ),
  )
}

describe('retry, end to end', () => {
  it('replaces each failed run, and says by which', async () => {
    const { client, service } = await research({
      processor: failing((name, attempt) => name !== 'good' && attempt === 1),
    })
    const id = await ended(client, [{ input: 'bad' }, { input: 'good' }, { input: 'worse' }])

    const retried = await client.taskGroups.retry(id)

    const states = await statesOf(client, id)
    expect(retried.map(({ replaced, run_id, attempt }) => [replaced.status, states.get(run_id)?.input?.input, attempt]))
      .toEqual([['failed', 'bad', 2], ['failed', 'worse', 2]])
    expect(service.records().runs.map(({ status }) => status)).toEqual([
      'failed', 'completed', 'failed', 'completed', 'completed',
    ])
  })
})
