import { checkOptions, checkText } from '../../protocol/check.ts'
import { cloudEvent } from '../../protocol/cloud-event.ts'
import { checkTypes } from '../consume/consumer-options.ts'
import type { LogStore, Position } from '../store/contract.ts'

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
