import { useEffect, useState } from 'react'
import type { ReactNode } from 'react'
import type { LogStats } from 'rivulet/log'
import type { LiveState } from 'rivulet/live'
import { useConnection, useLogStatus } from './dashboard.ts'
import { formats } from './parts/format.ts'
import { ClockTime } from './parts/time.tsx'

const WORDS = {
  connecting: 'Connecting',
  live: 'Live',
  stale: 'Reconnecting',
  offline: 'Offline',
  denied: 'Denied',
} satisfies Record<LiveState, string>

/** How long a state lasts before it is announced, in ms: a connection that returns at once is not announced. */
const SETTLED = 1_500

/** The state of the connection and the lag of the data, in the header. */
export function ConnectionStatus(): ReactNode {
  const status = useConnection()
  return (
    <span className={`connection ${status.state}`} title={`since ${formats.exact(status.since)}`}>
      <span className="connection-dot" aria-hidden="true" />
      <span>{WORDS[status.state]}</span>
      {status.state === 'live' && <Lag />}
    </span>
  )
}

/** How far the views of the dashboard are behind their log. */
function Lag(): ReactNode {
  const { status } = useLogStatus()
  const seconds = status === undefined ? undefined : lagOfViews(status.log.readers)
  if (seconds === undefined) return null
  if (seconds < 1) return <span className="lag none">up to date</span>
  return <span className="lag">{formats.duration(seconds * 1_000)} behind</span>
}

function lagOfViews(readers: LogStats['readers']): number | undefined {
  const views = readers.filter(({ kind, name }) => kind === 'process' && name.startsWith('view:dashboard/'))
  return views.length === 0 ? undefined : Math.max(...views.map(({ lag }) => lag.seconds))
}

/** A banner below the header that explains what a lost connection means for the data shown. */
export function ConnectionBanner(): ReactNode {
  const status = useConnection()
  const settled = useSettled(status.state)
  return (
    <>
      <Banner status={status} />
      <p className="visually-hidden" role="status">
        {settled === undefined ? '' : announcement(settled)}
      </p>
    </>
  )
}

function Banner({ status }: { readonly status: ReturnType<typeof useConnection> }): ReactNode {
  const { state, since, error, isRefused } = status
  if (state === 'stale') {
    return (
      <section className="banner warn" aria-label="Connection">
        <strong>Connection lost.</strong> Everything is as of <ClockTime at={since} seconds />. The page goes
        on trying.
      </section>
    )
  }
  if (state === 'offline') {
    return (
      <section className="banner warn" aria-label="Connection">
        <strong>No network.</strong> Everything is as of <ClockTime at={since} seconds />.
      </section>
    )
  }
  if (isRefused) {
    return (
      <section className="banner bad" aria-label="Connection">
        <strong>The dashboard refuses this browser.</strong> Open the address that{' '}
        <code>rivulet dashboard</code> has printed, with its key.
      </section>
    )
  }
  if (state === 'denied') {
    return (
      <section className="banner bad" aria-label="Connection">
        <strong>The server refuses a part of this page.</strong>
        {error !== undefined && ` It says: ${error.message}`}
      </section>
    )
  }
  return null
}

function announcement(state: LiveState): string {
  if (state === 'live') return 'Connected. The page is live.'
  if (state === 'stale') return 'Connection lost. Reconnecting.'
  if (state === 'offline') return 'No network.'
  if (state === 'denied') return 'The dashboard refuses this browser.'
  return ''
}

/** A state that has lasted for a while. */
function useSettled(state: LiveState): LiveState | undefined {
  const [settled, setSettled] = useState<LiveState>()
  useEffect(() => {
    const timer = setTimeout(() => setSettled(state), SETTLED)
    return () => clearTimeout(timer)
  }, [state])
  return settled
}
