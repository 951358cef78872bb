import { groupEvent, monitorEvent } from 'rivulet'
import type { MonitorEvent } from 'rivulet'
import type { ServiceRecords } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { Ledger } from '../../src/cli/start/ledger.ts'

const found = { documents: 1, search_results: 1 }

function run(run_id: string, status = 'completed') {
  return groupEvent('tgrp_1', { type: 'task_run.state', event_id: run_id, run: { run_id, status } }, 'stream')
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
    ledger.event(run('a'))
    ledger.event(run('b', 'failed'))
    ledger.event(monitorEvent('m', change, 'webhook'))

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
    ledger.event(run('a'))

    expect(ledger.summary(records(['a', 'b']), found)).toMatchObject({ lost: 2, doubled: 0 })
  })

  it('counts duplicates, also with another id', () => {
    const ledger = new Ledger()
    for (const event of [run('a'), run('a'), run('a', 'failed')]) ledger.event(event)

    expect(ledger.summary(records(['a']), found)).toMatchObject({
      runs_completed: 1,
      runs_failed: 0,
      doubled: 2,
    })
  })

  it('counts the duplicates that the receiver and the client dropped, and reconnects after a failure', () => {
    const ledger = new Ledger()
    const reconnect = { kind: 'reconnect', source: '/v1/tasks/groups/tgrp_1', attempt: 1, delay: 0 } as const
    for (let i = 0; i < 3; i++) ledger.webhook()
    ledger.delivery()
    ledger.diagnostic({ kind: 'duplicate', event: run('a') })
    ledger.diagnostic({ ...reconnect, cause: new Error('cut') })
    ledger.diagnostic({ ...reconnect, cause: undefined })

    expect(ledger.summary(records([]), found)).toMatchObject({
      webhooks_received: 3,
      duplicates_dropped: 3,
      reconnects: 1,
    })
  })
})
