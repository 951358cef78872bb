import type { EventOf, ResearchEvent } from './event.ts'
import { isObject } from './json.ts'

/** An event as JSON. Throws for one that is not JSON: a RangeError if it is nested too deeply. */
export function eventJson(event: ResearchEvent): string {
  const data = jsonData(event)
  return JSON.stringify(data === event.data ? event : { ...event, data })
}

/** The event that stands for one that is nested too deeply: its identity and its type. */
export function tooDeep(event: ResearchEvent): EventOf<'unknown'> {
  const { type } = event
  return { ...event, type: 'unknown', data: { type, problem: 'nested too deeply to be stored' } }
}

/** The data of an event for JSON. The message of an error is not enumerable: without this, a failure would be `{}`. */
export function jsonData(event: ResearchEvent): unknown {
  const data: unknown = event.data
  if (event.type !== 'source.failed' || !isObject(data)) return data
  const { error } = data
  if (!(error instanceof Error) || 'toJSON' in error) return data
  return { ...data, error: { name: error.name, message: error.message } }
}
