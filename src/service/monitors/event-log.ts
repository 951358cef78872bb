import type { DatabaseSync } from 'node:sqlite'
import type { MonitorEvent } from '../../protocol/monitor.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { Row } from '../database.ts'

/** Maximum number of stored executions of a monitor; beyond the interface document. */
const MAX_EXECUTIONS = 300

/** An event of a monitor. */
export interface MonitorRecord {
  readonly monitor_id: string
  readonly event: MonitorEvent
}

/** An execution of a monitor. */
export interface Execution {
  readonly groupId: string
  /** Oldest first. */
  readonly events: readonly MonitorEvent[]
  /** Warnings for clients that read its events. */
  readonly warnings: readonly Warning[]
}

/** A page of a monitor's events, newest first. */
export interface MonitorEventPage {
  readonly events: readonly MonitorEvent[]
  readonly warnings: readonly Warning[]
  /** The position of the last event of the page; undefined on the last page. */
  readonly next: number | undefined
}

const PRUNED: Warning = {
  type: 'warning',
  message: `The cursor is too old: the events before it are no longer listed. A list reaches back over ${MAX_EXECUTIONS} executions`,
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS monitor_executions (
    execution INTEGER PRIMARY KEY AUTOINCREMENT,
    monitor_id TEXT NOT NULL REFERENCES monitors (monitor_id),
    event_group_id TEXT NOT NULL UNIQUE,
    warnings TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS monitor_executions_monitor ON monitor_executions (monitor_id, execution);
  CREATE TABLE IF NOT EXISTS monitor_events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    monitor_id TEXT NOT NULL REFERENCES monitors (monitor_id),
    execution INTEGER NOT NULL REFERENCES monitor_executions (execution) ON DELETE CASCADE,
    is_completion INTEGER NOT NULL,
    event TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS monitor_events_monitor ON monitor_events (monitor_id, position);
  CREATE INDEX IF NOT EXISTS monitor_events_execution ON monitor_events (execution);
`

const SELECT = `
  SELECT position, event, warnings
  FROM monitor_events JOIN monitor_executions USING (execution)
  WHERE (? OR NOT is_completion)
`

/**
 * The events of all monitors, oldest first. Events are appended at one end and pruned at the other, so positions stay valid.
 */
export class EventLog {
  readonly #addExecution
  readonly #addEvent
  readonly #prune
  readonly #page
  readonly #group
  readonly #all
  readonly #isPruned

  constructor(database: DatabaseSync) {
    database.exec(TABLES)
    this.#addExecution = database.prepare(
      'INSERT INTO monitor_executions (monitor_id, event_group_id, warnings) VALUES (?, ?, ?)',
    )
    this.#addEvent = database.prepare(
      'INSERT INTO monitor_events (monitor_id, execution, is_completion, event) VALUES (?, ?, ?, ?)',
    )
    this.#prune = database.prepare(
      `DELETE FROM monitor_executions WHERE monitor_id = ?1 AND execution <= (
         SELECT execution FROM monitor_executions WHERE monitor_id = ?1
         ORDER BY execution DESC LIMIT 1 OFFSET ${MAX_EXECUTIONS}
       )`,
    )
    this.#page = database.prepare(
      `${SELECT} AND monitor_events.monitor_id = ? AND position < ? ORDER BY position DESC LIMIT ?`,
    )
    this.#group = database.prepare(
      `${SELECT} AND monitor_events.monitor_id = ? AND event_group_id = ? ORDER BY position DESC`,
    )
    this.#isPruned = database.prepare(
      `SELECT 1 FROM monitor_executions WHERE monitor_id = ? LIMIT 1 OFFSET ${MAX_EXECUTIONS - 1}`,
    )
    this.#all = database.prepare('SELECT monitor_id, event FROM monitor_events ORDER BY position')
  }

  /** Appends an execution, and prunes the oldest one above {@link MAX_EXECUTIONS}. */
  append(monitorId: string, { groupId, events, warnings }: Execution): void {
    const { lastInsertRowid } = this.#addExecution.run(monitorId, groupId, JSON.stringify(warnings))
    for (const event of events) {
      const isCompletion = event.event_type === 'completion' ? 1 : 0
      this.#addEvent.run(monitorId, lastInsertRowid, isCompletion, JSON.stringify(event))
    }
    this.#prune.run(monitorId)
  }

  /** Events before a position, newest first; without one from the newest. Warns when those before the position were pruned. */
  page(
    monitorId: string,
    before: number | undefined,
    limit: number,
    withCompletions: boolean,
  ): MonitorEventPage {
    const from = before ?? Number.MAX_SAFE_INTEGER
    const rows = this.#page.all(withCompletions ? 1 : 0, monitorId, from, limit + 1)
    // A page ends with a position only if there are events before it.
    if (rows.length === 0 && before !== undefined && this.#isPruned.get(monitorId) !== undefined)
      return { events: [], warnings: [PRUNED], next: undefined }
    const shown = rows.slice(0, limit)
    const last = shown.at(-1)
    const next = rows.length > limit && last !== undefined ? Number(last['position']) : undefined
    return { events: shown.map(toEvent), warnings: distinctWarnings(shown), next }
  }

  /** All events of one execution, newest first. */
  execution(monitorId: string, groupId: string, withCompletions: boolean): MonitorEventPage {
    const rows = this.#group.all(withCompletions ? 1 : 0, monitorId, groupId)
    return { events: rows.map(toEvent), warnings: distinctWarnings(rows), next: undefined }
  }

  /** All stored events, oldest first. */
  records(): MonitorRecord[] {
    return this.#all.all().map((row) => ({ monitor_id: String(row['monitor_id']), event: toEvent(row) }))
  }
}

function toEvent(row: Row): MonitorEvent {
  return JSON.parse(String(row['event']))
}

function distinctWarnings(rows: readonly Row[]): Warning[] {
  const lists = new Set(rows.map((row) => String(row['warnings'])))
  const warnings = [...lists].flatMap((list): Warning[] => JSON.parse(list))
  return [...new Map(warnings.map((warning) => [warning.message, warning])).values()]
}
