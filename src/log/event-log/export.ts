import { checkOptions, checkText } from '../../protocol/check.ts'
import { isTimestamp } from '../../protocol/timestamp.ts'
import { checkTypes } from '../consume/consumer-options.ts'
import type { Entry, LogStore, Position } from '../store/contract.ts'

/** Which entries to export. */
export interface ExportOptions {
  /** Only entries after this position. Default: from the first one on. */
  readonly after?: Position
  /** Only entries up to this position. Default: up to the last one that there is when the export begins. */
  readonly until?: Position
  /** Only entries of these types. Default: all. */
  readonly types?: readonly string[]
}

/** Throws an ArgumentError for an option that cannot be right. */
export function checkExportOptions(options: ExportOptions): void {
  checkOptions('options', options, ['after', 'until', 'types'])
  const { after, until, types } = options
  if (after !== undefined) checkText('after', after)
  if (until !== undefined) checkText('until', until)
  if (types !== undefined) checkTypes(types)
}

/** Number of entries that are read at once. */
const PAGE = 500

/** Each entry as a CloudEvent of one line. See `EventLog.export`. */
export async function* exportLines(store: LogStore, options: ExportOptions): AsyncGenerator<string, void> {
  const { types } = options
  const until = options.until ?? (await store.positionAt('end'))
  let position = options.after ?? (await store.positionAt('start'))
  for (;;) {
    const page = await store.read(position, { limit: PAGE, types, until })
    for (const entry of page.entries) yield `${JSON.stringify(cloudEvent(entry))}\n`
    position = page.position
    if (page.isEnd) return
  }
}

/** An entry in the JSON format of CloudEvents 1.0. The fields of the log are extension attributes. */
export function cloudEvent(entry: Entry): Readonly<Record<string, unknown>> {
  const {
    id,
    source,
    type,
    time,
    data,
    received,
    via,
    cursor,
    cause,
    position,
    recorded,
    revision,
    backfill,
  } = entry
  return {
    specversion: '1.0',
    id,
    source,
    type,
    ...(isTimestamp(time) && { time }),
    datacontenttype: 'application/json',
    data,
    position,
    recorded: new Date(recorded).toISOString(),
    revision,
    backfill,
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
