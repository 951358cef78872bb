import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { parseJson } from '../../protocol/json.ts'
import { ProcessPositions } from '../state/process-position.ts'
import { movedCheckpoint } from '../process/progress.ts'
import { eventJsonOf } from '../store/copied-event.ts'
import { logCompleteness } from '../store/completeness.ts'
import { COPIED_PAGE } from '../store/copy-store.ts'
import type { CopiedEntry, CopiedRecord, CopyHead, CopySource } from '../store/copy-store.ts'
import type { Position } from '../store/entry.ts'
import { identityBytes } from '../store/identity-key.ts'
import { UNDIVIDED } from '../store/sharing-store.ts'
import { originalText } from '../../protocol/stored-text.ts'
import type { Row } from './log-file.ts'
import { SqlitePositions } from './position.ts'
import { ENTRIES, Runs } from './runs.ts'
import { damaged, logFileError } from './sqlite-error.ts'
import { parseStoredEvent } from './stored-event.ts'

/** An open file that nothing else writes meanwhile. */
export interface CopiedFile {
  readonly database: DatabaseSync
  /** The file in errors. */
  readonly name: string
  readonly epoch: string
  /** Throws if it was removed. */
  check(): void
  close(): void
}

/** A whole log in an SQLite file, as it is read to copy it. */
export class SqliteCopySource implements CopySource {
  readonly head: CopyHead
  readonly partitions = UNDIVIDED
  readonly file: string
  readonly #file: CopiedFile
  readonly #positions: SqlitePositions
  readonly #processPositions: ProcessPositions

  constructor(file: CopiedFile) {
    this.#file = file
    this.file = file.database.location() ?? file.name
    this.#positions = new SqlitePositions(file.name, file.epoch, () =>
      new Runs(file.database).tokens(ENTRIES),
    )
    this.#processPositions = new ProcessPositions(file.name, file.epoch)
    const log = this.#get('SELECT * FROM rivulet_log')
    if (log === undefined) throw damaged(file.name, 'it has no end')
    this.head = {
      entries: Number(log['entries']),
      last: Number(log['last_position']),
      trimmed: { number: Number(log['trimmed_position']), recorded: Number(log['trimmed_recorded']) },
    }
  }

  async numberOf(position: Position): Promise<number> {
    return this.#positions.parse(position, this.head.last)
  }

  async *entries(): AsyncGenerator<readonly CopiedEntry[], void> {
    try {
      for (let after = 0; ;) {
        const entries = this.#page(after)
        if (entries.length === 0) return
        yield entries
        after = entries.at(-1)?.number ?? after
      }
    } catch (error) {
      throw logFileError(this.#file.name, error)
    }
  }

  async *records(): AsyncGenerator<CopiedRecord, void> {
    try {
      yield* this.#records()
    } catch (error) {
      throw logFileError(this.#file.name, error)
    }
  }

  #page(after: number): readonly CopiedEntry[] {
    const { database } = this.#file
    const page = database.prepare('SELECT * FROM rivulet_entry WHERE position > ? ORDER BY position LIMIT ?')
    const identity = database.prepare('SELECT position, completeness FROM rivulet_identity WHERE hash = ?')
    const entries: CopiedEntry[] = []
    let length = 0
    for (const row of page.iterate(after, COPIED_PAGE.entries)) {
      const entry = this.#entry(row, identity)
      entries.push(entry)
      length += entry.json.length
      if (length >= COPIED_PAGE.length) break
    }
    return entries
  }

  *#records(): Generator<CopiedRecord, void> {
    const names = this.#all(
      `SELECT name FROM rivulet_stream UNION SELECT name FROM rivulet_reader
       UNION SELECT reader FROM rivulet_dead_letter UNION SELECT name FROM rivulet_process WHERE name IS NOT NULL`,
    )
    for (const { name } of names) yield* this.#name(String(name))
    yield* this.#inbox()
    yield* this.#identities()
  }

  async checkUnchanged(): Promise<void> {
    this.#file.check()
  }

  async close(): Promise<void> {
    this.#file.close()
  }

  #entry(row: Row, identity: StatementSync): CopiedEntry {
    const number = Number(row['position'])
    const json = String(row['event'])
    const event = parseStoredEvent(json)
    if (event === undefined) throw damaged(this.#file.name, `the entry at ${number} is no event`)
    const known = identity.get(identityBytes(event))
    const isLatest = Number(known?.['position']) === number
    const completeness = isLatest ? Number(known?.['completeness']) : logCompleteness(event)
    return { ...copiedFields(row, number), completeness, json }
  }

  *#name(stored: string): Generator<CopiedRecord, void> {
    const name = originalText(stored)
    const position = this.#get('SELECT position FROM rivulet_stream WHERE name = ?', stored)?.['position']
    const reader = this.#get('SELECT * FROM rivulet_reader WHERE name = ?', stored)
    const acknowledged = parseJson(String(reader?.['acknowledged'] ?? '[]'))
    if (!Array.isArray(acknowledged)) {
      throw damaged(this.#file.name, `the acknowledged positions of ${JSON.stringify(name)} are not an array`)
    }
    yield {
      kind: 'name',
      name,
      position: position === undefined ? null : originalText(String(position)),
      reader:
        reader === undefined
          ? null
          : {
              cursor: Number(reader['cursor']),
              acknowledged: acknowledged.map(Number),
              ...(reader['is_copy'] === 1 && { isCopy: true }),
            },
    }
    yield* this.#process(name, stored)
    yield* this.#deadLetters(name, stored)
  }

  *#process(name: string, stored: string): Generator<CopiedRecord, void> {
    const process = this.#get('SELECT * FROM rivulet_process WHERE name = ?', stored)
    if (process === undefined) return
    const generation = Number(process['generation'])
    yield {
      kind: 'process',
      name,
      holdsRetention: process['holds_retention'] !== 0,
      lastChange: Number(process['last_change']),
      forgotten: Number(process['forgotten']),
      checkpoint: movedCheckpoint(name, String(process['checkpoint']), {
        entry: (position) => String(this.#positions.parse(position, Number.MAX_SAFE_INTEGER)),
        change: (position) => String(this.#processPositions.parse(position).change),
      }),
    }
    const states = 'SELECT key, change, state FROM rivulet_state WHERE generation = ? ORDER BY change'
    for (const { key, change, state } of this.#all(states, generation)) {
      const text = state === null ? null : String(state)
      yield { kind: 'state', name, key: originalText(String(key)), change: Number(change), state: text }
    }
    const timers = 'SELECT * FROM rivulet_timer WHERE generation = ? ORDER BY clock, due, key, name'
    for (const row of this.#all(timers, generation)) {
      const clock = row['clock'] === 'event' ? 'event' : 'recorded'
      const timer = {
        key: originalText(String(row['key'])),
        name: originalText(String(row['name'])),
        clock,
        due: Number(row['due']),
        cause: String(row['cause']),
        data: row['data'] === null ? null : String(row['data']),
      } as const
      yield { kind: 'timer', name, timer }
    }
  }

  *#deadLetters(name: string, stored: string): Generator<CopiedRecord, void> {
    const redeliveries =
      'SELECT position, row_number() OVER (ORDER BY number) AS redelivery FROM rivulet_redelivery WHERE reader = ?'
    const select = `SELECT * FROM rivulet_dead_letter LEFT JOIN (${redeliveries}) USING (position) WHERE reader = ? ORDER BY position`
    for (const row of this.#all(select, stored, stored)) {
      yield {
        kind: 'letter',
        name,
        ...copiedFields(row, Number(row['position'])),
        json: eventJsonOf(String(row['event'])),
        error: {
          name: originalText(String(row['error_name'])),
          message: originalText(String(row['error_message'])),
        },
        attempts: Number(row['attempts']),
        failed: Number(row['failed']),
        redelivery: row['redelivery'] === null ? null : Number(row['redelivery']),
      }
    }
  }

  *#inbox(): Generator<CopiedRecord, void> {
    const known = `SELECT id, received FROM rivulet_webhook_id
      WHERE number NOT IN (SELECT number FROM rivulet_webhook) ORDER BY number`
    for (const { id, received } of this.#all(known)) {
      yield { kind: 'deliveryId', id: originalText(String(id)), received: Number(received) }
    }
    const pending = 'SELECT * FROM rivulet_webhook JOIN rivulet_webhook_id USING (number) ORDER BY number'
    for (const { id, timestamp, received, payload } of this.#all(pending)) {
      yield {
        kind: 'delivery',
        id: originalText(String(id)),
        timestamp: Number(timestamp),
        received: Number(received),
        json: String(payload),
      }
    }
  }

  *#identities(): Generator<CopiedRecord, void> {
    const deleted = `SELECT * FROM rivulet_identity AS known
      WHERE NOT EXISTS (SELECT 1 FROM rivulet_entry AS entry WHERE entry.position = known.position)`
    for (const { hash, position, revision, completeness } of this.#all(deleted)) {
      if (!(hash instanceof Uint8Array)) throw damaged(this.#file.name, 'an identity is no hash')
      const number = Number(position)
      yield {
        kind: 'identity',
        key: Buffer.from(hash).toString('base64url'),
        revision: Number(revision),
        completeness: Number(completeness),
        forgotten: number > this.head.trimmed.number ? number : null,
      }
    }
  }

  #all(sql: string, ...values: (string | number)[]): Iterable<Row> {
    return this.#file.database.prepare(sql).iterate(...values)
  }

  #get(sql: string, ...values: string[]): Row | undefined {
    return this.#file.database.prepare(sql).get(...values)
  }
}

function copiedFields(row: Row, number: number) {
  return {
    number,
    recorded: Number(row['recorded']),
    revision: Number(row['revision']),
    backfill: row['backfill'] === 1,
  }
}
