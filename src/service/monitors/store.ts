import type { DatabaseSync, SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { TaskOutput } from '../../protocol/output.ts'
import { nextTime } from '../database.ts'
import type { MonitorRequest } from './request.ts'

/** A stored monitor. Times are Unix ms of the service's clock. */
export interface StoredMonitor {
  /** Position in the list of monitors. */
  readonly position: number
  readonly id: string
  readonly status: 'active' | 'cancelled'
  readonly request: MonitorRequest
  readonly createdAt: number
  readonly lastRunAt: number | undefined
  /** The next scheduled time; undefined once it is cancelled. */
  readonly nextRunAt: number | undefined
  /** Number of triggers, and how many of them were followed by an execution. */
  readonly triggers: { readonly asked: number; readonly served: number }
  /** Whether the passages that existed at creation are marked as seen. */
  readonly hasBaseline: boolean
  /** Whether the sample of earlier matches is not reported yet. */
  readonly owesBackfill: boolean
  /** The output of the last execution, at first the output of the run; undefined except for monitors of type `snapshot`. */
  readonly snapshot: TaskOutput | undefined
}

/** Which monitors to list. */
export interface MonitorFilter {
  readonly before: number
  readonly limit: number
  readonly types: readonly string[] | undefined
  readonly statuses: readonly string[] | undefined
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS monitors (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    monitor_id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'active',
    request TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    last_run_at INTEGER,
    next_run_at INTEGER, -- null: cancelled
    triggers_asked INTEGER NOT NULL DEFAULT 0,
    triggers_served INTEGER NOT NULL DEFAULT 0,
    has_baseline INTEGER NOT NULL DEFAULT 0,
    owes_backfill INTEGER NOT NULL
  );
  CREATE INDEX IF NOT EXISTS monitors_due ON monitors (next_run_at);
  CREATE TABLE IF NOT EXISTS monitor_snapshots (
    monitor_id TEXT PRIMARY KEY REFERENCES monitors (monitor_id),
    output TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
`

const SELECT =
  'SELECT monitors.*, monitor_snapshots.output FROM monitors LEFT JOIN monitor_snapshots USING (monitor_id)'

/** The monitors in the service's database. */
export class MonitorStore {
  readonly #database: DatabaseSync
  readonly #insert
  readonly #get
  readonly #cancel
  readonly #trigger
  readonly #ran
  readonly #baselined
  readonly #searched
  readonly #update
  readonly #snapshot
  readonly #due
  readonly #next

  constructor(database: DatabaseSync) {
    database.exec(TABLES)
    this.#database = database
    this.#insert = database.prepare(
      'INSERT INTO monitors (monitor_id, type, request, created_at, next_run_at, owes_backfill) VALUES (?, ?, ?, ?, ?, ?)',
    )
    this.#get = database.prepare(`${SELECT} WHERE monitor_id = ?`)
    this.#cancel = database.prepare(
      "UPDATE monitors SET status = 'cancelled', next_run_at = NULL WHERE monitor_id = ?",
    )
    this.#trigger = database.prepare(
      'UPDATE monitors SET triggers_asked = triggers_asked + 1 WHERE monitor_id = ?',
    )
    this.#ran = database.prepare(
      'UPDATE monitors SET last_run_at = ?, next_run_at = ?, triggers_served = ? WHERE monitor_id = ?',
    )
    this.#baselined = database.prepare('UPDATE monitors SET has_baseline = 1 WHERE monitor_id = ?')
    this.#searched = database.prepare(
      'UPDATE monitors SET has_baseline = 1, owes_backfill = 0 WHERE monitor_id = ?',
    )
    this.#update = database.prepare('UPDATE monitors SET request = ?, next_run_at = ? WHERE monitor_id = ?')
    this.#snapshot = database.prepare(
      `INSERT INTO monitor_snapshots (monitor_id, output) VALUES (?, ?)
       ON CONFLICT DO UPDATE SET output = excluded.output`,
    )
    this.#due = database.prepare(
      `SELECT monitor_id FROM monitors
       WHERE status = 'active' AND (next_run_at <= ? OR triggers_asked > triggers_served) AND type = ?
       ORDER BY next_run_at`,
    )
    this.#next = database.prepare(
      'SELECT min(next_run_at) AS at FROM monitors WHERE next_run_at > ? AND type = ?',
    )
  }

  /** Adds an active monitor, which is due immediately. */
  add(id: string, request: MonitorRequest, now: number): void {
    const owesBackfill = request.type === 'event_stream' && request.settings.include_backfill === true ? 1 : 0
    this.#insert.run(id, request.type, JSON.stringify(request), now, now, owesBackfill)
  }

  get(id: string): StoredMonitor | undefined {
    const row = this.#get.get(id)
    return row === undefined ? undefined : toMonitor(row)
  }

  /** Monitors before a position, newest first. */
  list({ before, limit, types, statuses }: MonitorFilter): StoredMonitor[] {
    const conditions = ['position < ?']
    const values: SQLInputValue[] = [before]
    for (const [column, allowed] of [
      ['type', types],
      ['status', statuses],
    ] as const) {
      if (allowed === undefined) continue
      conditions.push(`${column} IN (${allowed.map(() => '?').join(', ')})`)
      values.push(...allowed)
    }
    return this.#database
      .prepare(`${SELECT} WHERE ${conditions.join(' AND ')} ORDER BY position DESC LIMIT ?`)
      .all(...values, limit)
      .map(toMonitor)
  }

  /** Stops a monitor for good (§3). */
  cancel(id: string): void {
    this.#cancel.run(id)
  }

  /** Requests an execution outside of the schedule. */
  trigger(id: string): void {
    this.#trigger.run(id)
  }

  /** Stores an execution at `at`, the next time, and the number of triggers before the execution. */
  ran(
    id: string,
    run: { readonly at: number; readonly next: number; readonly triggersServed: number },
  ): void {
    this.#ran.run(run.at, run.next, run.triggersServed, id)
  }

  /** Stores that the baseline is marked as seen. */
  baselined(id: string): void {
    this.#baselined.run(id)
  }

  /** Stores that a search succeeded: there is a baseline now, and the backfill is reported. */
  searched(id: string): void {
    this.#searched.run(id)
  }

  /** Stores a changed request, and the next time. */
  update(id: string, request: MonitorRequest, next: number): void {
    this.#update.run(JSON.stringify(request), next, id)
  }

  /** Stores the latest output of a monitor of type `snapshot`. */
  keepSnapshot(id: string, output: TaskOutput): void {
    this.#snapshot.run(id, JSON.stringify(output))
  }

  /** The ids of active monitors of this type that are due or triggered. */
  due(now: number, type: MonitorRequest['type']): string[] {
    return this.#due.all(now, type).map((row) => String(row['monitor_id']))
  }

  /** The time when the next monitor of this type becomes due. */
  nextAfter(now: number, type: MonitorRequest['type']): number | undefined {
    return nextTime(this.#next, now, type)
  }
}

function toMonitor(row: Record<string, SQLOutputValue>): StoredMonitor {
  const request: MonitorRequest = JSON.parse(String(row['request']))
  return {
    position: Number(row['position']),
    id: String(row['monitor_id']),
    status: row['status'] === 'active' ? 'active' : 'cancelled',
    request,
    createdAt: Number(row['created_at']),
    lastRunAt: row['last_run_at'] === null ? undefined : Number(row['last_run_at']),
    nextRunAt: row['next_run_at'] === null ? undefined : Number(row['next_run_at']),
    triggers: { asked: Number(row['triggers_asked']), served: Number(row['triggers_served']) },
    hasBaseline: row['has_baseline'] === 1,
    owesBackfill: row['owes_backfill'] === 1,
    snapshot: row['output'] === null ? undefined : JSON.parse(String(row['output'])),
  }
}
