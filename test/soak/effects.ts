import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { StatementSync } from 'node:sqlite'
import { factOf } from './facts.ts'

/** An entry's identity and revision, as one text. */
export function keyOf(entry: {
  readonly source: string
  readonly id: string
  readonly revision: number
}): string {
  return `${factOf(entry)} ${entry.revision}`
}

/** How often each key stands in a table of a database of effects. */
export class Tally {
  readonly #file: string
  readonly #table: 'calls' | 'effects'
  readonly #times = new Map<string, number>()
  readonly #facts = new Set<string>()
  /** The keys, in the order of the rows. */
  readonly keys: string[] = []
  #database: DatabaseSync | undefined
  #read: StatementSync | undefined
  #last = 0

  constructor(file: string, table: 'calls' | 'effects') {
    this.#file = file
    this.#table = table
  }

  /** Number of facts, whatever their revisions. */
  get facts(): number {
    return this.#facts.size
  }

  /** Number of rows. */
  get rows(): number {
    return this.#last
  }

  has(key: string): boolean {
    return this.#times.has(key)
  }

  /** Number of rows beyond the first of each key. */
  get repeated(): number {
    return [...this.#times.values()].reduce((sum, times) => sum + times - 1, 0)
  }

  /** Reads the new rows. */
  update(): void {
    if (this.#read === undefined && existsSync(this.#file)) this.#open()
    for (const row of this.#read?.all(this.#last) ?? []) {
      const { source, id, revision } = row
      const entry = { source: String(source), id: String(id), revision: Number(revision) }
      this.#times.set(keyOf(entry), (this.#times.get(keyOf(entry)) ?? 0) + 1)
      this.keys.push(keyOf(entry))
      this.#facts.add(factOf(entry))
      this.#last = Number(row['number'])
    }
  }

  close(): void {
    this.#database?.close()
  }

  #open(): void {
    const database = new DatabaseSync(this.#file, { readOnly: true, timeout: 5_000 })
    try {
      this.#read = database.prepare(`SELECT * FROM ${this.#table} WHERE number > ? ORDER BY number`)
      this.#database = database
    } catch {
      // Its process has not created the table yet.
      database.close()
    }
  }
}
