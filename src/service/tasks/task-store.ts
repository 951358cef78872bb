import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import { identifier } from '../identifier.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { Warning } from '../../protocol/problem.ts'
import type { AddRunsResponse, TaskGroup, TaskGroupStatus } from '../../protocol/task-group.ts'
import { RUN_STATUSES } from '../../protocol/task.ts'
import type { RunInput, RunStatus, TaskRun, TaskRunError } from '../../protocol/task.ts'
import type { Clock } from '../clock.ts'
import { type Row, transaction, truncateLog } from '../database.ts'
import type { Interactions, Turn } from '../interactions/interactions.ts'
import type { Memories } from '../memory/memories.ts'
import type { ProcessorProgress, ProcessorTask } from '../processor/processor.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { GroupLog } from './group-log.ts'
import { Listeners } from './listeners.ts'
import { RunTrace, type StoredTrace } from './run-trace.ts'

/** A run to store: its input and its warnings. */
export interface NewRun {
  readonly input: RunInput & { readonly processor: string }
  readonly warnings: readonly Warning[]
  /** Whether its basis has an entry for each element of a list too (§2.3). Default false. */
  readonly elementBasis?: boolean
}

/** A run that is to be executed. */
export type ClaimedRun = Omit<ProcessorTask, 'report'>

/** A completed run: its task, without the credentials for its tool servers, and its output. */
export interface CompletedRun extends Omit<ClaimedRun, 'run_id'> {
  readonly output: TaskOutput
}

/** How a run ended. */
export type RunOutcome =
  | { readonly status: 'completed'; readonly output: TaskOutput; readonly warnings: readonly Warning[] }
  | { readonly status: 'failed'; readonly error: TaskRunError }

/** A run in the service's database. */
export interface RunRecord {
  readonly run_id: string
  readonly taskgroup_id: string | null
  readonly status: RunStatus
}

/** Statuses of a run that has not ended; beyond the interface document. */
const ACTIVE: ReadonlySet<RunStatus> = new Set<RunStatus>([
  'queued',
  'action_required',
  'running',
  'cancelling',
])

/** What a {@link TaskStore} needs. */
interface TaskStoreOptions {
  readonly database: DatabaseSync
  readonly clock: Clock
  readonly outbox: Outbox
  readonly interactions: Interactions
  /** Keeps the runs that have completed. */
  readonly memories: Memories
}

/** Groups and runs in the service's database. Each change is one transaction. */
export class TaskStore {
  readonly log: GroupLog
  /** Notifies listeners of a change to a group or a run, after it is stored. */
  readonly changes = new Listeners()
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #interactions: Interactions
  readonly #memories: Memories
  readonly #sql
  /** The traces of running runs that send progress events. */
  readonly #traces = new Map<string, RunTrace>()
  /** Whether the write-ahead log may hold deleted credentials. */
  #credentialsInLog = false

  constructor({ database, clock, outbox, interactions, memories }: TaskStoreOptions) {
    this.#database = database
    this.#clock = clock
    this.#outbox = outbox
    this.#interactions = interactions
    this.#memories = memories
    createTables(database)
    this.log = new GroupLog(database)
    this.#sql = prepareAll(database)
  }

  createGroup(metadata: Readonly<Record<string, unknown>> | undefined): TaskGroup {
    const id = identifier('tgrp')
    const now = this.#clock.now()
    this.#sql.insertGroup.run(id, metadata === undefined ? null : JSON.stringify(metadata), now, now)
    return {
      taskgroup_id: id,
      ...(metadata !== undefined && { metadata }),
      status: this.#status(id, now),
      created_at: timestamp(now),
    }
  }

  group(id: string): TaskGroup | undefined {
    const row = this.#sql.group.get(id)
    if (row === undefined) return undefined
    return {
      taskgroup_id: id,
      ...(row['metadata'] !== null && { metadata: parse(row['metadata']) }),
      status: this.#status(id, Number(row['modified_at'])),
      created_at: timestamp(row['created_at']),
    }
  }

  /** Adds runs to an existing group (§4.3). */
  addRuns(groupId: string, runs: readonly NewRun[]): AddRunsResponse {
    const answer = transaction(this.#database, () => {
      const now = this.#clock.now()
      const first = this.#sql.anyRun.get(groupId) === undefined
      const run_cursor = first ? '' : this.log.cursor(groupId, 'runs')
      const event_cursor = first ? '' : this.log.cursor(groupId, 'events')
      const run_ids = runs.map((run) => this.#insertRun(groupId, run, now))
      return { status: this.#groupChanged(groupId, now), run_ids, run_cursor, event_cursor }
    })
    this.changes.notify(groupId)
    return answer
  }

  /** The number of runs that have not ended. */
  active(): number {
    return Number(this.#sql.active.get()?.['count'] ?? 0)
  }

  /** Adds a run without a group. */
  addRun(run: NewRun): TaskRun {
    const id = transaction(this.#database, () => this.#insertRun(null, run, this.#clock.now()))
    return this.#get(id)
  }

  run(id: string): TaskRun | undefined {
    const row = this.#sql.run.get(id)
    return row === undefined ? undefined : toRun(row)
  }

  /** The run's input, without the credentials for its tool servers. */
  input(runId: string): RunInput | undefined {
    const row = this.#sql.run.get(runId)
    return row === undefined ? undefined : parse(row['input'])
  }

  /** The run's output, once it has completed. */
  output(runId: string): TaskOutput | undefined {
    const output = this.#sql.run.get(runId)?.['output'] ?? null
    return output === null ? undefined : parse(output)
  }

  /** The completed run with the data to execute it again; undefined for any other run. */
  completed(runId: string): CompletedRun | undefined {
    const run = this.run(runId)
    const input = this.input(runId)
    const output = this.output(runId)
    if (run?.status !== 'completed' || input === undefined || output === undefined) return undefined
    const context = this.context(input.previous_interaction_id)
    return { input, context, ...this.#elementBasis(runId), output }
  }

  /** Whether a run can continue this interaction: its run may still be active. */
  isInteraction(id: string): boolean {
    return this.#interactions.turns(id) !== undefined || this.run(runIdOf(id)) !== undefined
  }

  /** The turns of the interaction that a request continues, oldest first. */
  context(previous: string | undefined): readonly Turn[] {
    if (previous === undefined) return []
    return this.#interactions.turns(previous) ?? this.#endedTurn(runIdOf(previous))
  }

  /** The progress of a run that sends progress events; undefined before it is executed, and if it sends none. */
  trace(runId: string): StoredTrace | undefined {
    const running = this.#traces.get(runId)
    if (running !== undefined) return running
    const stored = this.#sql.trace.get(runId)?.['trace']
    return stored === undefined ? undefined : parse(stored)
  }

  /** Adds progress to the trace of a running run. Progress of others is ignored. */
  report(runId: string, progress: ProcessorProgress): void {
    const trace = this.#traces.get(runId)
    if (trace === undefined) return
    trace.add(progress, timestamp(this.#clock.now()))
    this.changes.notify(runId)
  }

  /** Takes the oldest queued run whose earlier turn is not active, and marks it as running. */
  claim(): ClaimedRun | undefined {
    const row = transaction(this.#database, () => {
      const now = this.#clock.now()
      const claimed = this.#sql.claim.get(now)
      if (claimed !== undefined) this.#sql.touchGroup.run(now, claimed['taskgroup_id'] ?? null)
      return claimed
    })
    if (row === undefined) return undefined
    const input: RunInput = parse(row['input'])
    const servers = row['mcp_servers'] ?? null
    const run_id = String(row['run_id'])
    if (input.enable_events === true) this.#traces.set(run_id, new RunTrace())
    this.changes.notify(run_id)
    return {
      run_id,
      input: servers === null ? input : { ...input, mcp_servers: parse(servers) },
      context: this.context(input.previous_interaction_id),
      ...this.#elementBasis(run_id),
    }
  }

  /**
   * Ends a run: stores its outcome, its events, its webhook and its memory in one transaction. Deletes the credentials for its tool
   * servers; see {@link forgetCredentials}.
   */
  finish(runId: string, outcome: RunOutcome): void {
    const run = transaction(this.#database, () => {
      const now = this.#clock.now()
      const { output, error } =
        outcome.status === 'completed'
          ? { output: JSON.stringify(outcome.output), error: null }
          : { output: null, error: JSON.stringify(outcome.error) }
      const earlier = this.#get(runId).warnings ?? []
      const hadCredentials = this.#sql.credentials.get(runId)?.['mcp_servers'] != null
      const warnings = outcome.status === 'completed' ? [...earlier, ...outcome.warnings] : earlier
      const ended = this.#sql.finish.run(
        outcome.status,
        output,
        error,
        warnings.length === 0 ? null : JSON.stringify(warnings),
        now,
        runId,
      )
      if (ended.changes === 0) return undefined
      this.#credentialsInLog ||= hadCredentials
      const finished = this.#get(runId)
      if (finished.taskgroup_id != null) {
        this.log.appendRun(finished.taskgroup_id, finished)
        this.#groupChanged(finished.taskgroup_id, now)
      }
      this.#storeTurn(finished)
      if (outcome.status === 'completed') this.#remember(runId, outcome.output, now)
      this.#storeTrace(runId, outcome.status, now)
      this.#announce(finished)
      return finished
    })
    if (run === undefined) return
    this.#traces.delete(runId)
    this.changes.notify(runId)
    if (run.taskgroup_id != null) this.changes.notify(run.taskgroup_id)
  }

  /**
   * Removes deleted credentials from the write-ahead log too. Returns false if that must be retried, because another process
   * is reading the database.
   */
  forgetCredentials(): boolean {
    if (this.#credentialsInLog) this.#credentialsInLog = !truncateLog(this.#database)
    return !this.#credentialsInLog
  }

  /** Queues running runs again, after their execution was interrupted. */
  requeue(): void {
    this.#traces.clear()
    this.#sql.requeue.run(this.#clock.now())
  }

  /** Every run, in the order of creation. */
  records(): RunRecord[] {
    return this.#sql.records.all().map((row) => ({
      run_id: String(row['run_id']),
      taskgroup_id: row['taskgroup_id'] == null ? null : String(row['taskgroup_id']),
      status: toStatus(row['status']),
    }))
  }

  /** The turn of an ended run, which a version of the service without interactions has stored. */
  #endedTurn(runId: string): readonly Turn[] {
    const run = this.run(runId)
    return run === undefined || run.is_active ? [] : [this.#turn(runId)]
  }

  #turn(runId: string): Turn {
    const content = this.output(runId)?.content
    return { question: asText(this.input(runId)?.input), answer: asText(content) }
  }

  /** Stores the question and the answer of an ended run, so that others can continue from them. */
  #storeTurn({ run_id, interaction_id }: TaskRun): void {
    if (interaction_id === undefined) return
    const previous = this.input(run_id)?.previous_interaction_id
    this.#interactions.add({ id: interaction_id, previous, ...this.#turn(run_id) })
  }

  #remember(runId: string, output: TaskOutput, at: number): void {
    const input = this.input(runId)
    if (input === undefined) return
    const memory = { kind: 'task', id: runId, input: input.input, output: output.content, at } as const
    this.#memories.remember(input.memory_scope_key, memory)
  }

  #elementBasis(runId: string): Pick<ClaimedRun, 'elementBasis'> {
    return this.#sql.hasElementBasis.get(runId) === undefined ? {} : { elementBasis: true }
  }

  #storeTrace(runId: string, status: RunOutcome['status'], now: number): void {
    const trace = this.#traces.get(runId)
    if (trace === undefined) return
    this.#sql.insertTrace.run(runId, JSON.stringify(trace.ended(status, timestamp(now))))
  }

  #get(id: string): TaskRun {
    const run = this.run(id)
    if (run === undefined) throw new Error(`the run ${id} is not stored`)
    return run
  }

  #insertRun(groupId: string | null, { input, warnings, elementBasis }: NewRun, now: number): string {
    const id = identifier('trun')
    const { mcp_servers: servers, ...rest } = input
    // Clients may read the input, so credentials are stored separately, for the execution only.
    const shown = servers?.map(({ headers: _credentials, ...server }) => server)
    this.#sql.insertRun.run(
      id,
      groupId,
      input.processor,
      input.metadata === undefined ? null : JSON.stringify(input.metadata),
      JSON.stringify(shown === undefined ? rest : { ...rest, mcp_servers: shown }),
      servers === undefined ? null : JSON.stringify(servers),
      warnings.length === 0 ? null : JSON.stringify(warnings),
      now,
      now,
    )
    if (elementBasis === true) this.#sql.insertElementBasis.run(id)
    return id
  }

  /** Stores a change of the group's status, and appends it to the stream. */
  #groupChanged(groupId: string, now: number): TaskGroupStatus {
    this.#sql.touchGroup.run(now, groupId)
    const status = this.#status(groupId, now)
    this.log.appendStatus(groupId, status)
    return status
  }

  #status(groupId: string, modifiedAt: number): TaskGroupStatus {
    const counts = this.#sql.counts
      .all(groupId)
      .map((row): [RunStatus, number] => [toStatus(row['status']), Number(row['count'])])
    return {
      num_task_runs: counts.reduce((sum, [, count]) => sum + count, 0),
      task_run_status_counts: Object.fromEntries(counts),
      is_active: counts.some(([status]) => ACTIVE.has(status)),
      status_message: '',
      modified_at: timestamp(modifiedAt),
    }
  }

  /** Posts the run to its webhook, if it has one with this event type (§6.1). */
  #announce(run: TaskRun): void {
    const webhook = this.input(run.run_id)?.webhook
    if (webhook === undefined || !webhook.event_types.includes('task_run.status')) return
    this.#outbox.post(webhook.url, {
      type: 'task_run.status',
      timestamp: run.modified_at ?? run.created_at ?? '',
      data: run,
    })
  }
}

function createTables(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS task_groups (
      taskgroup_id TEXT PRIMARY KEY,
      metadata TEXT,
      created_at INTEGER NOT NULL,
      modified_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE IF NOT EXISTS task_runs (
      number INTEGER PRIMARY KEY,
      run_id TEXT NOT NULL UNIQUE,
      taskgroup_id TEXT REFERENCES task_groups,
      status TEXT NOT NULL DEFAULT 'queued',
      processor TEXT NOT NULL,
      metadata TEXT,
      input TEXT NOT NULL,
      mcp_servers TEXT,
      warnings TEXT,
      error TEXT,
      output TEXT,
      created_at INTEGER NOT NULL,
      modified_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS task_runs_of_group ON task_runs (taskgroup_id) WHERE taskgroup_id IS NOT NULL;
    CREATE INDEX IF NOT EXISTS task_runs_queued ON task_runs (number) WHERE status = 'queued';

    CREATE INDEX IF NOT EXISTS task_runs_active ON task_runs (number) WHERE status IN ('queued', 'running');

    CREATE TABLE IF NOT EXISTS task_run_traces (
      run_id TEXT PRIMARY KEY REFERENCES task_runs (run_id),
      trace TEXT NOT NULL
    ) STRICT;

    -- The runs whose request had the beta feature.
    CREATE TABLE IF NOT EXISTS task_run_element_basis (
      run_id TEXT PRIMARY KEY REFERENCES task_runs (run_id)
    ) STRICT, WITHOUT ROWID;

    -- Counting the runs of a large group at each change would be quadratic.
    CREATE TABLE IF NOT EXISTS task_group_counts (
      taskgroup_id TEXT NOT NULL REFERENCES task_groups,
      status TEXT NOT NULL,
      count INTEGER NOT NULL,
      PRIMARY KEY (taskgroup_id, status)
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER IF NOT EXISTS task_run_added AFTER INSERT ON task_runs WHEN new.taskgroup_id IS NOT NULL BEGIN
      INSERT INTO task_group_counts VALUES (new.taskgroup_id, new.status, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
    END;
    CREATE TRIGGER IF NOT EXISTS task_run_moved AFTER UPDATE OF status ON task_runs
      WHEN new.taskgroup_id IS NOT NULL AND new.status <> old.status BEGIN
      UPDATE task_group_counts SET count = count - 1
        WHERE taskgroup_id = old.taskgroup_id AND status = old.status;
      INSERT INTO task_group_counts VALUES (new.taskgroup_id, new.status, 1)
        ON CONFLICT DO UPDATE SET count = count + 1;
    END;
  `)
}

function prepareAll(database: DatabaseSync) {
  return {
    active: database.prepare(`SELECT count(*) AS count FROM task_runs WHERE status IN ('queued', 'running')`),
    insertGroup: database.prepare(
      'INSERT INTO task_groups (taskgroup_id, metadata, created_at, modified_at) VALUES (?, ?, ?, ?)',
    ),
    group: database.prepare('SELECT * FROM task_groups WHERE taskgroup_id = ?'),
    touchGroup: database.prepare('UPDATE task_groups SET modified_at = ? WHERE taskgroup_id = ?'),
    counts: database.prepare(
      'SELECT status, count FROM task_group_counts WHERE taskgroup_id = ? AND count > 0',
    ),
    insertRun: database.prepare(
      `INSERT INTO task_runs (run_id, taskgroup_id, processor, metadata, input, mcp_servers, warnings, created_at,
       modified_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    anyRun: database.prepare('SELECT 1 FROM task_runs WHERE taskgroup_id = ? LIMIT 1'),
    run: database.prepare('SELECT * FROM task_runs WHERE run_id = ?'),
    credentials: database.prepare('SELECT mcp_servers FROM task_runs WHERE run_id = ?'),
    claim: database.prepare(
      `UPDATE task_runs SET status = 'running', modified_at = ?
       WHERE number = (
         SELECT number FROM task_runs AS queued WHERE status = 'queued' AND NOT EXISTS (
           SELECT 1 FROM task_runs AS earlier
           WHERE earlier.run_id = 'trun_' || substr(queued.input ->> '$.previous_interaction_id', 6)
           AND earlier.status IN ('queued', 'running')
         ) ORDER BY number LIMIT 1
       )
       RETURNING run_id, taskgroup_id, input, mcp_servers`,
    ),
    finish: database.prepare(
      `UPDATE task_runs SET status = ?, output = ?, error = ?, warnings = ?, mcp_servers = NULL, modified_at = ?
       WHERE run_id = ? AND status = 'running'`,
    ),
    hasElementBasis: database.prepare('SELECT 1 FROM task_run_element_basis WHERE run_id = ?'),
    insertElementBasis: database.prepare('INSERT INTO task_run_element_basis (run_id) VALUES (?)'),
    trace: database.prepare('SELECT trace FROM task_run_traces WHERE run_id = ?'),
    insertTrace: database.prepare('INSERT OR REPLACE INTO task_run_traces (run_id, trace) VALUES (?, ?)'),
    requeue: database.prepare(
      `UPDATE task_runs SET status = 'queued', modified_at = ? WHERE status = 'running'`,
    ),
    records: database.prepare('SELECT run_id, taskgroup_id, status FROM task_runs ORDER BY number'),
  }
}

function toRun(row: Row): TaskRun {
  const run_id = String(row['run_id'])
  const status = toStatus(row['status'])
  return {
    run_id,
    interaction_id: interactionIdOf(run_id),
    taskgroup_id: row['taskgroup_id'] == null ? null : String(row['taskgroup_id']),
    status,
    is_active: ACTIVE.has(status),
    warnings: parse(row['warnings']),
    error: parse(row['error']),
    processor: String(row['processor']),
    metadata: parse(row['metadata']) ?? {},
    created_at: timestamp(row['created_at']),
    modified_at: timestamp(row['modified_at']),
  }
}

/** Each run is one turn of an interaction. The ids differ in their prefix only, which {@link TaskStore.claim} relies on. */
function interactionIdOf(runId: string): string {
  return runId.replace(/^trun_/, 'intr_')
}

/** The run of an interaction. */
export function runIdOf(interactionId: string): string {
  return interactionId.replace(/^intr_/, 'trun_')
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function toStatus(value: unknown): RunStatus {
  const status = RUN_STATUSES.find((known) => known === value)
  if (status === undefined) throw new Error(`a stored run has the unknown status ${String(value)}`)
  return status
}

/** Parses stored JSON; null if there is none. Not validated again, since it was valid when it was stored. */
function parse(json: SQLOutputValue | undefined) {
  return typeof json === 'string' ? JSON.parse(json) : null
}

/** Unix ms as RFC 3339. */
function timestamp(ms: SQLOutputValue | undefined): string {
  return new Date(Number(ms)).toISOString()
}
