import { positionOf } from './offset.ts'
import type { Position } from '../../log/store/contract.ts'

/** How a client reads, as its query says. */
export interface StreamReadOptions {
  /** `start` for the first entry that the log still has, `now` for the entries from now on. */
  readonly from: 'start' | 'now' | { readonly position: Position }
  readonly live: 'none' | 'long-poll' | 'sse'
  /** The cursor of the response before. */
  readonly cursor: string | null
}

/** The options in a query, or a text that describes the problem with it. Parameters that the protocol does not know are ignored. */
export function streamReadOptions(query: URLSearchParams): StreamReadOptions | string {
  const offsets = query.getAll('offset')
  const [offset] = offsets
  if (offsets.length > 1) return 'there is more than one offset'
  const live = query.get('live')
  if (live !== null && live !== 'long-poll' && live !== 'sse') return 'live is long-poll or sse'
  if (offset === undefined && live !== null) return `live=${live} needs an offset`
  const cursor = query.get('cursor')
  const options = { live: live ?? 'none', cursor } as const
  if (offset === undefined || offset === '-1') return { ...options, from: 'start' }
  if (offset === 'now') return { ...options, from: 'now' }
  const position = positionOf(offset)
  if (position === undefined)
    return 'the offset is malformed: begin with -1 or now, and go on from Stream-Next-Offset'
  return { ...options, from: { position } }
}
