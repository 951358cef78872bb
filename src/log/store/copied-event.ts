import { isObject, parseJson } from '../../protocol/json.ts'

/** The event of an entry that is kept apart from the log, as JSON without the fields that the log adds. */
export function eventJsonOf(entryJson: string): string {
  const entry = parseJson(entryJson)
  if (!isObject(entry)) return entryJson
  const { position: _, recorded: __, revision: ___, backfill: ____, ...event } = entry
  return JSON.stringify(event)
}
