import type { StoredStates } from '../../log/store/process-store.ts'
import type { RowKey } from '../../protocol/live.ts'
import type { Counters } from './counters.ts'

/** The rows of a view that begin with the same params. */
export interface Scope {
  readonly address: string
  /** The key of the params; empty for all rows. */
  readonly prefix: RowKey
  /** Prefix of the keys of its rows, except for the key of {@link Scope.own}. Empty for all rows. */
  readonly below: string
  /** The key of the row whose path consists of the params only; undefined for all rows. */
  readonly own: RowKey | undefined
  /** The values of the params. */
  readonly path: readonly string[]
}

/** The storage of a view's rows, and the facts about a row that follow from its key. */
export interface ViewRows {
  /** The reader under which its states are stored. */
  readonly reader: string
  readonly states: StoredStates
  readonly counters: Counters
  /** The prefix of the scope of a row. */
  scopeOf(key: RowKey): RowKey
  /** The resource that a row is about; undefined if there is none. */
  sourceOf(key: RowKey): string | undefined
}
