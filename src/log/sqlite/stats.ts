import { parseJson } from '../../protocol/json.ts'
import { originalText } from '../../protocol/stored-text.ts'
import type { StoreStats } from '../store/retention-store.ts'
import type { SqliteClaims } from './claims.ts'
import type { SqliteDeadLetters } from './dead-letters.ts'
import type { Entries } from './entries.ts'
import type { LogFile, Row } from './log-file.ts'
import type { SqliteTrimming } from './trimming.ts'

/** Dependencies of {@link Stats}. */
interface Parts {
  readonly file: LogFile
  readonly entries: Entries
  readonly deadLetters: SqliteDeadLetters
  readonly claims: SqliteClaims
  readonly trimming: SqliteTrimming
}

/** The statistics of a log. */
export class Stats {
  readonly #log: Parts
  readonly #statements: ReturnType<typeof prepare>

  constructor(log: Parts) {
    this.#log = log
    this.#statements = prepare(log)
  }

  /** Reads the statistics. Call it within a transaction. */
  read(now: number): StoreStats {
    const { trimming, deadLetters, entries } = this.#log
    const { log, first, readers, streams, inbox } = this.#statements
    const { bytes, walBytes } = trimming.usage()
    const row = log.get()
    const counts = deadLetters.counts()
    const oldest = first.get(0)?.['recorded']
    const end = entries.end()
    const ends = { trimmed: Number(row?.['trimmed_position']), last: end.position }
    const isEmpty = oldest === undefined
    const pausedBy = row?.['paused_by']
    const owners = this.#log.claims.owners()
    const found = inbox.get()
    return {
      now,
      entries: Number(row?.['entries']),
      bytes,
      walBytes,
      oldest: isEmpty ? null : Number(oldest),
      newest: isEmpty ? null : end.recorded,
      readers: readers.all().map((reader) => this.#reader(reader, ends, counts, owners)),
      streams: streams.all().map(({ name, position }) => {
        const original = originalText(String(name))
        return { name: original, position: originalText(String(position)), owner: owners(original) }
      }),
      inbox: { pending: Number(found?.['pending']), bytes: Number(found?.['bytes']) },
      pausedBy: typeof pausedBy === 'string' ? originalText(pausedBy) : null,
    }
  }

  #reader(
    row: Row,
    { trimmed, last }: { readonly trimmed: number; readonly last: number },
    deadLetters: ReadonlyMap<string, number>,
    owners: (name: string) => string | null,
  ): StoreStats['readers'][number] {
    const name = originalText(String(row['name']))
    const cursor = Number(row['cursor'])
    const owner = owners(name)
    const acknowledged = parseJson(String(row['acknowledged']))
    const acknowledgedAhead = Array.isArray(acknowledged) ? acknowledged.length : 0
    const next = this.#statements.first.get(cursor)?.['recorded']
    return {
      name,
      cursor: this.#log.entries.positions.format(cursor),
      behind: next === undefined ? 0 : Math.max(0, last - Math.max(cursor, trimmed) - acknowledgedAhead),
      oldestUnacknowledged: next === undefined ? null : Number(next),
      acknowledgedAhead,
      deadLetters: deadLetters.get(name) ?? 0,
      holdsRetention: row['holds_retention'] !== 0,
      // The token of an earlier run says nothing of this one.
      isPaused: owner !== null && row['is_paused'] === 1,
      owner,
    }
  }
}

function prepare({ file: { database } }: Parts) {
  return {
    log: database.prepare('SELECT entries, paused_by, trimmed_position FROM rivulet_log'),
    first: database.prepare(
      'SELECT recorded FROM rivulet_entry WHERE position > ? ORDER BY position LIMIT 1',
    ),
    readers: database.prepare(
      `SELECT name, cursor, acknowledged, holds_retention, paused_token = token AS is_paused
       FROM rivulet_reader LEFT JOIN rivulet_process USING (name) LEFT JOIN rivulet_claim USING (name) ORDER BY name`,
    ),
    streams: database.prepare('SELECT name, position FROM rivulet_stream ORDER BY name'),
    inbox: database.prepare('SELECT pending, bytes FROM rivulet_inbox'),
  }
}
