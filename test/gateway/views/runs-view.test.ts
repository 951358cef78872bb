import type { TaskOutput, TaskRun } from 'rivulet'
import { runEvent, runSource } from 'rivulet'
import { groupView, runsView, runView } from 'rivulet/gateway'
import { rowKey } from 'rivulet/live'
import { describe, expect, it } from 'vitest'
import { viewed } from './viewed.ts'
import { runTraceEvent } from '../../../src/protocol/run-trace-event.ts'

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

const stats = (progress_meter: number) =>
  runTraceEvent(
    'trun_1',
    {
      type: 'task_run.progress_stats',
      source_stats: { num_sources_considered: 9, num_sources_read: 4, sources_read_sample: [] },
      progress_meter,
    },
    'stream',
  )

const message = (text: string, timestamp: string | null = null) =>
  runTraceEvent('trun_1', { type: 'task_run.progress_msg.search', message: text, timestamp }, 'stream')

describe('runsView', () => {
  it('has a run with its progress from its first message until it ends', async () => {
    const view = await viewed(runsView())
    const running = await view.rows(message('one'), stats(40), message('two'))
    const meter = { meter: 40, sourcesRead: 4, sourcesConsidered: 9 }
    const last = { type: 'task_run.progress_msg.search', message: 'two', time: null }

    expect(running.get('trun_1')).toEqual({
      id: 'trun_1',
      run: null,
      progress: { ...meter, last },
      updated: expect.any(Number),
    })

    const active = await view.rows(run({ status: 'running', is_active: true }))
    expect(active.get('trun_1')).toMatchObject({ run: { status: 'running' }, progress: { ...meter, last } })

    const ended = await view.rows(run({ modified_at: '2026-01-01T00:02:00Z' }), message('late'))
    expect(ended.get('trun_1')).toMatchObject({ run: { status: 'completed' } })
    expect(ended.get('trun_1')).not.toHaveProperty('progress')
  })

  it('removes a run after a day where only its progress is known', () => {
    const { timeToLive } = runsView().definition
    const of = (row: object) => (typeof timeToLive === 'function' ? timeToLive(row) : undefined)

    expect(of({ run: null })).toBe(86_400_000)
    expect(of({ run: RUN })).toBe(90 * 86_400_000)
  })

  it('has each run that names no group, without its output', async () => {
    const view = await viewed(runsView())
    const rows = await view.rows(
      run({}, { output: OUTPUT, input: { input: 'Which licence?' } }),
      run({ run_id: 'trun_2', taskgroup_id: null, status: 'failed', error: { message: 'no answer' } }),
      run({ run_id: 'trun_3', taskgroup_id: 'tgrp_1' }),
    )

    expect([...rows.keys()].toSorted()).toEqual(['trun_1', 'trun_2'])
    expect(rows.get('trun_1')).toEqual({
      id: 'trun_1',
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
      expect(rows.get('trun_1')?.run?.status).toBe('completed')
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

    expect(rows.get(rowKey([run_id]))?.run?.run_id).toBe(run_id)
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

  it('has the last 50 messages of a run and its meter, also after its end', async () => {
    const view = await viewed(runView())
    const messages = Array.from({ length: 60 }, (_, index) =>
      message(`step ${index}`, '2026-01-01T00:00:00Z'),
    )
    const rows = await view.rows(...messages, stats(100), run({}, { output: OUTPUT }))
    const row = rows.get(rowKey(['trun_1', 'progress']))

    expect(row).toMatchObject({ kind: 'progress', meter: 100, sourcesRead: 4, earlier: 10 })
    expect(row?.kind === 'progress' && row.messages.map((each) => each.message)).toEqual(
      Array.from({ length: 50 }, (_, index) => `step ${index + 10}`),
    )
    expect(rows.get('trun_1')).toMatchObject({ kind: 'run', output: OUTPUT })
  })

  it('shortens a long message', async () => {
    const view = await viewed(runView())
    const rows = await view.rows(message('x'.repeat(100_000)))

    expect(JSON.stringify([...rows.values()]).length).toBeLessThan(2_048)
  })

  it('loses the progress of a run whose group becomes known', async () => {
    const view = await viewed(runView())
    expect((await view.rows(message('one'))).size).toBe(1)

    expect((await view.rows(run({ taskgroup_id: 'tgrp_1' }))).size).toBe(0)
  })

  it('has no run of a group', async () => {
    const view = await viewed(runView())
    await view.rows(run())

    expect((await view.rows(run({ taskgroup_id: 'tgrp_1' }, { output: OUTPUT }))).size).toBe(0)
  })
})
