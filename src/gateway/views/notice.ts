import { isObject, isText } from '../../protocol/json.ts'
import type { ResearchEvent, ResearchEventType } from '../../protocol/event.ts'
import { typesOf } from '../../protocol/event-types.ts'
import type { Entry } from '../../log/store/contract.ts'
import { bounded } from './bounded.ts'

/** A notice about a source: events that are missing, an error, a source that was lost or reached again. */
export interface NoticeRow {
  readonly kind: 'notice'
  readonly type: ResearchEventType
  /** The data of the event. */
  readonly event: unknown
  /** When it was recorded, in Unix ms. */
  readonly recorded: number
  /** Set if a part was too long for the row. */
  readonly truncated?: true
}

/** The most that is kept of a notice's data, in bytes. */
const MAX_NOTICE = 16_384

/** The types of events about a source that a notice may have. */
export const NOTICES = [
  'error',
  ...typesOf('stream'),
  'source.failed',
  'source.live',
  'source.lost',
  'unknown',
] as const

/** Whether the event is worth a notice. The first `source.live` of a source is not. */
export function isNotice(event: ResearchEvent): boolean {
  return event.type !== 'source.live' || (isObject(event.data) && isText(event.data['lost']))
}

/** The row of an entry. */
export function noticeRow({ type, data, recorded }: Entry): NoticeRow {
  const { value: event, isTruncated } = bounded<unknown, null>(data, MAX_NOTICE, null)
  return { kind: 'notice', type, event, recorded, ...(isTruncated && { truncated: true }) }
}
