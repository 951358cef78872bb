import { ArgumentError } from '../../protocol/argument-error.ts'
import { isAppEventType } from '../../protocol/app-event-type.ts'
import { checkObject, checkOptions } from '../../protocol/check.ts'
import { isWellFormedText } from '../../protocol/event.ts'
import type { ResearchEvent, ResearchEventData, ResearchEventType } from '../../protocol/event.ts'
import type { EventFamily, OwnEventType } from '../../protocol/event-types.ts'
import { isTimestamp } from '../../protocol/timestamp.ts'
import { LogValueError } from '../errors.ts'
import { newEntry } from '../store/new-entry.ts'
import type { NewEntry } from '../store/new-entry.ts'

/** Maximum length of an event as JSON, in characters: as long as an event of the service may be by default. */
const MAX_EVENT_LENGTH = 16 * 1024 * 1024

/** Maximum length of the source and the id of an event, in characters. */
const MAX_NAME_LENGTH = 1_024

/** Sources of events that the service, a log, rules, processes and gateways make. */
const OTHER_SOURCE = /^\/(?:v\d\w*|log|rules|processes|gateway|subjects)(?:\/|$)/

/** Types that the application has declared in `ResearchEventData`, without those of a process that begin as one of this package. */
type DeclaredType = Exclude<ResearchEventType, OwnEventType | `${EventFamily}.${string}`>

interface AppEventOf<Type extends string, Data> {
  /** Identifies the event within its source: an event with the same `source` and `id` is the same event. Up to 1,024 characters. */
  readonly id: string
  /**
   * What the event is about or comes from, such as `/invoices/42`: events of one source keep their order. Up to 1,024 characters. Not
   * `/log`, `/rules`, `/processes`, `/gateway`, `/subjects`, a version of the service such as `/v1`, or below one of these.
   */
  readonly source: string
  /** Two to six words with dots between, such as `invoice.sent`. None of this package, and none with the first word of one. */
  readonly type: Type
  /** When it happened, in RFC 3339. Default: the time of an event that has none, when it is appended. */
  readonly time?: string | null
  /** What JSON has of it is stored. */
  readonly data: Data
}

/**
 * An event of the application, for `EventLog.append`. Its types are those that are declared in `ResearchEventData`; any, while none is
 * declared.
 */
export type AppEvent = [DeclaredType] extends [never]
  ? AppEventOf<string, unknown>
  : { [Type in DeclaredType]: AppEventOf<Type, ResearchEventData[Type]> }[DeclaredType]

const FIELDS = Object.keys({
  id: true,
  source: true,
  type: true,
  time: true,
  data: true,
} satisfies Record<keyof AppEventOf<string, unknown>, true>)

/**
 * The entries of an event of the application, or of several.
 *
 * @param received When they were received, in RFC 3339.
 * @throws {ArgumentError} for an event that cannot be right.
 * @throws {LogValueError} for data that is not JSON, or is too large, and for an event that throws when it is read.
 */
export function appEntries(log: string, events: unknown, received: string): readonly NewEntry[] {
  let name = 'events'
  try {
    if (!Array.isArray(events)) {
      name = 'event'
      return [appEntry(log, name, events, received)]
    }
    const list: readonly unknown[] = events
    return Array.from(list.keys(), (n) => {
      name = `events[${n}]`
      return appEntry(log, name, list[n], received)
    })
  } catch (cause) {
    if (cause instanceof ArgumentError || cause instanceof LogValueError) throw cause
    // A getter, or a trap of a Proxy.
    throw new LogValueError(log, name, 'it throws when it is read', { cause })
  }
}

/** @param name The event in errors, such as `events[3]`. */
function appEntry(log: string, name: string, event: unknown, received: string): NewEntry {
  checkObject(name, event)
  checkOptions(name, event, FIELDS)
  const { id, source, type, time = null, data } = event
  for (const [field, value] of Object.entries({ id, source })) {
    if (!isWellFormedText(value) || value.length > MAX_NAME_LENGTH) {
      throw new ArgumentError(`${name}.${field}`, `a text of 1 to ${MAX_NAME_LENGTH} characters`, value)
    }
  }
  if (OTHER_SOURCE.test(String(source))) {
    throw new ArgumentError(`${name}.source`, 'no source of the service or of this package', source)
  }
  if (typeof type !== 'string' || !isAppEventType(type)) {
    const expected =
      'a type of your own, such as invoice.sent: two to six words of letters, digits, _ and - with dots between, unlike all types of this package'
    throw new ArgumentError(`${name}.type`, expected, type)
  }
  if (time !== null && !isTimestamp(time)) {
    throw new ArgumentError(`${name}.time`, 'a time in RFC 3339, such as 2026-01-31T12:00:00Z', time)
  }
  const given = { id, source, type, time, data, received, via: 'app' }
  // The types of an application are not known here.
  const entry = newEntry(given as ResearchEvent, false, { log, stream: name })
  const refused = (problem: string) => new LogValueError(log, name, problem)
  if (entry.type !== type) throw refused('its data is nested too deeply, or too large')
  // JSON leaves out undefined and functions.
  if (JSON.stringify(data) === undefined) throw refused('it has no data that is JSON')
  const { length } = entry.json
  if (length <= MAX_EVENT_LENGTH) return entry
  throw refused(`its ${length} characters as JSON are more than ${MAX_EVENT_LENGTH}`)
}
