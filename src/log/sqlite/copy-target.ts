import { randomBytes } from 'node:crypto'
import { existsSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LogFileError } from '../errors.ts'
import { ProcessPositions } from '../state/process-position.ts'
import { movedCheckpoint } from '../process/progress.ts'
import type {
  CopiedEntry,
  CopiedDeadLetter,
  CopiedName,
  CopiedProcess,
  CopiedRecord,
  CopyHead,
  CopySource,
  CopyTarget,
} from '../store/copy-store.ts'
import type { Position } from '../store/entry.ts'
import { identityBytes } from '../store/identity-key.ts'
import { machineClock } from '../store/machine-clock.ts'
import { UNDIVIDED } from '../store/sharing-store.ts'
import { storedText } from '../../protocol/stored-text.ts'
import { existing, giveName, sync } from './backup.ts'
import { SqliteCopySource } from './copy-source.ts'
import { createPrivateFile } from './file-system.ts'
import { checkPlace } from './log-file.ts'
import { SqlitePositions } from './position.ts'
import { ENTRIES, randomToken } from './runs.ts'
import { IDENTIFY, SCHEMA } from './schema.ts'
import { isBusy, logFileError } from './sqlite-error.ts'
import { parseStoredEvent } from './stored-event.ts'

/** A name that is being added, with what is not written before the next one. */
interface OpenName {
  generation: number
  /** Dead letters that are to be handed out again. */
  readonly redelivered: CopiedDeadLetter[]
}

/**
 * A log in an SQLite file that is being made, under another name and in one transaction: it gets its own name at last, so there is never
 * a part of it. What was interrupted is overwritten by the next one.
 */
export class SqliteCopyTarget implements CopyTarget {
  readonly partitionCount = UNDIVIDED.count
  readonly #file: string
  readonly #unnamed: string
  readonly #database: DatabaseSync
  readonly #epoch = randomBytes(8).toString('hex')
  /** The token of the run that has all entries, and of those that have all changes of a process. */
  readonly #run = randomToken()
  readonly #positions: SqlitePositions
  readonly #processPositions: ProcessPositions
  readonly #statements: ReturnType<typeof prepare>
  #head: CopyHead = { entries: 0, last: 0, trimmed: { number: 0, recorded: 0 } }
  #recorded = 0
  #name: OpenName = { generation: 0, redelivered: [] }
  #inbox = { last: 0, pending: 0, bytes: 0 }

  /** @throws {LogFileError} if there is a file, or if another process makes it. */
  constructor(file: string) {
    if (existsSync(file)) throw existing(file)
    checkPlace(file)
    this.#file = file
    this.#unnamed = `${file}-unfinished`
    this.#positions = new SqlitePositions(
      file,
      this.#epoch,
      () => (number) => (number === 0 ? '' : this.#run),
    )
    this.#processPositions = new ProcessPositions(file, this.#epoch)
    // It has got its name already, and is a log.
    const { nlink = 1 } = statSync(this.#unnamed, { throwIfNoEntry: false }) ?? {}
    if (nlink > 1) this.#remove()
    createPrivateFile(this.#unnamed)
    this.#database = new DatabaseSync(this.#unnamed, { timeout: 0 })
    try {
      this.#begin()
      this.#statements = prepare(this.#database)
    } catch (error) {
      this.#database.close()
      if (!isBusy(error)) throw error
      throw new LogFileError(file, 'is being made by another process: wait for it', { cause: error })
    }
  }

  async begin(head: CopyHead): Promise<void> {
    this.#head = head
    this.#recorded = head.trimmed.recorded
  }

  async addEntries(entries: readonly CopiedEntry[]): Promise<void> {
    this.#write(() => this.#addEntries(entries))
  }

  async add(record: CopiedRecord): Promise<void> {
    this.#write(() => this.#add(record))
  }

  #addEntries(entries: readonly CopiedEntry[]): void {
    const { entry, identity } = this.#statements
    for (const { number, recorded, revision, backfill, completeness, json } of entries) {
      const event = parseStoredEvent(json)
      if (event === undefined)
        throw new LogFileError(this.#file, `cannot have the entry ${number}: it is no event`)
      entry.run(number, storedText(event.type), recorded, revision, Number(backfill), json)
      identity.run(identityBytes(event), number, revision, completeness)
      this.#recorded = Math.max(this.#recorded, recorded)
    }
  }

  #add(record: CopiedRecord): void {
    const statements = this.#statements
    switch (record.kind) {
      case 'name':
        return this.#addName(record)
      case 'process':
        return this.#addProcess(record)
      case 'state':
        statements.state.run(this.#name.generation, storedText(record.key), record.change, record.state)
        return
      case 'timer': {
        const { key, name, clock, due, cause, data } = record.timer
        const { generation } = this.#name
        statements.timer.run(generation, storedText(key), storedText(name), clock, due, cause, data)
        return
      }
      case 'letter':
        return this.#addDeadLetter(record)
      case 'deliveryId':
        statements.deliveryId.run(++this.#inbox.last, storedText(record.id), record.received)
        return
      case 'delivery':
        statements.deliveryId.run(++this.#inbox.last, storedText(record.id), record.received)
        statements.delivery.run(this.#inbox.last, record.timestamp, record.json)
        this.#inbox.pending += 1
        this.#inbox.bytes += Buffer.byteLength(record.json)
        return
      case 'identity': {
        const { key, revision, completeness, forgotten } = record
        statements.deleted.run(Buffer.from(key, 'base64url'), forgotten ?? 0, revision, completeness)
      }
    }
  }

  async written(): Promise<CopySource> {
    this.#write(() => {
      this.#endName()
      const { last, trimmed } = this.#head
      const { last: number, pending, bytes } = this.#inbox
      this.#statements.inbox.run(number, pending, bytes)
      // An empty log begins its first run itself.
      if (last > 0) this.#statements.run.run(ENTRIES, this.#run)
      this.#statements.log.run(
        machineClock(),
        this.#epoch,
        last,
        this.#recorded,
        trimmed.number,
        trimmed.recorded,
      )
    })
    const [database, name, epoch] = [this.#database, this.#file, this.#epoch]
    return new SqliteCopySource({ database, name, epoch, check() {}, close() {} })
  }

  async positionOf(number: number): Promise<Position> {
    return this.#positions.format(number)
  }

  async finish(): Promise<void> {
    this.#write(() => this.#database.exec('COMMIT'))
    this.#database.close()
    sync(this.#unnamed)
    giveName(this.#unnamed, this.#file)
    sync(dirname(this.#file))
    this.#remove()
  }

  async close(): Promise<void> {
    if (!this.#database.isOpen) return
    this.#database.close()
    this.#remove()
  }

  /** The disk may be full, or fail. */
  #write(effect: () => void): void {
    try {
      effect()
    } catch (error) {
      throw logFileError(this.#file, error)
    }
  }

  /** Takes the file for itself, until it is closed. What an interrupted one has left is there only if that had committed. */
  #begin(): void {
    const database = this.#database
    database.exec(
      'PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE',
    )
    const tables = database.prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
    )
    for (const { name } of tables.all()) database.exec(`DROP TABLE "${String(name)}"`)
    database.exec(SCHEMA + IDENTIFY)
  }

  #addName({ name, position, reader }: CopiedName): void {
    this.#endName()
    this.#name = { generation: 0, redelivered: [] }
    const { stream, reader: insert } = this.#statements
    if (position !== null) stream.run(storedText(name), storedText(position))
    if (reader !== null) {
      const { cursor, acknowledged, isCopy = false } = reader
      insert.run(storedText(name), cursor, JSON.stringify(acknowledged), Number(isCopy))
    }
  }

  #addProcess({ name, holdsRetention, lastChange, forgotten, checkpoint }: CopiedProcess): void {
    const { process, checkpoint: setCheckpoint } = this.#statements
    const { lastInsertRowid } = process.run(storedText(name), lastChange, forgotten, Number(holdsRetention))
    const generation = Number(lastInsertRowid)
    this.#name.generation = generation
    if (lastChange > 0) this.#statements.run.run(generation, this.#run)
    const own = movedCheckpoint(name, checkpoint, {
      entry: (number) => this.#positions.format(Number(number)),
      change: (change) =>
        this.#processPositions.format({ generation, tokenOf: () => this.#run }, Number(change)),
    })
    setCheckpoint.run(own, generation)
  }

  #addDeadLetter(deadLetter: CopiedDeadLetter): void {
    const { name, number, recorded, revision, backfill, error, attempts, failed, json, redelivery } =
      deadLetter
    this.#statements.deadLetter.run(
      storedText(name),
      number,
      recorded,
      revision,
      Number(backfill),
      storedText(error.name),
      storedText(error.message),
      attempts,
      failed,
      json,
    )
    if (redelivery !== null) this.#name.redelivered.push(deadLetter)
  }

  #endName(): void {
    const redelivered = this.#name.redelivered.toSorted((a, b) => Number(a.redelivery) - Number(b.redelivery))
    for (const { name, number } of redelivered) this.#statements.redeliver.run(storedText(name), number)
    this.#name.redelivered.length = 0
  }

  #remove(): void {
    for (const suffix of ['', '-journal']) rmSync(`${this.#unnamed}${suffix}`, { force: true })
  }
}

function prepare(database: DatabaseSync) {
  const sql = (text: string) => database.prepare(text)
  return {
    log: sql(
      `INSERT INTO rivulet_log
         (one, uptime_clock, epoch, last_position, last_recorded, trimmed_position, trimmed_recorded, entries, identities)
       SELECT 1, ?, ?, ?, ?, ?, ?, (SELECT count(*) FROM rivulet_entry), (SELECT count(*) FROM rivulet_identity)`,
    ),
    entry: sql('INSERT INTO rivulet_entry VALUES (?, ?, ?, ?, ?, ?)'),
    identity: sql(
      `INSERT INTO rivulet_identity VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET position = excluded.position, revision = excluded.revision, completeness = excluded.completeness`,
    ),
    deleted: sql('INSERT INTO rivulet_identity VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING'),
    stream: sql('INSERT INTO rivulet_stream VALUES (?, ?)'),
    reader: sql('INSERT INTO rivulet_reader VALUES (?, ?, ?, ?)'),
    run: sql('INSERT INTO rivulet_run VALUES (?, 1, ?)'),
    process: sql(
      `INSERT INTO rivulet_process (name, last_change, forgotten, checkpoint, holds_retention) VALUES (?, ?, ?, '', ?)`,
    ),
    checkpoint: sql('UPDATE rivulet_process SET checkpoint = ? WHERE generation = ?'),
    state: sql('INSERT INTO rivulet_state VALUES (?, ?, ?, ?)'),
    timer: sql('INSERT INTO rivulet_timer VALUES (?, ?, ?, ?, ?, ?, ?)'),
    deadLetter: sql('INSERT INTO rivulet_dead_letter VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'),
    redeliver: sql('INSERT INTO rivulet_redelivery (reader, position) VALUES (?, ?)'),
    deliveryId: sql('INSERT INTO rivulet_webhook_id VALUES (?, ?, ?)'),
    delivery: sql('INSERT INTO rivulet_webhook VALUES (?, ?, ?)'),
    inbox: sql('UPDATE rivulet_inbox SET last_number = ?, pending = ?, bytes = ?'),
  }
}
