import { attemptIds } from '../../../src/dashboard/page/groups/attempts.ts'
import type { ResearchEvent, TaskOutput, TaskRun } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { gapEvent, groupEvent, groupSource, runEvent } from '../../../src/protocol/event.ts'
import { liveEvent, lostEvent } from '../../../src/protocol/log-event.ts'
import { rowKey } from '../../../src/protocol/live.ts'
import { groupView } from '../../../src/gateway/views/group-view.ts'
import type { GroupRow } from '../../../src/gateway/views/group-view.ts'
import type { GroupRunRow } from '../../../src/gateway/views/run-row.ts'
import { groupsView } from '../../../src/gateway/views/groups-view.ts'
import { viewed } from './viewed.ts'

const GROUP = 'tgrp_1'

function status(event_id: string, modified_at: string | null, completed: number): ResearchEvent {
  const counts = { completed, running: 2 - completed }
  const group = { num_task_runs: 2, task_run_status_counts: counts, is_active: completed < 2 }
  const wire = { ...group, status_message: null, modified_at }
  return groupEvent(GROUP, { type: 'task_group_status', event_id, status: wire }, 'stream')
}

const RUN: TaskRun = {
  run_id: 'trun_1',
  status: 'completed',
  is_active: false,
  processor: 'base',
  created_at: '2026-01-01T00:00:00Z',
  modified_at: '2026-01-01T00:01:00Z',
  taskgroup_id: GROUP,
}

const OUTPUT: TaskOutput = {
  type: 'json',
  content: { licence: 'MIT' },
  basis: [{ field: 'licence', reasoning: 'quoted', citations: [{ url: 'https://a.example' }] }],
}

function run(fields: Partial<TaskRun> = {}, rest: { output?: TaskOutput; input?: { input: string } } = {}) {
  return runEvent({ run: { ...RUN, ...fields }, ...rest }, 'stream')
}

function runRowOf(rows: ReadonlyMap<string, GroupRow>, run_id = 'trun_1'): GroupRunRow {
  const row = rows.get(rowKey([GROUP, run_id]))
  if (row?.kind !== 'run') throw new Error(`no row of ${run_id}`)
  return row
}

describe('groupsView', () => {
  it('has the last status of each group', async () => {
    const view = await viewed(groupsView())
    const rows = await view.rows(
      status('1', '2026-01-01T00:00:00Z', 0),
      status('2', '2026-01-01T00:01:00Z', 1),
    )

    expect([...rows.keys()]).toEqual([GROUP])
    expect(rows.get(GROUP)).toMatchObject({
      group: GROUP,
      status: { task_run_status_counts: { completed: 1 } },
      updated: expect.any(Number),
    })
  })

  it('keeps the later status when an earlier one comes after it', async () => {
    const view = await viewed(groupsView())
    const rows = await view.rows(
      status('2', '2026-01-01T00:01:00Z', 1),
      status('1', '2026-01-01T00:00:00Z', 0),
    )

    expect(rows.get(GROUP)?.status?.task_run_status_counts).toEqual({ completed: 1, running: 1 })
  })

  it('takes statuses without a time in the order of the log', async () => {
    const view = await viewed(groupsView())
    const rows = await view.rows(status('1', null, 0), status('2', null, 1), status('3', 'soon', 2))

    expect(rows.get(GROUP)?.status?.task_run_status_counts['completed']).toBe(2)
  })

  it('has a group of which only runs are known, without a status', async () => {
    const view = await viewed(groupsView())

    expect((await view.rows(run())).get(GROUP)).toMatchObject({ group: GROUP, status: null })
  })

  it('has no row for a run without a group', async () => {
    const view = await viewed(groupsView())

    expect((await view.rows(run({ taskgroup_id: null }))).size).toBe(0)
  })

  it('keeps the id of a group with any characters, and names its source as the log does', async () => {
    const group = 'a/b%2F ü?'
    const view = await viewed(groupsView())
    const rows = await view.rows(run({ taskgroup_id: group }))

    expect(rows.get(rowKey([group]))?.group).toBe(group)
    expect(groupsView().definition.source?.([group])).toBe(groupSource(group))
  })

  it('has a row for an id with a lone surrogate and for one of a megabyte', async () => {
    const view = await viewed(groupsView())
    const long = 'g'.repeat(1_000_000)
    const rows = await view.rows(
      run({ run_id: 'trun_1', taskgroup_id: 'g\uD800' }),
      run({ run_id: 'trun_2', taskgroup_id: 'g\uDC00' }),
      run({ run_id: 'trun_3', taskgroup_id: long }),
    )

    expect(rows.size).toBe(3)
    for (const key of rows.keys()) expect(key.length).toBeLessThanOrEqual(500)
  })
})

describe('groupView', () => {
  it('has the status of the group and its runs with their outputs', async () => {
    const view = await viewed(groupView())
    const rows = await view.rows(
      status('1', null, 1),
      run({}, { output: OUTPUT, input: { input: 'a question' } }),
      run({ run_id: 'trun_2', status: 'failed', error: { message: 'no answer' } }),
    )

    expect([...rows.keys()].toSorted()).toEqual([GROUP, `${GROUP}/trun_1`, `${GROUP}/trun_2`])
    expect(rows.get(GROUP)).toMatchObject({ kind: 'group', status: { num_task_runs: 2 } })
    expect(runRowOf(rows)).toEqual({
      kind: 'run',
      run: RUN,
      output: OUTPUT,
      input: { input: 'a question' },
      recorded: expect.any(Number),
    })
    expect(runRowOf(rows, 'trun_2')).toMatchObject({ output: null, run: { error: { message: 'no answer' } } })
  })

  it.each([
    ['before', [run(), run({}, { output: OUTPUT })]],
    ['after', [run({}, { output: OUTPUT }), run()]],
  ])('has the output of a run whose webhook comes %s its stream', async (_, events) => {
    const view = await viewed(groupView())

    expect(runRowOf(await view.rows(...events)).output).toEqual(OUTPUT)
  })

  it('merges what each of two revisions says alone', async () => {
    const failed = { status: 'failed', modified_at: null } as const
    const view = await viewed(groupView())
    const rows = await view.rows(
      run({ ...failed, error: { message: 'no answer' } }),
      run(failed, { input: { input: 'a question' } }),
    )

    expect(runRowOf(rows)).toMatchObject({
      run: { error: { message: 'no answer' } },
      input: { input: 'a question' },
    })
  })

  it('keeps the warnings of a webhook when its stream, which has none, brings the output', async () => {
    const warnings = [{ type: 'warning', message: 'two sources disagree' }] as const
    const view = await viewed(groupView())
    const rows = await view.rows(run({ warnings }), run({}, { output: OUTPUT }))

    expect(runRowOf(rows)).toMatchObject({ run: { ...RUN, warnings }, output: OUTPUT })
  })

  it('replaces a failure by the completion of its retry, and not the other way round', async () => {
    const failure = run(
      { status: 'failed', modified_at: '2026-01-01T00:00:30Z', error: { message: 'no answer' } },
      { input: { input: 'a question' } },
    )
    const completion = run({}, { output: OUTPUT })
    const inOrder = await viewed(groupView())
    const reversed = await viewed(groupView())
    for (const rows of [await inOrder.rows(failure, completion), await reversed.rows(completion, failure)]) {
      expect(runRowOf(rows)).toMatchObject({ run: RUN, output: OUTPUT, input: { input: 'a question' } })
      expect(runRowOf(rows).run.error).toBeUndefined()
    }
  })

  describe('of a run that was retried', () => {
    const attempt = (number: number, ending: TaskRun['status'], input?: { input: string }) => {
      const marks = {
        rivulet_retry_of: `trun_${number - 1}`,
        rivulet_first: 'trun_1',
        rivulet_attempt: `${number}`,
      }
      const error = ending === 'failed' ? { error: { message: `no ${number}` } } : {}
      const fields = {
        run_id: `trun_${number}`,
        status: ending,
        ...error,
        ...(number > 1 && { metadata: marks }),
      }
      return run(fields, input && { input })
    }

    it.each([
      ['in order', [1, 2, 3]],
      ['in another order', [3, 1, 2]],
      ['more than once', [1, 2, 1, 3, 2, 3, 1]],
    ])('has one row with the last attempt, which come %s', async (_, order) => {
      const view = await viewed(groupView())
      const rows = await view.rows(
        ...order.map((number) => attempt(number, number === 3 ? 'completed' : 'failed')),
        run({ run_id: 'trun_9' }),
      )

      expect([...rows.keys()].toSorted()).toEqual([`${GROUP}/trun_1`, `${GROUP}/trun_9`])
      expect(runRowOf(rows)).toMatchObject({
        run: { run_id: 'trun_3', status: 'completed' },
        attempt: { number: 3, first: 'trun_1', others: ['trun_2'] },
      })
      expect(runRowOf(rows).run.error).toBeUndefined()
      expect(runRowOf(rows, 'trun_9')).not.toHaveProperty('attempt')
    })

    it('has the ids of the latest 20 other attempts, for links to them', async () => {
      const view = await viewed(groupView())
      const numbers = Array.from({ length: 24 }, (_, index) => index + 1)
      const rows = await view.rows(...numbers.map((number) => attempt(number, 'failed')))

      expect(runRowOf(rows).attempt?.others).toEqual(numbers.slice(3, 23).map((number) => `trun_${number}`))
      expect(attemptIds(runRowOf(rows))).toContain('trun_23')
    })

    it('merges the duplicates of an attempt, and not those of two', async () => {
      const view = await viewed(groupView())
      const rows = await view.rows(
        attempt(1, 'failed', { input: 'first' }),
        attempt(2, 'failed', { input: 'second' }),
        attempt(2, 'failed'),
      )

      expect(runRowOf(rows)).toMatchObject({
        run: { run_id: 'trun_2', error: { message: 'no 2' } },
        input: { input: 'second' },
        attempt: { number: 2 },
      })
    })

    it('keeps the completed one of two with the same number, in either order', async () => {
      const other = runEvent(
        { run: { ...attempt(2, 'failed').data.run, run_id: 'trun_2b', modified_at: '2027-01-01T00:00:00Z' } },
        'stream',
      )
      for (const events of [
        [attempt(2, 'completed'), other],
        [other, attempt(2, 'completed')],
      ]) {
        const view = await viewed(groupView())
        expect(runRowOf(await view.rows(...events)).run).toMatchObject({
          run_id: 'trun_2',
          status: 'completed',
        })
      }
    })
  })

  it('stays the same when entries come again', async () => {
    const view = await viewed(groupView())
    const events = [status('1', null, 1), run({}, { output: OUTPUT })]
    const before = await view.rows(...events)

    expect(await view.rows(...events)).toEqual(before)
  })

  it('shortens an output that is too long for a row, and says so', async () => {
    const excerpts = Array.from({ length: 5_000 }, (_, index) => `${index} ${'"é'.repeat(1_000)}`)
    const citations = [{ url: 'https://a.example', title: 'A', excerpts }]
    const output: TaskOutput = { ...OUTPUT, basis: [{ field: 'licence', reasoning: 'quoted', citations }] }
    const view = await viewed(groupView())
    const row = runRowOf(await view.rows(run({}, { output })))

    expect(row.truncated).toBe(true)
    expect(row.output?.content).toEqual({ licence: 'MIT' })
    const kept = row.output?.basis[0]?.citations?.[0]
    expect(kept?.url).toBe('https://a.example')
    expect(kept?.excerpts?.[0]).toMatch(/^0 "é.*…$/)
  })

  it('is whole again when a shorter revision replaces a truncated one', async () => {
    const view = await viewed(groupView())
    const metadata = { text: 'x'.repeat(300_000) }
    expect(runRowOf(await view.rows(run({ metadata }))).truncated).toBe(true)

    const rows = await view.rows(run({}, { output: OUTPUT }))

    expect(runRowOf(rows)).toMatchObject({ output: OUTPUT, run: RUN })
    expect(runRowOf(rows)).not.toHaveProperty('truncated')
  })

  it('has a row for each run, whatever its id', async () => {
    const ids = ['a/b', '%2F', '..a', 'ü', '!', 'r'.repeat(512), '😀'.repeat(250), 'notice']
    const view = await viewed(groupView())
    const rows = await view.rows(...ids.map((run_id) => run({ run_id })))

    const found = [...rows.values()].map((row) => (row.kind === 'run' ? row.run.run_id : row.kind))
    expect(found.toSorted()).toEqual(ids.toSorted())
  })

  it('has what was missed as notices, but not that the group was reached for the first time', async () => {
    const source = groupSource(GROUP)
    const gap = gapEvent(source, { from: null, to: null, reason: 'deleted' }, 'stream', '1')
    const view = await viewed(groupView())
    const rows = await view.rows(
      liveEvent(source, '1', undefined, 0),
      lostEvent(source, '2', 'no answer', 0),
      liveEvent(source, '3', 0, 0),
      gap,
      groupEvent(GROUP, { type: 'error', error: { ref_id: 'ref_1', message: 'overloaded' } }, 'stream'),
      groupEvent(GROUP, null, 'stream'),
    )

    const types = [...rows.values()].map((row) => (row.kind === 'notice' ? row.type : row.kind))
    expect(types.toSorted()).toEqual(['error', 'source.live', 'source.lost', 'stream.gap', 'unknown'])
    expect(rows.get(rowKey([GROUP, 'notice', gap.id]))).toMatchObject({ event: { reason: 'deleted' } })
  })

  it('survives fields that are null or of another type', async () => {
    const hostile = {
      run_id: 'trun_1',
      status: 'completed',
      taskgroup_id: GROUP,
      error: 7,
      metadata: [],
      warnings: 'w',
    }
    const view = await viewed(groupView())
    const rows = await view.rows(
      groupEvent(GROUP, { type: 'task_run.state', run: hostile, output: 'text', input: 3 }, 'stream'),
      groupEvent(
        GROUP,
        { type: 'task_group_status', event_id: '1', status: { task_run_status_counts: null } },
        'stream',
      ),
    )

    expect(runRowOf(rows)).toMatchObject({ run: { run_id: 'trun_1' }, output: null })
    expect(rows.get(GROUP)).toMatchObject({ kind: 'group' })
  })
})
