import type { DatabaseSync } from 'node:sqlite'
import { parseFrequency } from '../../protocol/limits.ts'
import type { MonitorEvent } from '../../protocol/monitor.ts'
import type { Clock } from '../clock.ts'
import type { Corpus } from '../corpus/corpus.ts'
import { transaction } from '../database.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { announce } from './announce.ts'
import type { EventLog } from './event-log.ts'
import { identifier } from '../identifier.ts'
import { detectNews } from './news.ts'
import { nextRun } from './schedule.ts'
import { type Findings, searchFor } from './search.ts'
import type { SeenPassages } from './seen.ts'
import type { MonitorStore, StoredMonitor } from './store.ts'
import { toTimestamp } from './wire.ts'

/** The dependencies of an execution. */
export interface ExecutionContext {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly corpus: Corpus
  readonly outbox: Outbox
  readonly store: MonitorStore
  readonly log: EventLog
  readonly seen: SeenPassages
}

/**
 * Executes a monitor once. The outcome is either events, or one completion, or one error. Its events, seen passages, webhook
 * and next time are stored in one transaction; until then the monitor stays due.
 */
export async function execute(monitorId: string, context: ExecutionContext): Promise<void> {
  const { database, clock, corpus, outbox, store, log, seen } = context
  const startedAt = clock.now()
  const atStart = store.get(monitorId)
  if (atStart === undefined) return
  const findings = await search(atStart, corpus)

  transaction(database, () => {
    const monitor = store.get(monitorId)
    // Cancelled during the search.
    if (monitor?.status !== 'active') return
    const groupId = identifier('mevtgrp')
    // The time identifies completions and errors, so each execution has a different one.
    const ranAt = Math.max(clock.now(), (monitor.lastRunAt ?? -Infinity) + 1)
    const at = toTimestamp(ranAt)

    const events = outcome(monitor, groupId, at)
    log.append(monitorId, { groupId, events, warnings: 'error' in findings ? [] : findings.warnings })
    announce(monitor, { groupId, at, events }, outbox)
    store.ran(monitorId, {
      at: ranAt,
      next: nextRunOf(monitor, startedAt, clock.now()),
      // Triggers during this execution cause another one, since this one may have missed their change.
      triggersServed: atStart.triggers.asked,
    })
  })

  function outcome(monitor: StoredMonitor, groupId: string, at: string): MonitorEvent[] {
    if ('error' in findings) {
      return [{ event_type: 'error', error_message: findings.error, timestamp: at }]
    }
    const news = detectNews(monitor, findings.passages, seen, (url) => corpus.document(url)?.text, groupId)
    store.searched(monitorId)
    return news.length > 0 ? news : [{ event_type: 'completion', timestamp: at }]
  }
}

async function search(
  monitor: StoredMonitor,
  corpus: Corpus,
): Promise<Findings | { readonly error: string }> {
  try {
    await corpus.settled()
    return searchFor(monitor.request, corpus)
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

/** An execution that was due moves the schedule; a triggered one does not. */
function nextRunOf({ id, nextRunAt, request }: StoredMonitor, startedAt: number, now: number): number {
  const due = nextRunAt ?? now
  if (due > startedAt) return due
  const frequency = parseFrequency(request.frequency)
  if (frequency === undefined) throw new Error(`monitor ${id} has no valid frequency: ${request.frequency}`)
  return nextRun(due, frequency, now)
}
