import { isObject } from '../../protocol/json.ts'
import { eventJson, tooDeep } from '../../protocol/event-json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { LogValueError } from '../errors.ts'
import { logCompleteness } from './completeness.ts'

/** An entry as a store writes it: the event as JSON, and what the store has to know of it. */
export interface PreparedEntry extends EntryIdentity {
  readonly type: string
  /** How much the event says, as bits: see `isAtLeastAsComplete`. */
  readonly completeness: number
  /** The event. */
  readonly json: string
  readonly backfill: boolean
  /** The entry because of which a process appends this one. Without effect if the log has forgotten that one. */
  readonly cause: EntryIdentity | undefined
}

/** An event to be appended, with its JSON. `newEntry` makes it. Later changes of the event by the caller have no effect. */
export interface NewEntry extends PreparedEntry {
  readonly event: ResearchEvent
}

/** The identity of an event, the same in each of its revisions. */
export interface EntryIdentity {
  readonly source: string
  readonly id: string
}

/** Names in the error of {@link newEntry}. */
export interface EntrySubject {
  /** Name of the log. */
  readonly log: string
  /** Name of the stream. */
  readonly stream: string
}

/**
 * Prepares an event for an append. An event that is nested too deeply becomes an unknown one: refused, it would come again with each
 * restart.
 *
 * @param backfill Whether it comes from a first walk into the past of its source. Default false.
 * @throws {LogValueError} for an event that is not JSON.
 */
export function newEntry(
  event: ResearchEvent,
  backfill = false,
  { log, stream }: EntrySubject = { log: 'a log', stream: 'a stream' },
): NewEntry {
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
    // The stack has overflown, or the text is too long for a string. The replacement is flat and short.
    if (cause instanceof RangeError) return newEntry(tooDeep(event), backfill, { log, stream })
    // A circle, or a bigint.
    throw refused('its event is not JSON', { cause })
  }
  return {
    event,
    source,
    id,
    type,
    completeness: logCompleteness(event),
    json,
    backfill,
    cause: causeOf(event),
  }
}

/** An event may come from outside of TypeScript. */
function causeOf({ cause }: ResearchEvent): EntryIdentity | undefined {
  const given: unknown = cause
  if (!isObject(given)) return undefined
  const { source, id } = given
  return typeof source === 'string' && typeof id === 'string' ? { source, id } : undefined
}
