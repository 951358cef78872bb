import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { ServiceRecords } from 'rivulet/service'

/** What came of a soak, counted against the service's database. */
export interface Audit {
  /** Runs that ended and events of the monitor, as the service's database holds them. */
  readonly events: number
  /** Those of them without an effect. */
  readonly lost: number
  /** Effects too many. */
  readonly doubled_effects: number
  /** Events that the handler was given more than once. */
  readonly redelivered: number
}

/** The facts that the service's database holds, by source and id. */
export function factsOf({ runs, monitor_events }: ServiceRecords): ReadonlySet<string> {
  const ended = runs.filter(({ status }) => status === 'completed' || status === 'failed')
  return new Set([
    ...ended.map(({ run_id, status }) => `/v1/tasks/runs/${run_id} ${run_id}:${status}`),
    ...monitor_events.map(({ monitor_id, id }) => `/v1/monitors/${monitor_id} ${id}`),
  ])
}

/** How often each fact had its effect. */
export function effectsIn(state: string): ReadonlyMap<string, number> {
  const database = new DatabaseSync(state, { readOnly: true })
  try {
    const rows = database
      .prepare("SELECT source || ' ' || id AS fact, count(*) AS times FROM effects GROUP BY fact")
      .all()
    return new Map(rows.map((row) => [String(row['fact']), Number(row['times'])]))
  } finally {
    database.close()
  }
}

/**
 * Whether the checkpoint has the runs stream behind runs that had no effect yet: it tells how many it has told, and none
 * of those may be without. What the database holds of a process that was killed is all that its successor knows.
 */
export function isAheadOf(state: string, group: string): boolean {
  const database = new DatabaseSync(state, { readOnly: true })
  try {
    const row = database
      .prepare('SELECT cursor FROM rivulet_checkpoint_position WHERE stream = ?')
      .get(`groups/${group}/runs`)
    if (row === undefined) return false
    const { told }: { told?: number } = JSON.parse(String(row['cursor']))
    const effects = database
      .prepare("SELECT count(DISTINCT id) AS runs FROM effects WHERE type = 'task_run.state'")
      .get()
    return (told ?? 0) > Number(effects?.['runs'] ?? 0)
  } finally {
    database.close()
  }
}

/** Compares the two, and reads what the handler wrote down. */
export function auditOf(records: ServiceRecords, state: string, handled: string): Audit {
  const facts = factsOf(records)
  const effects = effectsIn(state)
  const lines = readFileSync(handled, 'utf8').trimEnd().split('\n')
  return {
    events: facts.size,
    lost: [...facts].filter((fact) => !effects.has(fact)).length,
    doubled_effects: [...effects.values()].reduce((sum, times) => sum + times - 1, 0),
    redelivered: lines.length - new Set(lines).size,
  }
}
