import type { DatabaseSync } from 'node:sqlite'
import { parseFrequency } from '../../protocol/limits.ts'
import type { MonitorEvent } from '../../protocol/monitor.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { Clock } from '../clock.ts'
import { transaction } from '../database.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { announce } from './announce.ts'
import { changedOutput } from './changed-output.ts'
import type { EventLog } from './event-log.ts'
import { identifier } from '../identifier.ts'
import type { Isolated } from '../isolated/isolated.ts'
import type { Memories } from '../memory/memories.ts'
import { detectNews } from './news.ts'
import { outputsOf } from './output.ts'
import type { EventStreamRequest, SnapshotRequest } from './request.ts'
import { type RerunContext, runAgain } from './run-again.ts'
import { nextRun } from './schedule.ts'
import { searchFor } from './search.ts'
import { type SeenPassages, textsOf } from './seen.ts'
import type { MonitorStore, StoredMonitor } from './store.ts'
import { toTimestamp } from './wire.ts'

/** The dependencies of an execution. */
export interface ExecutionContext extends RerunContext {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly outbox: Outbox
  /** Keeps what monitors have detected. */
  readonly memories: Memories
  readonly isolated: Isolated
  readonly store: MonitorStore
  readonly log: EventLog
  readonly seen: SeenPassages
}

/** An execution that is being stored. */
interface NewExecution {
  readonly monitor: StoredMonitor
  readonly groupId: string
  readonly at: string
}

/** The findings of an execution, or the reason why it failed. */
type ExecutionFindings =
  | {
      readonly warnings: readonly Warning[]
      /** Returns the changes since the previous execution, and stores the data with which the next one compares. */
      readonly detect: (execution: NewExecution) => readonly MonitorEvent[]
    }
  | { readonly error: string }

/**
 * Executes a monitor once. The outcome is either events, or one completion, or one error. Its events, seen passages, latest
 * snapshot, webhook, memory and next time are stored in one transaction; until then the monitor stays due. Rejects when the signal is
 * aborted.
 */
export async function execute(
  monitorId: string,
  context: ExecutionContext,
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, outbox, memories, store, log } = context
  const startedAt = clock.now()
  const atStart = store.get(monitorId)
  if (atStart === undefined) return
  const found = await (atStart.request.type === 'snapshot'
    ? repeatRun(atStart.request, context, signal)
    : search(atStart, atStart.request, context, signal))

  transaction(database, () => {
    const monitor = store.get(monitorId)
    // Cancelled during the execution.
    if (monitor?.status !== 'active') return
    const groupId = identifier('mevtgrp')
    // The time identifies completions and errors, so each execution has a different one.
    const ranAt = Math.max(clock.now(), (monitor.lastRunAt ?? -Infinity) + 1)
    const at = toTimestamp(ranAt)

    const events = outcome(found, { monitor, groupId, at })
    log.append(monitorId, { groupId, events, warnings: 'error' in found ? [] : found.warnings })
    announce(monitor, { groupId, at, events }, outbox)
    const { memory_scope_key, settings } = monitor.request
    memories.monitorRan(
      memory_scope_key,
      { id: monitorId, input: settings.query, at: ranAt },
      groupId,
      events,
    )
    store.ran(monitorId, {
      at: ranAt,
      next: nextRunOf(monitor, startedAt, clock.now()),
      // Triggers during this execution cause another execution, since this one may have missed their change.
      triggersServed: atStart.triggers.asked,
    })
  })
}

function outcome(found: ExecutionFindings, execution: NewExecution): readonly MonitorEvent[] {
  const timestamp = execution.at
  if ('error' in found) return [{ event_type: 'error', error_message: found.error, timestamp }]
  const changes = found.detect(execution)
  return changes.length > 0 ? changes : [{ event_type: 'completion', timestamp }]
}

async function search(
  monitor: StoredMonitor,
  request: EventStreamRequest,
  { corpus, store, seen, isolated }: ExecutionContext,
  signal: AbortSignal,
): Promise<ExecutionFindings> {
  try {
    await corpus.settled()
    const findings = searchFor(request, corpus)
    const texts = textsOf(corpus)
    const comparison = seen.compare(monitor.id, findings.passages, texts)
    const news = detectNews(monitor, findings, comparison.fresh, texts)
    const { outputs, warnings } = await outputsOf(news, request.settings, isolated, signal)
    return {
      warnings: [...findings.warnings, ...warnings],
      detect({ groupId }) {
        comparison.mark()
        store.searched(monitor.id)
        return outputs.map(({ date, output }) => ({
          event_type: 'event_stream',
          event_id: identifier('mevt'),
          event_group_id: groupId,
          event_date: date,
          output,
        }))
      },
    }
  } catch (error) {
    signal.throwIfAborted()
    return { error: error instanceof Error ? error.message : String(error) }
  }
}

async function repeatRun(
  request: SnapshotRequest,
  context: ExecutionContext,
  signal: AbortSignal,
): Promise<ExecutionFindings> {
  const rerun = await runAgain(request, context, signal)
  if ('error' in rerun) return rerun
  const { output, warnings } = rerun
  return {
    warnings,
    detect({ monitor, groupId, at }) {
      const previous = monitor.snapshot
      if (previous === undefined) throw new Error(`the monitor ${monitor.id} has no snapshot`)
      context.store.keepSnapshot(monitor.id, output)
      const changed = changedOutput(previous, output)
      if (changed === undefined) return []
      const event: MonitorEvent = {
        event_type: 'snapshot',
        event_id: identifier('mevt'),
        event_group_id: groupId,
        // The day on which the change was detected. When it happened is not known.
        event_date: at.slice(0, 10),
        changed_output: changed,
        previous_output: previous,
      }
      return [event]
    },
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
