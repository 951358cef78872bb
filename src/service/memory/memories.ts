import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'
import type { Memory, MemoryEvictRequest, MemoryRetrieveRequest, MemoryScope } from '../../protocol/memory.ts'
import type { MonitorEvent } from '../../protocol/monitor.ts'
import type { Clock } from '../clock.ts'
import { shorten } from '../corpus/excerpts.ts'
import { EQUAL_TERMS } from '../corpus/frequencies.ts'
import { anyTerm } from '../corpus/match.ts'
import { searchTerms } from '../corpus/query-terms.ts'
import { rankTexts } from '../corpus/text-ranking.ts'
import { type Row, transaction } from '../database.ts'

/** Maximum number of memories of a scope. Together with the lengths, it bounds what a retrieval indexes: about 700 kB. */
const MAX_MEMORIES = 500
/** Maximum number of events of all monitors of a scope. */
const MAX_EVENTS = 500
/** Maximum length of the excerpt of an input, of an output and of an event, in characters. */
const LENGTHS = { input: 500, output: 600, event: 300 }
/** Memories in an answer when no number is asked for. */
const DEFAULT_LIMIT = 20
/** Maximum number of events of a monitor in an answer. */
const MAX_MATCHED_EVENTS = 10
/** The age at which a memory has lost half of what it gains by being new, in ms. */
const HALF_LIFE = 7 * 86_400_000
/** The stored scope of the personal memory. No key is empty. */
const PERSONAL = ''

/** What became a memory. `at` is Unix time in ms. */
export type NewMemory = { readonly id: string; readonly input: unknown; readonly at: number } & (
  | { readonly kind: 'task'; readonly output: unknown }
  | { readonly kind: 'findall'; readonly matched: number }
  | { readonly kind: 'monitor' }
)

type Scope = MemoryScope['memory_scope_key']

/** A text of a memory, or of one of its events. */
interface Text {
  readonly row: Row
  readonly event?: Row
  readonly text: string
  readonly at: number
}

/** A memory that a retrieval has found, with its events, best first. */
interface FoundMemory {
  readonly row: Row
  readonly events: readonly Row[]
}

/**
 * The memories in the service's database, by scope. What becomes one is stored by the area that it comes from, in the transaction of the
 * change. A scope over its bounds loses its oldest memories and events.
 */
export class Memories {
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #sql

  constructor(database: DatabaseSync, clock: Clock) {
    this.#database = database
    this.#clock = clock
    createTables(database)
    this.#sql = prepareAll(database)
  }

  /** Stores a completed task run, or a FindAll run that has ended, again if it has ended before. */
  remember(scope: Scope, memory: NewMemory): void {
    const within = scope ?? PERSONAL
    transaction(this.#database, () => {
      this.#put(within, memory)
      this.#sql.trim.run(within)
    })
  }

  /** Stores what an execution of a monitor has detected. A monitor that has detected nothing, or was evicted since, is no memory. */
  monitorRan(
    scope: Scope,
    monitor: Omit<NewMemory, 'kind'>,
    groupId: string,
    events: readonly MonitorEvent[],
  ): void {
    const { id, at } = monitor
    const within = scope ?? PERSONAL
    transaction(this.#database, () => {
      const detected = events.flatMap((event) => {
        if (!('event_id' in event)) return []
        const output = 'changed_output' in event ? event.changed_output : event.output
        return [[event.event_id, excerptOf(output.content, LENGTHS.event)] as const]
      })
      if (detected.length === 0) {
        this.#sql.touch.run(at, within, id)
        return
      }
      const number = this.#put(within, { ...monitor, kind: 'monitor' })
      for (const [eventId, excerpt] of detected) {
        this.#sql.addEvent.run(within, number, eventId, groupId, at, excerpt)
      }
      this.#sql.trimEvents.run(within)
      this.#sql.trim.run(within)
    })
  }

  /** Stores that a monitor is cancelled, if it is a memory. */
  monitorCancelled(scope: Scope, id: string): void {
    this.#sql.cancel.run(scope ?? PERSONAL, id)
  }

  /** Forgets all memories of a scope. */
  clear({ memory_scope_key }: MemoryScope): void {
    this.#sql.clear.run(memory_scope_key ?? PERSONAL)
  }

  /** Forgets one memory of a scope, if it has it. */
  evict({ memory_scope_key, kind, id }: MemoryEvictRequest): void {
    this.#sql.evict.run(memory_scope_key ?? PERSONAL, kind, id)
  }

  /**
   * The memories that match a query, best first; without a query the most recent ones. Rejects with the reason of the signal if that is
   * aborted before its turn.
   */
  async retrieve(request: MemoryRetrieveRequest, signal?: AbortSignal): Promise<Memory[]> {
    const { query, kind = null, limit = DEFAULT_LIMIT, since, memory_scope_key } = request
    const scope = memory_scope_key ?? PERSONAL
    const rows = this.#sql.recent.all(scope, kind, since == null ? null : Date.parse(since))
    const eventsOf = Map.groupBy(this.#sql.events.all(scope), ({ memory }) => memory)
    const all = rows.map((row): FoundMemory => ({ row, events: eventsOf.get(row['number']) ?? [] }))
    const found = query == null || query.trim() === '' ? all : await this.#matching(query, all, signal)
    return found.slice(0, limit).map(toMemory)
  }

  /** The memories and events that match, best first. The texts of the scope alone are compared. */
  async #matching(query: string, all: readonly FoundMemory[], signal?: AbortSignal): Promise<FoundMemory[]> {
    const expression = anyTerm(searchTerms({ queries: [query] }, EQUAL_TERMS).queries)
    if (expression === undefined) return []
    const texts = all.flatMap(({ row, events }): Text[] => [
      { row, text: `${row['input']}\n${row['output']}`, at: Number(row['updated_at']) },
      ...events.map((event) => ({
        row,
        event,
        text: String(event['excerpt']),
        at: Number(event['detected_at']),
      })),
    ])
    const entries = texts.map(({ text }, id) => [id, text] as const)
    const now = this.#clock.now()
    const matches = await rankTexts(entries, expression, texts.length, signal)
    const ranked = matches
      .flatMap(({ id, score }) => {
        const text = texts[id]
        return text === undefined ? [] : [{ ...text, score: score * advantageOf(now - text.at) }]
      })
      .toSorted((a, b) => b.score - a.score)
    // A memory ranks by the best of its texts.
    const byMemory = Map.groupBy(ranked, ({ row }) => row)
    return Array.from(byMemory, ([row, found]) => ({
      row,
      events: found.flatMap(({ event }) => (event === undefined ? [] : [event])),
    }))
  }

  /** Stores a memory, and returns its number. */
  #put(scope: string, memory: NewMemory): number {
    const { kind, id, input, at } = memory
    const output = kind === 'task' ? excerptOf(memory.output, LENGTHS.output) : ''
    const matched = kind === 'findall' ? memory.matched : 0
    const excerpt = excerptOf(input, LENGTHS.input)
    return Number(this.#sql.put.get(scope, kind, id, excerpt, output, matched, at)?.['number'])
  }
}

/** What the score of a memory of this age is multiplied with: 1 for a new one, 0.5 for an old one. */
function advantageOf(age: number): number {
  return (1 + 2 ** (-Math.max(0, age) / HALF_LIFE)) / 2
}

/** The beginning of a text, or of a value as JSON, cut at a word. */
function excerptOf(value: unknown, length: number): string {
  return shorten((typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).trim(), length)
}

function createTables(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS memories (
      number INTEGER PRIMARY KEY,
      scope TEXT NOT NULL, -- empty: personal
      kind TEXT NOT NULL,
      id TEXT NOT NULL,
      input TEXT NOT NULL,
      output TEXT NOT NULL,
      matched INTEGER NOT NULL,
      is_cancelled INTEGER NOT NULL DEFAULT 0,
      updated_at INTEGER NOT NULL,
      UNIQUE (scope, kind, id)
    ) STRICT;
    CREATE INDEX IF NOT EXISTS memories_by_time ON memories (scope, updated_at, number);

    CREATE TABLE IF NOT EXISTS memory_events (
      position INTEGER PRIMARY KEY,
      scope TEXT NOT NULL,
      memory INTEGER NOT NULL REFERENCES memories (number) ON DELETE CASCADE,
      event_id TEXT NOT NULL,
      event_group_id TEXT NOT NULL,
      detected_at INTEGER NOT NULL,
      excerpt TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS memory_events_by_scope ON memory_events (scope, position);
    CREATE INDEX IF NOT EXISTS memory_events_by_memory ON memory_events (memory);
  `)
}

function prepareAll(database: DatabaseSync) {
  return {
    put: database.prepare(
      `INSERT INTO memories (scope, kind, id, input, output, matched, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET input = excluded.input, output = excluded.output, matched = excluded.matched,
         updated_at = excluded.updated_at
       RETURNING number`,
    ),
    trim: database.prepare(
      `DELETE FROM memories WHERE number IN (
         SELECT number FROM memories WHERE scope = ? ORDER BY updated_at DESC, number DESC LIMIT -1 OFFSET ${MAX_MEMORIES}
       )`,
    ),
    touch: database.prepare(
      `UPDATE memories SET updated_at = ? WHERE scope = ? AND kind = 'monitor' AND id = ?`,
    ),
    cancel: database.prepare(
      `UPDATE memories SET is_cancelled = 1 WHERE scope = ? AND kind = 'monitor' AND id = ?`,
    ),
    clear: database.prepare('DELETE FROM memories WHERE scope = ?'),
    evict: database.prepare('DELETE FROM memories WHERE scope = ? AND kind = ? AND id = ?'),
    recent: database.prepare(
      `SELECT * FROM memories
       WHERE scope = ?1 AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR updated_at >= ?3)
       ORDER BY updated_at DESC, number DESC`,
    ),
    addEvent: database.prepare(
      `INSERT INTO memory_events (scope, memory, event_id, event_group_id, detected_at, excerpt)
       VALUES (?, ?, ?, ?, ?, ?)`,
    ),
    trimEvents: database.prepare(
      `DELETE FROM memory_events WHERE position IN (
         SELECT position FROM memory_events WHERE scope = ? ORDER BY position DESC LIMIT -1 OFFSET ${MAX_EVENTS}
       )`,
    ),
    events: database.prepare('SELECT * FROM memory_events WHERE scope = ? ORDER BY position DESC'),
  }
}

function toMemory({ row, events }: FoundMemory): Memory {
  const { kind } = row
  const common = {
    id: String(row['id']),
    input_excerpt: String(row['input']),
    updated_at: timestamp(row['updated_at']),
  }
  if (kind === 'task') return { kind, ...common, output_excerpt: String(row['output']) }
  if (kind === 'findall') return { kind, ...common, matched_count: Number(row['matched']) }
  const matched_events = events.slice(0, MAX_MATCHED_EVENTS).map((event) => ({
    event_id: String(event['event_id']),
    event_group_id: String(event['event_group_id']),
    detected_at: timestamp(event['detected_at']),
    excerpt: String(event['excerpt']),
  }))
  const status = row['is_cancelled'] === 1 ? 'cancelled' : 'active'
  return { kind: 'monitor', ...common, status, matched_events }
}

/** RFC 3339, from Unix time in ms. */
function timestamp(ms: SQLOutputValue | undefined): string {
  return new Date(Number(ms)).toISOString()
}
