import type { IncomingMessage } from 'node:http'
import { queryOf } from './serve.ts'

/** The requested page of a monitor's events, by cursor and limit. `ids` are newest first. */
export function pageOf(ids: readonly string[], request: IncomingMessage) {
  const query = queryOf(request)
  const start = ids.indexOf(query.get('cursor') ?? '') + 1
  const page = ids.slice(start, start + Number(query.get('limit') ?? 20))
  const last = page.at(-1)
  return {
    events: page.map((event_id) => ({
      event_type: 'event_stream',
      event_id,
      event_group_id: 'x',
      event_date: null,
      output: {},
    })),
    ...(last !== undefined && last !== ids.at(-1) && { next_cursor: last }),
  }
}
