import type { ReactNode } from 'react'
import type { ViewSnapshot } from 'rivulet/live'
import { useConnection } from '../dashboard.ts'
import { Loading, Notice } from './notice.tsx'

/**
 * Shown instead of a view's rows while they have not come, and when the server refuses them. Undefined if there are rows, current ones or
 * those from before the connection was lost; the page's header shows which.
 */
export function useInstead(
  { ready, status }: Pick<ViewSnapshot<unknown>, 'ready' | 'status'>,
  what: string,
): ReactNode | undefined {
  const { isRefused } = useConnection()
  if (isRefused) {
    return (
      <Notice icon="off" title="Not shown">
        <p>{`Open the page with its key to see ${what}.`}</p>
      </Notice>
    )
  }
  if (status.state === 'denied') {
    return (
      <Notice icon="off" title={`This dashboard may not show ${what}`}>
        <p>
          {status.error === undefined
            ? 'Its server refuses them.'
            : `Its server says: ${status.error.message}`}
        </p>
      </Notice>
    )
  }
  if (ready) return undefined
  if (status.state === 'offline') {
    return (
      <Notice icon="off" title="No network">
        <p>{`The ${what} will come when the browser is online again.`}</p>
      </Notice>
    )
  }
  if (status.state === 'stale') {
    return (
      <Notice icon="off" title="The dashboard’s server cannot be reached">
        <p>{`The ${what} will come when it answers. The page goes on trying.`}</p>
      </Notice>
    )
  }
  return <Loading what={what} />
}

/** Says that a view lacks events which were deleted before it read them. */
export function MissedNotice({ gaps }: { readonly gaps: number }): ReactNode {
  if (gaps === 0) return null
  return (
    <p className="note warn">
      Some events were deleted by the log’s retention before this view read them. What they changed is not
      shown.
    </p>
  )
}
