import type { TaskOutput, TaskRun } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { rowKey } from '../../../src/protocol/live.ts'
import { runEvent, runSource } from '../../../src/protocol/event.ts'
import { groupView } from '../../../src/gateway/views/group-view.ts'
import { runView } from '../../../src/gateway/views/run-view.ts'
import { runsView } from '../../../src/gateway/views/runs-view.ts'
import { viewed } from './viewed.ts'

const RUN: TaskRun = {
  run_id: 'trun_1',
  status: 'completed',
  is_active: false,
  processor: 'base',
  created_at: '2026-01-01T00:00:00Z',
  modified_at: '2026-01-01T00:01:00Z',
}

const OUTPUT: TaskOutput = { type: 'text', content: 'MIT', basis: [] }

function run(fields: Partial<TaskRun> = {}, rest: { output?: TaskOutput; input?: { input: string } } = {}) {
  return runEvent({ run: { ...RUN, ...fields }, ...rest }, 'webhook')
}

describe('runsView', () => {
  it('has each run that names no group, without its output', async () => {
    const view = await viewed(runsView())
    const rows = await view.rows(
      run({}, { output: OUTPUT, input: { input: 'Which licence?' } }),
      run({ run_id: 'trun_2', taskgroup_id: null, status: 'failed', error: { message: 'no answer' } }),
      run({ run_id: 'trun_3', taskgroup_id: 'tgrp_1' }),
    )

    expect([...rows.keys()].toSorted()).toEqual(['trun_1', 'trun_2'])
    expect(rows.get('trun_1')).toEqual({
      run: RUN,
      input: { input: 'Which licence?' },
      updated: expect.any(Number),
    })
    expect(rows.get('trun_2')).toMatchObject({ run: { status: 'failed', error: { message: 'no answer' } } })
  })

  it('keeps a failed run failed until it completes, in any order', async () => {
    const failed = run({ status: 'failed', modified_at: '2026-01-01T00:00:30Z', error: { message: 'no' } })
    const inOrder = await viewed(runsView())
    const reversed = await viewed(runsView())
    for (const rows of [await inOrder.rows(failed, run()), await reversed.rows(run(), failed)]) {
      expect(rows.get('trun_1')?.run.status).toBe('completed')
    }
  })

  it('loses a run whose group becomes known', async () => {
    const view = await viewed(runsView())
    expect((await view.rows(run())).size).toBe(1)

    expect((await view.rows(run({ taskgroup_id: 'tgrp_1' }, { output: OUTPUT }))).size).toBe(0)
  })

  it('keeps a run in its group when a copy without the group brings its error', async () => {
    const stream = run({ status: 'failed', taskgroup_id: 'tgrp_1' })
    const webhook = run({ status: 'failed', error: { message: 'no answer' } })
    const alone = await viewed(runsView())
    const group = await viewed(groupView())

    expect((await alone.rows(stream, webhook)).size).toBe(0)
    expect((await group.rows(stream, webhook)).get(rowKey(['tgrp_1', 'trun_1']))).toMatchObject({
      run: { error: { message: 'no answer' } },
    })
  })

  it('shortens a long run and a long input, and says so', async () => {
    const view = await viewed(runsView())
    const rows = await view.rows(
      run({ metadata: { text: 'x'.repeat(100_000) } }),
      run({ run_id: 'trun_2' }, { input: { input: 'y'.repeat(100_000) } }),
    )

    for (const row of rows.values()) {
      expect(row.truncated).toBe(true)
      expect(JSON.stringify(row).length).toBeLessThan(8_192)
    }
  })

  it('says that an input is shortened also after a copy without the input', async () => {
    const view = await viewed(runsView())
    const failed = { status: 'failed', modified_at: '2026-01-01T00:00:30Z' } as const
    const rows = await view.rows(run(failed, { input: { input: 'y'.repeat(100_000) } }), run())

    expect(rows.get('trun_1')).toMatchObject({ run: { status: 'completed' }, truncated: true })
  })

  it('names the source of a run as the log does, whatever its id', async () => {
    const run_id = 'a/b%2F ü?'
    const view = await viewed(runsView())
    const rows = await view.rows(run({ run_id }))

    expect(rows.get(rowKey([run_id]))?.run.run_id).toBe(run_id)
    expect(runsView().definition.source?.([run_id])).toBe(runSource(run_id))
  })
})

describe('runView', () => {
  it('has a run with what each of its duplicates says', async () => {
    const warnings = [{ type: 'warning', message: 'two sources disagree' }] as const
    const view = await viewed(runView())
    const rows = await view.rows(run({}, { output: OUTPUT }), run({ warnings }))

    expect(rows.get('trun_1')).toMatchObject({ kind: 'run', run: { ...RUN, warnings }, output: OUTPUT })
  })

  it('has no run of a group', async () => {
    const view = await viewed(runView())
    await view.rows(run())

    expect((await view.rows(run({ taskgroup_id: 'tgrp_1' }, { output: OUTPUT }))).size).toBe(0)
  })
})
