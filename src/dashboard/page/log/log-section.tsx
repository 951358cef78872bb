import { useLogStatus } from '../dashboard.ts'
import type { ReactNode } from 'react'
import type { LogStats } from 'rivulet/log'
import { formats } from '../parts/format.ts'
import { Loading, Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { Readers } from './readers.tsx'
import { Foreign } from '../parts/foreign.tsx'

/** The log itself: its size, its readers and the streams that are recorded. */
export function LogSection(): ReactNode {
  const { status, error } = useLogStatus()
  return (
    <div className="column wide-column">
      <h1 tabIndex={-1}>Log</h1>
      {status === undefined ? (
        error === undefined ? (
          <Loading what="the log’s numbers" />
        ) : (
          <Notice icon="off" title="The log’s numbers could not be read">
            <p>{error.message}</p>
          </Notice>
        )
      ) : (
        <>
          {error !== undefined && (
            <p className="note warn">
              These numbers are as of <RelativeTime at={status.now} />: {error.message}
            </p>
          )}
          <Size log={status.log} />
          <section className="panel" aria-labelledby="readers-title">
            <header className="panel-header">
              <h2 id="readers-title">Readers</h2>
            </header>
            {status.log.pausedBy !== null && (
              <p className="note warn">
                Recorders wait for <Foreign className="mono">{status.log.pausedBy}</Foreign>, which keeps the
                log from deleting old entries.
              </p>
            )}
            <Readers readers={status.log.readers} />
          </section>
          <section className="panel" aria-labelledby="streams-title">
            <header className="panel-header">
              <h2 id="streams-title">Recorded streams</h2>
            </header>
            <Streams streams={status.log.streams} />
          </section>
        </>
      )}
    </div>
  )
}

function Size({ log }: { readonly log: LogStats }): ReactNode {
  return (
    <dl className="figures panel">
      <div>
        <dt>Entries</dt>
        <dd>{formats.number(log.entries)}</dd>
      </div>
      <div>
        <dt>Size</dt>
        <dd>{formats.bytes(log.bytes + log.walBytes)}</dd>
      </div>
      <div>
        <dt>Oldest entry</dt>
        <dd>{log.oldest === null ? '–' : <RelativeTime at={log.oldest} />}</dd>
      </div>
      <div>
        <dt>Newest entry</dt>
        <dd>{log.newest === null ? '–' : <RelativeTime at={log.newest} />}</dd>
      </div>
      <div>
        <dt>Webhooks waiting</dt>
        <dd>{formats.number(log.inbox.pending)}</dd>
      </div>
    </dl>
  )
}

function Streams({ streams }: { readonly streams: LogStats['streams'] }): ReactNode {
  if (streams.length === 0) {
    return (
      <Notice icon="run" title="No stream is recorded">
        <p>
          A recorder writes the streams of the service into this log: <code>log.record(…)</code> or{' '}
          <code>rivulet record</code>.
        </p>
      </Notice>
    )
  }
  return (
    <ul className="rows streams">
      {streams.slice(0, 500).map(({ name, owner }) => (
        <li key={name} className="stream">
          <Foreign className="mono">{name}</Foreign>
          <span className="muted small">
            <Foreign>{owner ?? 'not recorded at the moment'}</Foreign>
          </span>
        </li>
      ))}
    </ul>
  )
}
