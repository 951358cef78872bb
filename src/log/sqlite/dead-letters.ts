import { MAX_PAGE_LENGTH } from '../store/contract.ts'
import type { Position } from '../store/contract.ts'
import type { NewDeadLetter, Redeliveries, StoredDeadLetter } from '../store/dead-letter-store.ts'
import type { LogFile, Row } from './log-file.ts'
import type { SqlitePositions } from './position.ts'
import { damaged } from './sqlite-error.ts'
import { parseStoredEvent } from './stored-event.ts'
import { originalText, storedText } from '../../protocol/stored-text.ts'

const COLUMNS = 'position, recorded, revision, backfill, event, error_name, error_message, attempts, failed'

/** The dead letters of a reader from one position to another one, including both. */
export interface Range {
  readonly from: number
  readonly to: number
}

/** Result of one step over a range. */
export interface Step {
  /** How many dead letters were changed. */
  readonly changed: number
  /** The number of the last position of the step; undefined at the end. */
  readonly last: number | undefined
}

/** The dead letters of each reader. All methods run within a transaction. */
export class SqliteDeadLetters {
  readonly #file: LogFile
  readonly #positions: SqlitePositions
  readonly #statements: ReturnType<typeof prepare>

  constructor(file: LogFile, positions: SqlitePositions) {
    this.#file = file
    this.#positions = positions
    this.#statements = prepare(file)
  }

  /**
   * Adds a dead letter, or updates the one that was redelivered.
   *
   * @param last The number of the last entry of the log.
   */
  put(reader: string, letter: NewDeadLetter, last: number, now: number): void {
    const { error, attempts, redelivery } = letter
    const position = this.#positions.parse(letter.position, last)
    const name = storedText(reader)
    const what = [storedText(error.name), storedText(error.message), attempts, Math.floor(now)] as const
    const { update, insert, insertEntry, forgetOne } = this.#statements
    // A dead letter that is stored a second time, after a crash, may have got another redelivery number meanwhile.
    if (redelivery !== undefined) forgetOne.run(name, position, redelivery)
    if (update.run(...what, name, position).changes === 1 || redelivery !== undefined) return
    if (letter.entry === undefined) {
      insert.run(name, ...what, position)
      return
    }
    const { position: _, recorded, revision, backfill, ...event } = letter.entry
    insertEntry.run(name, ...what, position, recorded, revision, Number(backfill), JSON.stringify(event))
  }

  list(reader: string, after: number, limit: number): readonly StoredDeadLetter[] {
    return this.#page(this.#statements.list.iterate(storedText(reader), after, limit), (row) =>
      this.#letter(row),
    )
  }

  counts(): ReadonlyMap<string, number> {
    const rows = this.#statements.counts.all()
    return new Map(rows.map(({ reader, count }) => [originalText(String(reader)), Number(count)]))
  }

  /** Marks some of these dead letters for another delivery. */
  redeliver(reader: string, range: Range, limit: number): Step {
    const name = storedText(reader)
    return this.#each(
      name,
      range,
      limit,
      (position) => this.#statements.redeliver.run(name, position).changes === 1,
    )
  }

  /** Removes some of these dead letters. */
  remove(reader: string, range: Range, limit: number): Step {
    const name = storedText(reader)
    return this.#each(name, range, limit, (position) => this.#remove(name, position))
  }

  /** Removes redelivered dead letters that were handled. */
  handled(reader: string, position: Position, last: number): void {
    this.#remove(storedText(reader), this.#positions.parse(position, last))
  }

  redeliveries(reader: string, after: number, limit: number): Redeliveries {
    const rows = this.#statements.redeliveries.iterate(storedText(reader), after, limit)
    const deadLetters = this.#page(rows, (row) => ({
      ...this.#letter(row),
      number: Number(row['redelivery']),
    }))
    return { deadLetters, last: deadLetters.at(-1)?.number ?? after }
  }

  hasRedelivery(reader: string, after: number): boolean {
    return this.#statements.hasRedelivery.get(storedText(reader), after) !== undefined
  }

  #each(name: string, { from, to }: Range, limit: number, change: (position: number) => boolean): Step {
    const rows = this.#statements.positions.all(name, from, to, limit)
    const positions = rows.map(({ position }) => Number(position))
    const changed = positions.filter(change).length
    return { changed, last: positions.length < limit ? undefined : positions.at(-1) }
  }

  #remove(name: string, position: number): boolean {
    const { forget, remove } = this.#statements
    forget.run(name, position)
    return remove.run(name, position).changes === 1
  }

  #page<Letter>(rows: Iterable<Row>, letterOf: (row: Row) => Letter): readonly Letter[] {
    const letters: Letter[] = []
    let length = 0
    for (const row of rows) {
      letters.push(letterOf(row))
      length += String(row['event']).length
      if (length >= MAX_PAGE_LENGTH) break
    }
    return letters
  }

  #letter(row: Row): StoredDeadLetter {
    const entry = parseStoredEvent(row['event'])
    if (entry === undefined) {
      throw damaged(this.#file.name, `the event of a dead letter at position ${row['position']} is not JSON`)
    }
    entry.position = this.#positions.format(Number(row['position']))
    entry.recorded = Number(row['recorded'])
    entry.revision = Number(row['revision'])
    entry.backfill = row['backfill'] === 1
    return {
      entry,
      error: {
        name: originalText(String(row['error_name'])),
        message: originalText(String(row['error_message'])),
      },
      attempts: Number(row['attempts']),
      failed: Number(row['failed']),
      isRedelivered: row['redelivery'] !== null,
    }
  }
}

function prepare({ database }: LogFile) {
  const letters = `SELECT ${COLUMNS}, number AS redelivery FROM rivulet_dead_letter`
  return {
    insert: database.prepare(
      `INSERT INTO rivulet_dead_letter
         (reader, error_name, error_message, attempts, failed, position, recorded, revision, backfill, event)
       SELECT ?, ?, ?, ?, ?, position, recorded, revision, backfill, event FROM rivulet_entry WHERE position = ?`,
    ),
    insertEntry: database.prepare(
      `INSERT INTO rivulet_dead_letter
         (reader, error_name, error_message, attempts, failed, position, recorded, revision, backfill, event)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ),
    update: database.prepare(
      `UPDATE rivulet_dead_letter SET error_name = ?, error_message = ?, attempts = ?, failed = ?
       WHERE reader = ? AND position = ?`,
    ),
    remove: database.prepare('DELETE FROM rivulet_dead_letter WHERE reader = ? AND position = ?'),
    counts: database.prepare('SELECT reader, COUNT(*) AS count FROM rivulet_dead_letter GROUP BY reader'),
    positions: database.prepare(
      `SELECT position FROM rivulet_dead_letter WHERE reader = ? AND position BETWEEN ? AND ?
       ORDER BY position LIMIT ?`,
    ),
    list: database.prepare(
      `${letters} LEFT JOIN rivulet_redelivery USING (reader, position)
       WHERE reader = ? AND position > ? ORDER BY position LIMIT ?`,
    ),
    redeliver: database.prepare(
      'INSERT INTO rivulet_redelivery (reader, position) VALUES (?, ?) ON CONFLICT DO NOTHING',
    ),
    forget: database.prepare('DELETE FROM rivulet_redelivery WHERE reader = ? AND position = ?'),
    forgetOne: database.prepare(
      'DELETE FROM rivulet_redelivery WHERE reader = ? AND position = ? AND number = ?',
    ),
    redeliveries: database.prepare(
      `SELECT ${COLUMNS}, number AS redelivery FROM rivulet_redelivery JOIN rivulet_dead_letter USING (reader, position)
       WHERE reader = ? AND number > ? ORDER BY number LIMIT ?`,
    ),
    hasRedelivery: database.prepare(
      'SELECT 1 FROM rivulet_redelivery WHERE reader = ? AND number > ? LIMIT 1',
    ),
  }
}
