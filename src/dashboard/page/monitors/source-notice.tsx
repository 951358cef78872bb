import type { ReactNode } from 'react'
import { isObject } from '../evidence/evidence.ts'
import { instantOf, words } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { ClockTime } from '../parts/time.tsx'
import type { NoticeRow } from '../rows.ts'
import { visible } from '../parts/foreign.tsx'

/** Something about a source that is no result: a gap, an error, a loss. */
function SourceNotice({
  type,
  event,
  recorded,
}: {
  readonly type: string
  readonly event: unknown
  readonly recorded: number
}): ReactNode {
  return (
    <li className="source-notice">
      <Icon name={type === 'source.live' ? 'pulse' : 'off'} />
      <span dir="auto">{visible(noticeText(type, event))}</span>
      <span className="muted">
        <ClockTime at={recorded} />
      </span>
    </li>
  )
}

/** The last problems of a source. */
export function SourceNotices({
  notices,
}: {
  readonly notices: readonly (readonly [key: string, notice: NoticeRow])[]
}): ReactNode {
  if (notices.length === 0) return null
  return (
    <ul className="notices" aria-label="Problems of the source">
      {notices.slice(0, 5).map(([key, notice]) => (
        <SourceNotice key={key} type={notice.type} event={notice.event} recorded={notice.recorded} />
      ))}
    </ul>
  )
}

/** The meaning of such an event, as a sentence. */
export function noticeText(type: string, event: unknown): string {
  const data = isObject(event) ? event : {}
  const text = (name: string) => (typeof data[name] === 'string' ? data[name] : undefined)
  switch (type) {
    case 'source.lost':
      return `The source could not be reached: ${text('message') ?? 'no reason given'}`
    case 'source.live': {
      const lost = instantOf(data['lost'])
      return lost === undefined ? 'The source was reached' : 'The source was reached again'
    }
    case 'source.failed': {
      const error = data['error']
      const message =
        isObject(error) && typeof error['message'] === 'string' ? error['message'] : 'no reason given'
      return `The source was given up: ${message}`
    }
    case 'stream.gap':
      return `Events are missing: ${text('reason') ?? 'the service no longer has them'}`
    case 'stream.oversized':
      return 'An event was longer than the limit and was skipped'
    case 'monitor.cancelled':
      return 'The monitor was cancelled and reports nothing more'
    case 'error': {
      const error = data['error']
      return isObject(error) && typeof error['message'] === 'string'
        ? error['message']
        : 'The stream reported an error'
    }
    default:
      return words(type)
  }
}
