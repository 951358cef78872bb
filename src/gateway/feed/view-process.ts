import type { Entry } from '../../log/store/contract.ts'
import type { ProcessOptions } from '../../log/process/process.ts'
import { rowKey, rowPath } from '../../protocol/live.ts'
import type { RowKey } from '../../protocol/live.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import type { RowPath, ViewDefinition } from '../view.ts'

/** The key of the state in which a view counts the gaps of the log that it has met. No row has a `?` in its key. */
export const GAPS_KEY = '?gaps'

/** The timer that removes a row whose view says how long each is kept. */
const EXPIRY = 'expiry'

/** The largest row, as JSON in bytes. */
const MAX_ROW_BYTES = 256 * 1024

/**
 * The name of the process that makes a view. Neither name has a `/`.
 *
 * @param gateway The name of the gateway; undefined for one without a name.
 */
export function viewProcessName(gateway: string | undefined, view: string): string {
  return gateway === undefined ? `view:${view}` : `view:${gateway}/${view}`
}

/** The process that makes a view: its states are the rows, by {@link RowKey}. */
export function viewProcess(definition: ViewDefinition, holdsRetention = true): ProcessOptions<unknown> {
  const { version, types, where, key, reduce, startAt, timeToLive, params = [] } = definition
  // A view gets the gaps of the log as entries only if it asks for them.
  const isOwn = ({ type }: Entry) => type !== 'log.gap' || types?.includes('log.gap') === true
  const wanted = (entry: Entry) => isOwn(entry) && (where === undefined || where(entry))
  return {
    version,
    rebuild: 'available',
    holdsRetention,
    maxStateBytes: MAX_ROW_BYTES,
    ...(types !== undefined && { types: [...new Set([...types, 'log.gap'] as const)] }),
    ...(startAt !== undefined && { startAt }),
    ...(typeof timeToLive === 'number' && { timeToLive }),
    ...(typeof timeToLive === 'function' && { timer: (_, __, context) => context.set(null) }),
    key: (entry) => {
      const rows = wanted(entry) ? rowKeys(key(entry), params.length) : []
      return entry.type === 'log.gap' ? [...rows, GAPS_KEY] : rows
    },
    init: () => null,
    event: (state, entry, context) => {
      if (context.key === GAPS_KEY) return context.set({ gaps: gapsOf(state) + 1 })
      // If there is a row, its state is never null.
      const row = reduce(state ?? undefined, entry, rowPath(context.key))
      context.set(row)
      if (typeof timeToLive !== 'function') return
      const rest = row === null ? undefined : timeToLive(row)
      if (rest === undefined) context.cancel(EXPIRY)
      else context.timer(EXPIRY, context.now() + rest)
    },
  }
}

function gapsOf(state: unknown): number {
  const { gaps }: { gaps?: unknown } = Object(state)
  return typeof gaps === 'number' ? gaps : 0
}

/** The keys of the rows that `key` names. */
function rowKeys(given: RowPath | readonly RowPath[] | undefined, params: number): RowKey[] {
  if (given === undefined) return []
  if (isPath(given)) return given.length === 0 ? [] : [keyOf(given, params)]
  return given.map((path) => keyOf(path, params))
}

function isPath(given: RowPath | readonly RowPath[]): given is RowPath {
  return typeof given[0] === 'string' || given.length === 0
}

function keyOf(path: RowPath, params: number): RowKey {
  const isValid = Array.isArray(path) && path.length >= Math.max(1, params)
  if (!isValid || !path.every((part) => typeof part === 'string')) {
    const expected = `the path of a row, a list of at least ${Math.max(1, params)} texts`
    throw new ArgumentError('key', expected, path)
  }
  return rowKey(path)
}
