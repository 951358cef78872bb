import { MAX_APPEND_DONE } from './contract.ts'
import type { StreamAppend } from './contract.ts'
import { LogValueError } from '../errors.ts'
import { checkAppendSize, prepareEntry } from './prepared-entry.ts'
import type { PreparedEntry } from './prepared-entry.ts'

/** An append as a store writes it. Later changes by the caller have no effect. */
export interface PreparedAppend {
  readonly streams: readonly Omit<StreamAppend, 'entries'>[]
  /** The entries of all streams, in order. */
  readonly entries: readonly PreparedEntry[]
  /** Ids of deliveries that are done. */
  readonly done: readonly string[]
}

/**
 * Prepares an append.
 *
 * @throws {LogValueError} for an event that is not JSON, for more than an append may have, and for done deliveries without a fence.
 */
export function preparedAppend(
  log: string,
  appends: readonly StreamAppend[],
  done: readonly string[] = [],
): PreparedAppend {
  const refused = (problem: string) => new LogValueError(log, 'an append', problem)
  if (done.length > MAX_APPEND_DONE) {
    throw refused(
      `its ${done.length} deliveries that are done are more than ${MAX_APPEND_DONE}. Append them in parts`,
    )
  }
  if (done.length > 0 && appends.length === 0) throw refused('it has deliveries that are done, and no fence')
  const entries = appends.flatMap((append) =>
    append.entries.map((entry) => prepareEntry(log, append.fence.name, entry)),
  )
  checkAppendSize(log, entries)
  const streams = appends.map((append) => {
    const { entries: _, ...stream } = append
    return stream
  })
  return { streams, entries, done: [...done] }
}
