import type { ResearchEvent } from './event.ts'
import { jsonData } from './event-json.ts'
import { isTimestamp } from './timestamp.ts'

/** An event, with the fields of its entry if it comes from a log. */
export type CloudEventInput = ResearchEvent & {
  readonly position?: string
  /** Unix ms. */
  readonly recorded?: number
  readonly revision?: number
  readonly backfill?: boolean
}

/** The event in the JSON format of CloudEvents 1.0. The fields of a log's entry are extension attributes. */
export function cloudEvent(event: CloudEventInput): Readonly<Record<string, unknown>> {
  const { id, source, type, time, received, via, cursor, cause } = event
  const { position, recorded, revision, backfill } = event
  return {
    specversion: '1.0',
    id,
    source,
    type,
    ...(isTimestamp(time) && { time }),
    datacontenttype: 'application/json',
    data: jsonData(event),
    ...(position !== undefined && { position }),
    ...(recorded !== undefined && { recorded: new Date(recorded).toISOString() }),
    ...(revision !== undefined && { revision }),
    ...(backfill !== undefined && { backfill }),
    ...(isTimestamp(received) && { received }),
    ...(isText(via) && { via }),
    ...(isText(cursor) && { cursor }),
    // An attribute is not an object.
    ...(cause !== undefined && { cause: JSON.stringify(cause) }),
  }
}

/** Characters that an attribute must not have: control characters, lone surrogates and those that are no characters. */
const FORBIDDEN =
  // oxlint-disable-next-line no-control-regex -- they are what is looked for
  /[\u0000-\u001f\u007f-\u009f\ufdd0-\ufdef\p{Cs}]|[\ufffe\uffff\u{1fffe}\u{1ffff}]/u

/** Whether it can be an attribute of a CloudEvent. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !FORBIDDEN.test(value)
}
