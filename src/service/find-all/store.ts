import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type {
  FindAllCandidate,
  FindAllEnrichment,
  FindAllRequest,
  FindAllRun,
  FindAllSchema,
} from '../../protocol/find-all.ts'
import { RUN_STATUSES, type McpServer, type RunStatus } from '../../protocol/task.ts'
import type { FindAllWebhook } from '../../protocol/webhook.ts'
import type { Clock } from '../clock.ts'
import { type Row, transaction, truncateLog } from '../database.ts'
import { identifier } from '../identifier.ts'
import type { Memories } from '../memory/memories.ts'
import { Listeners } from '../tasks/listeners.ts'
import type { Outbox } from '../webhooks/outbox.ts'
import { FindAllLog } from './event-log.ts'

/** Why a run ends. */
export type Reason = 'low_match_rate' | 'match_limit_met' | 'candidates_exhausted' | 'error_occurred'

/** A candidate that a search found, before it is generated. */
export interface PlannedCandidate {
  readonly name: string
  readonly url: string
}

/** A stored run with the data for its execution. */
export interface StoredRun {
  readonly id: string
  readonly status: RunStatus
  readonly request: FindAllRequest
  readonly matchLimit: number
  readonly generated: number
  readonly matched: number
  /** Number of candidates since the last match. */
  readonly misses: number
  readonly isPlanned: boolean
  /** Whether the search found more candidates than the generator takes. */
  readonly hasMore: boolean
  /** Why no further candidates are generated; undefined while they are. */
  readonly reason: string | undefined
}

/** A candidate in the database, and its index in the order of generation. */
export interface StoredCandidate {
  readonly rank: number
  readonly candidate: FindAllCandidate
}

/** An enrichment of one candidate that has not been made yet. */
export interface PendingEnrichment {
  readonly rank: number
  readonly candidate: FindAllCandidate
  /** The index of the enrichment. */
  readonly index: number
  /** The enrichment, with the credentials for its tool servers. */
  readonly enrichment: FindAllEnrichment
  /** Whether these credentials were deleted, since the run ended and was extended later. */
  readonly isWithoutCredentials: boolean
}

type CandidateChange = 'generated' | 'matched' | 'unmatched' | 'discarded' | 'enriched'

const ACTIVE: ReadonlySet<RunStatus> = new Set<RunStatus>(['queued', 'running', 'cancelling'])

/** FindAll runs in the service's database. Each change is one transaction, with its events and webhooks. */
export class FindAllStore {
  readonly log: FindAllLog
  /** Notifies listeners of a change to a run, after it is stored. */
  readonly changes = new Listeners()
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #outbox: Outbox
  readonly #memories: Memories
  readonly #sql
  /** Whether the write-ahead log may hold deleted credentials. */
  #credentialsInLog = false

  constructor(database: DatabaseSync, clock: Clock, outbox: Outbox, memories: Memories) {
    this.#database = database
    this.#clock = clock
    this.#outbox = outbox
    this.#memories = memories
    createTables(database)
    this.log = new FindAllLog(database)
    this.#sql = prepareAll(database)
  }

  /** The current time of the service's clock, Unix ms. */
  now(): number {
    return this.#clock.now()
  }

  create(request: FindAllRequest): FindAllRun {
    const id = identifier('findall')
    this.#change(id, () => {
      const now = this.#clock.now()
      this.#sql.insert.run(id, JSON.stringify(request), request.match_limit, now, now)
      this.#statusChanged(id)
    })
    return this.#get(id)
  }

  run(id: string): FindAllRun | undefined {
    const row = this.#sql.run.get(id)
    return row === undefined ? undefined : toRun(row)
  }

  stored(id: string): StoredRun | undefined {
    const row = this.#sql.run.get(id)
    return row === undefined ? undefined : toStored(row)
  }

  /** The target and conditions of a run, without the credentials of its enrichments. */
  schema(id: string): FindAllSchema {
    const { request, matchLimit } = this.#getStored(id)
    const enrichments = this.#sql.enrichments.all(id).map((row) => parse(row['enrichment']))
    return {
      objective: request.objective,
      entity_type: request.entity_type,
      match_conditions: request.match_conditions,
      ...(enrichments.length > 0 && { enrichments }),
      generator: request.generator,
      match_limit: matchLimit,
    }
  }

  /** The candidates of a run as JSON, in the order in which they were generated. */
  candidates(id: string): string {
    const rows = this.#sql.candidates.all(id)
    return `[${rows.map((row) => String(row['candidate'])).join(',')}]`
  }

  /** The ids of runs with unfinished work, oldest first. */
  unfinished(): string[] {
    return this.#sql.unfinished.all().map((row) => String(row['findall_id']))
  }

  /** The number of runs that have not ended. */
  active(): number {
    return Number(this.#sql.active.get()?.['count'] ?? 0)
  }

  /** Requests the end of an active run. */
  cancel(id: string): void {
    this.#setStatus(id, 'cancelling')
  }

  /** Starts an ended run again, to find this many more matches. */
  extend(id: string, additional: number): void {
    this.#change(id, () => {
      this.#sql.extend.run(additional, id)
      this.#touch(id, 'running')
      this.#schemaChanged(id)
      this.#statusChanged(id)
    })
  }

  /** Adds an enrichment for all matched candidates, and those matched later. */
  enrich(id: string, { mcp_servers: servers, ...enrichment }: FindAllEnrichment): void {
    // Clients may read the schema, so credentials are stored separately.
    const shown = servers?.map(({ headers: _credentials, ...server }) => server)
    this.#change(id, () => {
      this.#sql.insertEnrichment.run(
        id,
        this.#sql.enrichments.all(id).length,
        JSON.stringify({ ...enrichment, ...(shown !== undefined && { mcp_servers: shown }) }),
        hasCredentials(servers) ? JSON.stringify(servers) : null,
      )
      this.#schemaChanged(id)
      if (this.#get(id).status.is_active) return
      this.#touch(id, 'running')
      this.#statusChanged(id)
    })
  }

  /** Marks a queued run as running. */
  start(id: string): void {
    this.#setStatus(id, 'running')
  }

  /** Stores the candidates that a run is going to generate, in order. */
  plan(id: string, candidates: readonly PlannedCandidate[], hasMore: boolean): void {
    transaction(this.#database, () => {
      for (const [rank, { name, url }] of candidates.entries()) {
        const candidate = { candidate_id: identifier('candidate'), name, url, match_status: 'generated' }
        this.#sql.insertCandidate.run(id, rank, name.toLowerCase(), JSON.stringify(candidate))
      }
      this.#sql.planned.run(hasMore ? 1 : 0, id)
    })
  }

  /** The first planned candidate; undefined if there is none. */
  planned(id: string): StoredCandidate | undefined {
    return toCandidate(this.#sql.inState.get(id, 'planned'))
  }

  /** The candidate that was generated and not evaluated yet. */
  unevaluated(id: string): StoredCandidate | undefined {
    return toCandidate(this.#sql.inState.get(id, 'generated'))
  }

  /** Whether an earlier candidate has the name of the one with this rank. */
  isDuplicate(id: string, rank: number): boolean {
    return this.#sql.duplicate.get(id, rank) !== undefined
  }

  /** Stores a change of a candidate: its state is its `match_status`. */
  candidate(id: string, rank: number, candidate: FindAllCandidate): void {
    const { match_status: state } = candidate
    this.#change(id, () => {
      this.#sql.updateCandidate.run(state, JSON.stringify(candidate), id, rank)
      this.#sql.count.run(state, id)
      this.#announce(id, state, candidate)
    })
  }

  /** The first enrichment that a matched candidate lacks. */
  unenriched(id: string): PendingEnrichment | undefined {
    const row = this.#sql.unenriched.get(id)
    if (row === undefined) return undefined
    const enrichment: FindAllEnrichment = parse(row['enrichment'])
    const { credentials } = row
    const servers: McpServer[] | null = credentials === FORGOTTEN ? null : parse(credentials)
    return {
      rank: Number(row['rank']),
      candidate: parse(row['candidate']),
      index: Number(row['number']),
      enrichment: servers === null ? enrichment : { ...enrichment, mcp_servers: servers },
      isWithoutCredentials: credentials === FORGOTTEN,
    }
  }

  /** Stores an enriched candidate. */
  enriched(id: string, { rank, index }: PendingEnrichment, candidate: FindAllCandidate): void {
    this.#change(id, () => {
      this.#sql.enriched.run(index + 1, JSON.stringify(candidate), id, rank)
      this.#announce(id, 'enriched', candidate)
    })
  }

  /** Stores why no further candidates are generated. The run stays active until its enrichments are made. */
  exhausted(id: string, reason: Reason): void {
    this.#sql.reason.run(reason, id)
  }

  /** Ends a run: stores its status, its event, its webhook and its memory, and deletes the credentials of its enrichments. */
  end(id: string, status: 'completed' | 'failed' | 'cancelled', reason: string): void {
    this.#change(id, () => {
      this.#sql.reason.run(reason, id)
      this.#credentialsInLog = Number(this.#sql.forget.run(id).changes) > 0 || this.#credentialsInLog
      this.#touch(id, status)
      this.#statusChanged(id)
      const run = this.#get(id)
      this.#post(id, { type: `findall.run.${status}`, timestamp: run.modified_at ?? '', data: run })
      const { request, matched } = this.#getStored(id)
      const memory = {
        kind: 'findall',
        id,
        input: request.objective,
        matched,
        at: this.#clock.now(),
      } as const
      this.#memories.remember(request.memory_scope_key, memory)
    })
  }

  /** Removes deleted credentials from the write-ahead log too. Returns false if that must be retried. */
  forgetCredentials(): boolean {
    if (this.#credentialsInLog) this.#credentialsInLog = !truncateLog(this.#database)
    return !this.#credentialsInLog
  }

  #setStatus(id: string, status: RunStatus): void {
    this.#change(id, () => {
      this.#touch(id, status)
      this.#statusChanged(id)
    })
  }

  #change(id: string, work: () => void): void {
    transaction(this.#database, work)
    this.changes.notify(id)
  }

  #touch(id: string, status: RunStatus): void {
    this.#sql.status.run(status, this.#clock.now(), id)
  }

  #statusChanged(id: string): void {
    const run = this.#get(id)
    this.log.append(id, 'findall.status', run.modified_at ?? '', run)
  }

  #schemaChanged(id: string): void {
    this.#sql.touch.run(this.#clock.now(), id)
    this.log.append(id, 'findall.schema.updated', timestamp(this.#clock.now()), this.schema(id))
  }

  #announce(id: string, change: CandidateChange, candidate: FindAllCandidate): void {
    const now = this.#clock.now()
    this.#sql.touch.run(now, id)
    this.log.append(id, `findall.candidate.${change}`, timestamp(now), candidate)
    if (change === 'discarded') return
    this.#post(id, {
      type: `findall.candidate.${change}`,
      timestamp: timestamp(now),
      data: { ...candidate, findall_id: id },
    })
  }

  /** Posts a webhook, if the run has one with this event type. */
  #post(id: string, payload: FindAllWebhook): void {
    const { webhook } = this.#getStored(id).request
    if (webhook?.event_types.includes(payload.type) === true) this.#outbox.post(webhook.url, payload)
  }

  #get(id: string): FindAllRun {
    return toRun(this.#row(id))
  }

  #getStored(id: string): StoredRun {
    return toStored(this.#row(id))
  }

  #row(id: string): Row {
    const row = this.#sql.run.get(id)
    if (row === undefined) throw new Error(`the FindAll run ${id} is not stored`)
    return row
  }
}

/** Replaces credentials that were deleted. */
const FORGOTTEN = ''

function hasCredentials(servers: readonly McpServer[] | undefined): boolean {
  return servers?.some(({ headers = {} }) => Object.keys(headers).length > 0) === true
}

function createTables(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS find_all_runs (
      number INTEGER PRIMARY KEY,
      findall_id TEXT NOT NULL UNIQUE,
      status TEXT NOT NULL DEFAULT 'queued',
      request TEXT NOT NULL,
      match_limit INTEGER NOT NULL,
      generated INTEGER NOT NULL DEFAULT 0,
      matched INTEGER NOT NULL DEFAULT 0,
      misses INTEGER NOT NULL DEFAULT 0,
      is_planned INTEGER NOT NULL DEFAULT 0,
      has_more INTEGER NOT NULL DEFAULT 0,
      reason TEXT,
      created_at INTEGER NOT NULL,
      modified_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS find_all_runs_unfinished ON find_all_runs (number)
      WHERE status IN ('queued', 'running', 'cancelling');

    CREATE TABLE IF NOT EXISTS find_all_enrichments (
      findall_id TEXT NOT NULL REFERENCES find_all_runs (findall_id),
      number INTEGER NOT NULL,
      enrichment TEXT NOT NULL,
      credentials TEXT,
      PRIMARY KEY (findall_id, number)
    ) STRICT, WITHOUT ROWID;

    -- The status of a planned candidate in its JSON is that of its first event.
    CREATE TABLE IF NOT EXISTS find_all_candidates (
      findall_id TEXT NOT NULL REFERENCES find_all_runs (findall_id),
      rank INTEGER NOT NULL,
      state TEXT NOT NULL DEFAULT 'planned',
      name TEXT NOT NULL,
      candidate TEXT NOT NULL,
      enrichments INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (findall_id, rank)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS find_all_candidates_by_state ON find_all_candidates (findall_id, state, rank);
    CREATE INDEX IF NOT EXISTS find_all_candidates_by_name ON find_all_candidates (findall_id, name, rank);
  `)
}

function prepareAll(database: DatabaseSync) {
  return {
    insert: database.prepare(
      'INSERT INTO find_all_runs (findall_id, request, match_limit, created_at, modified_at) VALUES (?, ?, ?, ?, ?)',
    ),
    run: database.prepare('SELECT * FROM find_all_runs WHERE findall_id = ?'),
    active: database.prepare(
      `SELECT count(*) AS count FROM find_all_runs WHERE status IN ('queued', 'running', 'cancelling')`,
    ),
    unfinished: database.prepare(
      `SELECT findall_id FROM find_all_runs WHERE status IN ('queued', 'running', 'cancelling') ORDER BY number`,
    ),
    // The time distinguishes states of a run that are equal otherwise.
    status: database.prepare(
      'UPDATE find_all_runs SET status = ?, modified_at = max(?, modified_at + 1) WHERE findall_id = ?',
    ),
    touch: database.prepare(
      'UPDATE find_all_runs SET modified_at = max(?, modified_at) WHERE findall_id = ?',
    ),
    reason: database.prepare('UPDATE find_all_runs SET reason = ? WHERE findall_id = ?'),
    extend: database.prepare(
      'UPDATE find_all_runs SET match_limit = match_limit + ?, reason = NULL WHERE findall_id = ?',
    ),
    planned: database.prepare('UPDATE find_all_runs SET is_planned = 1, has_more = ? WHERE findall_id = ?'),
    count: database.prepare(
      `UPDATE find_all_runs SET generated = generated + (?1 = 'generated'), matched = matched + (?1 = 'matched'),
         misses = CASE ?1 WHEN 'matched' THEN 0 WHEN 'unmatched' THEN misses + 1 ELSE misses END
       WHERE findall_id = ?2`,
    ),
    enrichments: database.prepare(
      'SELECT enrichment FROM find_all_enrichments WHERE findall_id = ? ORDER BY number',
    ),
    insertEnrichment: database.prepare('INSERT INTO find_all_enrichments VALUES (?, ?, ?, ?)'),
    forget: database.prepare(
      `UPDATE find_all_enrichments SET credentials = '${FORGOTTEN}'
       WHERE findall_id = ? AND credentials <> '${FORGOTTEN}'`,
    ),
    insertCandidate: database.prepare(
      'INSERT INTO find_all_candidates (findall_id, rank, name, candidate) VALUES (?, ?, ?, ?)',
    ),
    inState: database.prepare(
      'SELECT rank, candidate FROM find_all_candidates WHERE findall_id = ? AND state = ? ORDER BY rank LIMIT 1',
    ),
    duplicate: database.prepare(
      `SELECT 1 FROM find_all_candidates AS this JOIN find_all_candidates AS earlier
         ON earlier.findall_id = this.findall_id AND earlier.name = this.name AND earlier.rank < this.rank
       WHERE this.findall_id = ? AND this.rank = ? LIMIT 1`,
    ),
    updateCandidate: database.prepare(
      'UPDATE find_all_candidates SET state = ?, candidate = ? WHERE findall_id = ? AND rank = ?',
    ),
    candidates: database.prepare(
      `SELECT candidate FROM find_all_candidates WHERE findall_id = ? AND state <> 'planned' ORDER BY rank`,
    ),
    unenriched: database.prepare(
      `SELECT rank, candidate, number, enrichment, credentials FROM find_all_candidates AS found
       JOIN find_all_enrichments AS added ON added.findall_id = found.findall_id AND added.number = found.enrichments
       WHERE found.findall_id = ? AND state = 'matched' ORDER BY rank LIMIT 1`,
    ),
    enriched: database.prepare(
      'UPDATE find_all_candidates SET enrichments = ?, candidate = ? WHERE findall_id = ? AND rank = ?',
    ),
  }
}

function toRun(row: Row): FindAllRun {
  const { id, status, request, generated, matched, reason } = toStored(row)
  const is_active = ACTIVE.has(status)
  return {
    findall_id: id,
    generator: request.generator,
    status: {
      status,
      is_active,
      metrics: { generated_candidates_count: generated, matched_candidates_count: matched },
      termination_reason: is_active ? null : (reason ?? null),
    },
    ...(request.metadata !== undefined && { metadata: request.metadata }),
    created_at: timestamp(Number(row['created_at'])),
    modified_at: timestamp(Number(row['modified_at'])),
  }
}

function toStored(row: Row): StoredRun {
  const status = RUN_STATUSES.find((known) => known === row['status'])
  if (status === undefined) throw new Error(`a stored run has the unknown status ${String(row['status'])}`)
  return {
    id: String(row['findall_id']),
    status,
    request: parse(row['request']),
    matchLimit: Number(row['match_limit']),
    generated: Number(row['generated']),
    matched: Number(row['matched']),
    misses: Number(row['misses']),
    isPlanned: row['is_planned'] === 1,
    hasMore: row['has_more'] === 1,
    reason: typeof row['reason'] === 'string' ? row['reason'] : undefined,
  }
}

function toCandidate(row: Row | undefined): StoredCandidate | undefined {
  return row === undefined ? undefined : { rank: Number(row['rank']), candidate: parse(row['candidate']) }
}

/** Parses stored JSON; null if there is none. Not validated again, since it was valid when it was stored. */
function parse(json: SQLOutputValue | undefined) {
  return typeof json === 'string' ? JSON.parse(json) : null
}

/** Unix ms as RFC 3339. */
function timestamp(ms: number): string {
  return new Date(ms).toISOString()
}
