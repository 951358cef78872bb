import { isObject } from '../../protocol/json.ts'
import { eventJson, tooDeep } from '../../protocol/event-json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { MAX_APPEND_ENTRIES, MAX_APPEND_LENGTH } from './contract.ts'
import type { NewEntry } from './contract.ts'
import { LogValueError } from '../errors.ts'
import { logCompleteness } from './completeness.ts'

/** An entry as a store writes it: the event as JSON, and what the store has to know of it. */
export interface PreparedEntry {
  readonly source: string
  readonly id: string
  readonly type: string
  /** See `logCompleteness`. */
  readonly completeness: number
  readonly json: string
  readonly backfill: boolean
  /** The entry because of which a process appends this one. Without effect where the log has forgotten that one. */
  readonly cause: EntryIdentity | undefined
}

/** The identity of an event, the same in each of its revisions. */
export interface EntryIdentity {
  readonly source: string
  readonly id: string
}

/**
 * Prepares an entry of a stream. Later changes of the event by the caller have no effect.
 *
 * @throws {LogValueError} for an event that is not JSON.
 */
export function prepareEntry(log: string, stream: string, entry: NewEntry): PreparedEntry {
  if (entry instanceof EntryWithJson) return entry.prepared
  const { event, backfill = false } = entry
  const refused = (problem: string, options?: ErrorOptions) =>
    new LogValueError(log, `an entry of ${JSON.stringify(stream)}`, problem, options)
  if (!isObject(event)) throw refused('its event is not an object')
  const { source, id, type } = event
  // An event may come from outside of TypeScript.
  for (const [name, value] of Object.entries<unknown>({ source, id, type })) {
    if (typeof value !== 'string') throw refused(`its event has no ${name}`)
  }
  // Its JSON could have another identity.
  if ('toJSON' in event && typeof event.toJSON === 'function') throw refused('its event has a method toJSON')
  let json: string
  try {
    json = eventJson(event)
  } catch (cause) {
    // A circle, a bigint, a nesting that overflows the stack, or a text that is too long for a string.
    throw refused('its event is not JSON', { cause })
  }
  return { source, id, type, completeness: logCompleteness(event), json, backfill, cause: causeOf(event) }
}

/** An event may come from outside of TypeScript. */
function causeOf({ cause }: ResearchEvent): EntryIdentity | undefined {
  const given: unknown = cause
  if (!isObject(given)) return undefined
  const { source, id } = given
  return typeof source === 'string' && typeof id === 'string' ? { source, id } : undefined
}

/** An entry that carries its JSON: a store does not make it again. */
class EntryWithJson implements NewEntry {
  readonly event: ResearchEvent
  readonly prepared: PreparedEntry

  constructor(event: ResearchEvent, prepared: PreparedEntry) {
    this.event = event
    this.prepared = prepared
  }

  get backfill(): boolean {
    return this.prepared.backfill
  }
}

/**
 * Makes the JSON of an event, once for its length and its append. An event that is nested too deeply becomes an unknown one:
 * refused, it would come again with each restart. Undefined for an event that is not JSON: the store refuses it with an error
 * that names the log.
 */
export function entryWithJson(
  stream: string,
  event: ResearchEvent,
  backfill: boolean,
): { readonly entry: NewEntry; readonly prepared: PreparedEntry; readonly length: number } | undefined {
  try {
    const prepared = prepareEntry('a log', stream, { event, backfill })
    return { entry: new EntryWithJson(event, prepared), prepared, length: prepared.json.length }
  } catch (error) {
    if (!(error instanceof LogValueError)) throw error
    // The stack has overflown. The replacement is flat.
    return error.cause instanceof RangeError ? entryWithJson(stream, tooDeep(event), backfill) : undefined
  }
}

/**
 * Checks the entries of one append.
 *
 * @throws {LogValueError} for more than an append may have.
 */
export function checkAppendSize(log: string, entries: readonly PreparedEntry[]): void {
  const length = entries.reduce((sum, { json }) => sum + json.length, 0)
  if (entries.length <= MAX_APPEND_ENTRIES && (length <= MAX_APPEND_LENGTH || entries.length === 1)) return
  const limits = `${MAX_APPEND_ENTRIES} entries and ${MAX_APPEND_LENGTH} characters`
  const problem = `its ${entries.length} entries of ${length} characters are more than ${limits}. Append them in parts`
  throw new LogValueError(log, 'an append', problem)
}
