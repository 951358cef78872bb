import { DatabaseSync } from 'node:sqlite'
import { isCounted } from './facts.ts'

/** The name of the audit among the log's readers. */
const READER = 'consumer:audit'

/** An entry, as the log's table has it. */
export interface ArchivedEntry {
  readonly position: number
  readonly source: string
  readonly id: string
  readonly type: string
  readonly revision: number
  /** Unix ms. */
  readonly recorded: number
  readonly backfill: boolean
  readonly event: ArchivedEvent
}

/** The fields of an event that the audit reads. */
interface ArchivedEvent {
  readonly source: string
  readonly id: string
  readonly type: string
  readonly time: string | null
  readonly received: string
  readonly data: unknown
}

/**
 * Every entry of a log, read from its tables by SQL alone. It is one of the log's readers: entries that it has not read are not
 * deleted.
 */
export class Archive {
  readonly entries: ArchivedEntry[] = []
  /** Number of entries that have to have an effect. */
  counted = 0
  readonly #database: DatabaseSync
  readonly #read
  readonly #move
  readonly #stored
  readonly #cursor

  /** @param file The log's file, with its tables. */
  constructor(file: string) {
    this.#database = new DatabaseSync(file, { timeout: 5_000 })
    this.#database
      .prepare('INSERT INTO rivulet_reader (name, cursor, acknowledged, is_copy) VALUES (?, 0, ?, 0)')
      .run(READER, '[]')
    this.#read = this.#database.prepare('SELECT * FROM rivulet_entry WHERE position > ? ORDER BY position')
    this.#move = this.#database.prepare('UPDATE rivulet_reader SET cursor = ? WHERE name = ?')
    this.#stored = this.#database.prepare('SELECT count(*) AS stored FROM rivulet_entry')
    this.#cursor = this.#database.prepare('SELECT cursor, acknowledged FROM rivulet_reader WHERE name = ?')
  }

  /** Whether a file has the tables of a log. */
  static exists(file: string): boolean {
    let database: DatabaseSync | undefined
    try {
      database = new DatabaseSync(file, { readOnly: true })
      return database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'rivulet_reader'").get() !== undefined
    } catch {
      // It is being created.
      return false
    } finally {
      database?.close()
    }
  }

  /** Number of readers that the log knows, this one included. */
  get readers(): number {
    return Number(this.#database.prepare('SELECT count(*) AS readers FROM rivulet_reader').get()?.['readers'])
  }

  /** Number of entries that the log has at the moment. */
  get stored(): number {
    return Number(this.#stored.get()?.['stored'])
  }

  /** Reads the new entries. */
  update(): void {
    const before = this.entries.at(-1)?.position ?? 0
    for (const row of this.#read.all(before)) {
      const event: ArchivedEvent = JSON.parse(String(row['event']))
      const { source, id, type } = event
      if (isCounted(type)) this.counted += 1
      this.entries.push({
        position: Number(row['position']),
        source,
        id,
        type,
        revision: Number(row['revision']),
        recorded: Number(row['recorded']),
        backfill: row['backfill'] === 1,
        event,
      })
    }
    const last = this.entries.at(-1)?.position ?? 0
    if (last > before) this.#move.run(last, READER)
  }

  /** Whether a reader has passed every entry that was read. */
  isPassedBy(reader: string): boolean {
    return Number(this.#cursor.get(reader)?.['cursor'] ?? 0) >= (this.entries.at(-1)?.position ?? 0)
  }

  /** The states of a process by key, as JSON. */
  statesOf(reader: string): ReadonlyMap<string, string> {
    const rows = this.#database
      .prepare(
        `SELECT key, state FROM rivulet_state JOIN rivulet_process USING (generation)
         WHERE name = ? AND state IS NOT NULL`,
      )
      .all(reader)
    return new Map(rows.map((row) => [String(row['key']), String(row['state'])]))
  }

  /** The entries that the log has as acknowledged by a consumer. */
  acknowledgedBy(consumer: string): readonly ArchivedEntry[] {
    const row = this.#cursor.get(`consumer:${consumer}`)
    const cursor = Number(row?.['cursor'] ?? 0)
    const ahead = new Set<unknown>(JSON.parse(String(row?.['acknowledged'] ?? '[]')))
    return this.entries.filter(({ position }) => position <= cursor || ahead.has(position))
  }

  close(): void {
    this.#database.close()
  }
}
