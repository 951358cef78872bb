import { parseJson } from '../../protocol/json.ts'
import type { Commit, ReaderState } from '../store/contract.ts'
import { LogConflictError } from '../errors.ts'
import type { LogFile } from './log-file.ts'
import type { SqlitePositions } from './position.ts'
import { damaged } from './sqlite-error.ts'
import { storedText } from '../../protocol/stored-text.ts'

/** How far each reader has come. All methods run within a transaction. */
export class SqliteReaders {
  readonly #file: LogFile
  readonly #positions: SqlitePositions
  readonly #find
  readonly #cursor
  readonly #save
  readonly #remove

  constructor(file: LogFile, positions: SqlitePositions) {
    this.#file = file
    this.#positions = positions
    this.#find = file.database.prepare(
      'SELECT cursor, acknowledged, is_copy FROM rivulet_reader WHERE name = ?',
    )
    this.#cursor = file.database.prepare('SELECT cursor FROM rivulet_reader WHERE name = ?')
    this.#remove = file.database.prepare('DELETE FROM rivulet_reader WHERE name = ?')
    this.#save = file.database.prepare(
      `INSERT INTO rivulet_reader VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE
       SET cursor = excluded.cursor, acknowledged = excluded.acknowledged, is_copy = excluded.is_copy`,
    )
  }

  get(name: string): ReaderState | undefined {
    const found = this.#find.get(storedText(name))
    if (found === undefined) return undefined
    const acknowledged = parseJson(String(found['acknowledged']))
    if (!Array.isArray(acknowledged)) {
      throw damaged(
        this.#file.name,
        `the acknowledged positions of reader ${JSON.stringify(name)} are not an array`,
      )
    }
    const format = this.#positions.formatter()
    return {
      cursor: format(Number(found['cursor'])),
      acknowledged: acknowledged.map((position) => format(Number(position))),
      ...(found['is_copy'] === 1 && { isCopy: true }),
    }
  }

  remove(name: string): void {
    this.#remove.run(storedText(name))
  }

  /** @param last The number of the last entry of the log. */
  commit(name: string, { expect, cursor, acknowledged, isCopy = false }: Commit, last: number): void {
    const found = this.#cursor.get(storedText(name))?.['cursor']
    if ((typeof found === 'number' ? this.#positions.format(found) : null) !== expect) {
      throw new LogConflictError(this.#file.name, name)
    }
    const numberOf = this.#positions.parser(last)
    const [number, ahead] = [numberOf(cursor), acknowledged.map(numberOf)]
    this.#save.run(storedText(name), number, JSON.stringify(ahead), Number(isCopy))
  }
}
