import { groupEvent, monitorEvent } from 'rivulet'
import type { MonitorEvent, ResearchEvent } from 'rivulet'
import type { Entry } from 'rivulet/log'
import type { ServiceRecords } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { Ledger } from '../../src/cli/start/ledger.ts'

const found = { documents: 1, search_results: 1, licences: { MIT: 1 } }

function run(run_id: string, status = 'completed') {
  return entryOf(
    groupEvent('tgrp_1', { type: 'task_run.state', event_id: run_id, run: { run_id, status } }, 'stream'),
  )
}

function entryOf(event: ResearchEvent): Entry {
  return { ...event, position: '1', recorded: 0, revision: 1, backfill: false }
}

const change: MonitorEvent = {
  event_type: 'event_stream',
  event_id: 'mevt_1',
  event_group_id: 'g',
  event_date: null,
  output: { type: 'text', content: 'news', basis: [] },
}

function records(runIds: readonly string[]): ServiceRecords {
  return {
    runs: runIds.map((run_id) => ({ run_id, taskgroup_id: 'tgrp_1', status: 'completed' })),
    monitor_events: [
      { monitor_id: 'm', event: change, id: 'mevt_1' },
      {
        monitor_id: 'm',
        event: { event_type: 'completion', timestamp: '2026-01-01T00:00:00Z' },
        id: 'm:completion',
      },
    ],
  }
}

describe('the ledger', () => {
  it('counts nothing as lost or doubled when each event arrives once, without the unrequested completions', () => {
    const ledger = new Ledger()
    ledger.entry(run('a'))
    ledger.entry(run('b', 'failed'))
    ledger.entry(entryOf(monitorEvent('m', change, 'webhook')))

    expect(ledger.summary(records(['a', 'b']), found)).toMatchObject({
      runs_completed: 1,
      runs_failed: 1,
      monitor_events: 1,
      lost: 0,
      doubled: 0,
    })
  })

  it('counts the events in the database that the subscriber did not receive', () => {
    const ledger = new Ledger()
    ledger.entry(run('a'))

    expect(ledger.summary(records(['a', 'b']), found)).toMatchObject({ lost: 2, doubled: 0 })
  })

  it('counts duplicates, also with another id', () => {
    const ledger = new Ledger()
    for (const event of [run('a'), run('a'), run('a', 'failed')]) ledger.entry(event)

    expect(ledger.summary(records(['a']), found)).toMatchObject({
      runs_completed: 1,
      runs_failed: 0,
      doubled: 2,
    })
  })

  it('does not count a more complete copy as a duplicate', () => {
    const ledger = new Ledger()
    ledger.entry(run('a'))
    ledger.entry({ ...run('a'), revision: 2 })

    expect(ledger.summary(records(['a']), found)).toMatchObject({ runs_completed: 1, doubled: 0 })
  })

  it('counts repeated webhooks, what the log skipped, and reconnects after a failure', () => {
    const ledger = new Ledger()
    const reconnect = { kind: 'reconnect', source: '/v1/tasks/groups/tgrp_1', attempt: 1, delay: 0 } as const
    // One for the run, one for the execution that found the change.
    for (let i = 0; i < 5; i++) ledger.webhook()
    ledger.appended({ entries: 2, duplicates: 1, ahead: 0, end: 'end' })
    ledger.diagnostic({ ...reconnect, cause: new Error('cut') })
    ledger.diagnostic({ ...reconnect, cause: undefined })

    expect(ledger.summary(records(['a']), found)).toMatchObject({
      licences: { MIT: 1 },
      alerts: { firing: 0, resolved: 0 },
      webhooks_received: 5,
      duplicates_dropped: 4,
      reconnects: 1,
    })
  })
})
