import { existsSync, readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { ServiceRecords } from 'rivulet/service'

/** The result of a soak, compared with the service's database. */
export interface Audit {
  /** Number of ended runs and of the monitor's events in the service's database. */
  readonly events: number
  /** Number of events without an effect. */
  readonly lost: number
  /** Number of duplicate effects. */
  readonly doubled_effects: number
  /** Number of repeated calls of the handler for an event. */
  readonly redelivered: number
}

/** The events in the service's database, by source and id. */
export function factsOf({ runs, monitor_events }: ServiceRecords): ReadonlySet<string> {
  const ended = runs.filter(hasEnded)
  return new Set([
    ...ended.map(({ run_id, status }) => `/v1/tasks/runs/${run_id} ${run_id}:${status}`),
    ...monitor_events.map(({ monitor_id, id }) => `/v1/monitors/${monitor_id} ${id}`),
  ])
}

/** Whether the run is one of the facts. */
export function hasEnded({ status }: ServiceRecords['runs'][number]): boolean {
  return status === 'completed' || status === 'failed'
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
 * Whether the checkpoint has the runs stream behind runs that had no effect yet: it says how many the stream has sent, and
 * none of those may be without. What the database holds of a process that was killed is all that its successor knows.
 */
export function isAheadOf(state: string, group: string): boolean {
  const database = new DatabaseSync(state, { readOnly: true })
  try {
    const row = database
      .prepare('SELECT cursor FROM rivulet_checkpoint_position WHERE stream = ?')
      .get(`groups/${group}/runs`)
    if (row === undefined) return false
    const { ended = [] }: { ended?: readonly number[] } = JSON.parse(firstLine(String(row['cursor'])))
    const effects = database
      .prepare("SELECT count(DISTINCT id) AS runs FROM effects WHERE type = 'task_run.state'")
      .get()
    return ended.reduce((sum, count) => sum + count, 0) > Number(effects?.['runs'] ?? 0)
  } finally {
    database.close()
  }
}

/** Whether events of this type are counted: of what a group says of itself the service's database keeps no list. */
export function isCounted(type: string): boolean {
  return type === 'task_run.state' || type.startsWith('monitor.')
}

/** How many of the counted events the handler was given so far. */
export function countIn(handled: string): number {
  return [...new Set(linesOf(handled))].filter((line) => isCounted(line.slice(0, line.indexOf(' ')))).length
}

/** Compares the two, and reads what the handler wrote down. */
export function auditOf(records: ServiceRecords, state: string, handled: string): Audit {
  const facts = factsOf(records)
  const effects = effectsIn(state)
  const given = linesOf(handled)
  return {
    events: facts.size,
    lost: [...facts].filter((fact) => !effects.has(fact)).length,
    doubled_effects: [...effects.values()].reduce((sum, times) => sum + times - 1, 0),
    redelivered: given.length - new Set(given).size,
  }
}

/** A line for each event that the handler was given, in the order of the giving; an event may be there twice. */
function linesOf(handled: string): readonly string[] {
  return existsSync(handled) ? readFileSync(handled, 'utf8').split('\n').slice(0, -1) : []
}

/** The JSON of a saved position. The seen entries follow in the next line. */
function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? ''
}
