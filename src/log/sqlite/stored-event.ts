import { isObject, parseJson } from '../../protocol/json.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Entry } from '../store/contract.ts'

/** A parsed event, which the reader turns into its entry by setting the fields of the log. */
export type UnplacedEntry = ResearchEvent & {
  -readonly [Field in 'position' | 'recorded' | 'revision' | 'backfill']: Entry[Field]
}

/** Parses an event of a row; undefined for what is not one, as far as an append has checked it. */
export function parseStoredEvent(json: unknown): UnplacedEntry | undefined {
  const event = typeof json === 'string' ? parseJson(json) : undefined
  return isEvent(event) ? event : undefined
}

function isEvent(value: unknown): value is UnplacedEntry {
  return (
    isObject(value) &&
    typeof value['source'] === 'string' &&
    typeof value['id'] === 'string' &&
    typeof value['type'] === 'string'
  )
}
