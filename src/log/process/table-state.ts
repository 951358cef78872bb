import { concatMap } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { Definition } from '../../streams/definition/define.ts'
import { isTable } from '../../streams/definition/table.ts'
import type { Latest, Table } from '../../streams/definition/table.ts'
import type { Position } from '../store/contract.ts'
import type { StoredStates } from '../store/process-store.ts'
import { StoredProcessState } from './process-state.ts'
import type { ProcessState } from './process-state.ts'

/** The item of a key after a change. */
interface TableChange<Item> {
  readonly key: string
  readonly item: Item
  /** The position of the process after this change. */
  readonly position: Position
}

/** A table of a definition, as of the last commit of its process. */
export interface TableState<Item> {
  /** The item of a key; undefined if it has none. */
  get(key: string): Promise<Item | undefined>
  /**
   * The changes after a position, or all items and then their changes without one, as `changes` of a process's state. A reader that is behind gets only the
   * last item of each key.
   *
   * Errors with a `LogPositionError` for a position before the definition was built again.
   */
  changes(...given: Parameters<ProcessState<unknown>['changes']>): Observable<TableChange<Item>>
}

/** The table of a definition. Throws an ArgumentError for one that it does not have. */
export function tableState<Item>(
  states: StoredStates,
  definition: Definition<unknown>,
  table: Table<Item>,
): TableState<Item> {
  if (!(definition instanceof Definition))
    throw new ArgumentError('definition', 'what `define` makes', definition)
  if (!isTable(table)) throw new ArgumentError('table', 'a table, as `latestBy` makes it', table)
  const { name, shape } = table
  if (!definition.describe().some((stage) => stage.name === name && JSON.stringify(stage.shape) === shape)) {
    throw new ArgumentError('table', `a table of the definition ${JSON.stringify(definition.name)}`, name)
  }
  const prefix = `[${JSON.stringify(name)},`
  // The process has stored what the table has taken, which is of this type.
  const state = new StoredProcessState<Latest & { readonly item: Item }>(states, definition.name)
  return {
    async get(key) {
      if (typeof key !== 'string') throw new ArgumentError('key', 'a key', key)
      return (await state.get(JSON.stringify([name, key])))?.item
    },
    changes: (...given) =>
      state.changes(...given).pipe(
        concatMap(({ key, state: latest, position }) => {
          if (!key.startsWith(prefix) || latest === null) return []
          const [, own]: readonly unknown[] = JSON.parse(key)
          return [{ key: String(own), item: latest.item, position }]
        }),
      ),
  }
}
