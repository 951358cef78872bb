import {
  checkFunction,
  checkInteger,
  checkList,
  checkOptionalFunctions,
  checkOptions,
  checkText,
} from '../protocol/check.ts'
import type { ResearchEventType } from '../protocol/event.ts'
import type { ViewShape } from '../protocol/live.ts'
import type { EntryOf } from '../log/consume/consumer-options.ts'
import { checkStart } from '../log/store/checked-store.ts'
import type { StartAt } from '../log/store/contract.ts'

/** The path of a row: the values of the view's params first, then values that distinguish it from other rows with these params. */
export type RowPath = readonly string[]

/** Settings of {@link view}. The functions must depend on their arguments alone. */
export interface ViewOptions<Row, Type extends ResearchEventType, Param extends string> {
  /** Version of the functions, a positive integer. Raise it when their results change: the view is built again. */
  readonly version: number
  /** Types of entries. `log.gap` comes only if it is named. Default: all. */
  readonly types?: readonly Type[]
  /** Whether the view reads an entry. Default: each. */
  readonly where?: (entry: EntryOf<Type>) => boolean
  /** Names of the first parts of a path. A client gives them, and gets the rows below. Default: none. */
  readonly params?: readonly Param[]
  /** Path of the row that an entry changes, or several; undefined for none. At most 1,024 characters as a key. */
  readonly key: (entry: EntryOf<Type>) => RowPath | readonly RowPath[] | undefined
  /**
   * The row after an entry: JSON of at most 256 KiB; null removes it.
   *
   * `row` is undefined if there is none.
   */
  readonly reduce: (row: Row | undefined, entry: EntryOf<Type>, path: RowPath) => Row | null
  /**
   * Resource of a row, which a grant must name. Default: only grants of `*` see the rows.
   *
   * When a client subscribes, it gets the params alone. If it returns undefined then, each row is checked.
   */
  readonly source?: (path: RowPath) => string | undefined
  /** Where a new view begins to read: `start`, `end`, or `{ time }` in Unix ms. Default `start`. */
  readonly startAt?: StartAt
  /** How long a row is kept after its last change, in ms between recordings, or a function of the row; undefined keeps it. Default: never removed. */
  readonly timeToLive?: number | ((row: Row) => number | undefined)
}

/** A materialised view of the log: rows by path, which clients follow through a gateway. Made by {@link view}. */
export interface View<Row, Param extends string = never> extends ViewShape<Row, Param> {
  readonly definition: ViewDefinition
}

/** {@link ViewOptions} without their types. The functions are called with their own states and with entries of their log only. */
export type ViewDefinition = ViewOptions<unknown, ResearchEventType, string>

const OPTIONS = Object.keys({
  version: true,
  types: true,
  where: true,
  params: true,
  key: true,
  reduce: true,
  source: true,
  startAt: true,
  timeToLive: true,
} satisfies Record<keyof ViewDefinition, true>)

/**
 * A view of the log: rows by path, made from its entries.
 *
 * @throws ArgumentError for an unknown option or an invalid one.
 */
export function view<Row, const Type extends ResearchEventType, const Param extends string = never>(
  options: ViewOptions<Row, Type, Param>,
): View<Row, Param> {
  checkOptions('options', options ?? null, OPTIONS)
  const { version, types, where, params = [], key, reduce, source, startAt, timeToLive } = options
  checkInteger('version', version, 1)
  if (types !== undefined) checkNames('types', types)
  if (params.length !== 0) checkNames('params', params)
  for (const [name, value] of Object.entries({ key, reduce })) checkFunction(name, value)
  checkOptionalFunctions({ where, source })
  if (startAt !== undefined) checkStart('startAt', startAt)
  if (timeToLive !== undefined && typeof timeToLive !== 'function') checkInteger('timeToLive', timeToLive, 1)
  // A view's functions get only rows that the view has made, and entries that it has chosen.
  const definition = options as unknown as ViewDefinition
  return { params, definition }
}

function checkNames(argument: string, names: unknown): void {
  checkList(argument, names)
  for (const name of names) checkText(argument, name)
}
