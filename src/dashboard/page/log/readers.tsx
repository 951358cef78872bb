import type { ReactNode } from 'react'
import type { LogStats } from 'rivulet/log'
import { Badge } from '../parts/badge.tsx'
import { formats } from '../parts/format.ts'
import { Notice } from '../parts/notice.tsx'
import { Foreign } from '../parts/foreign.tsx'

type Reader = LogStats['readers'][number]

/** Entries that a reader may be behind before it is marked. */
const BEHIND = 1_000

/** Consumers and processes of the log, the furthest behind first. */
export function Readers({ readers }: { readonly readers: LogStats['readers'] }): ReactNode {
  if (readers.length === 0) {
    return (
      <Notice icon="pulse" title="No readers yet">
        <p>Consumers and processes appear here with how far each is behind.</p>
      </Notice>
    )
  }
  const sorted = readers.toSorted(
    (a, b) => b.lag.entries - a.lag.entries || rankOf(a) - rankOf(b) || a.name.localeCompare(b.name),
  )
  const most = Math.max(1, ...readers.map(({ lag }) => lag.entries))
  return (
    <div className="scroll" tabIndex={0} role="region" aria-label="Table of readers">
      <table className="wide stacked">
        <thead>
          <tr>
            <th scope="col">Reader</th>
            <th scope="col">State</th>
            <th scope="col" className="right">
              Behind
            </th>
            <th scope="col" className="right">
              Since
            </th>
            <th scope="col" className="right">
              Dead letters
            </th>
            <th scope="col">Runs in</th>
          </tr>
        </thead>
        <tbody>
          {sorted.map((reader) => (
            <ReaderRow key={`${reader.kind}:${reader.name}`} reader={reader} most={most} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function ReaderRow({
  reader,
  most,
}: {
  readonly reader: Reader
  /** How many entries the reader that is the furthest behind is behind. */
  readonly most: number
}): ReactNode {
  return (
    <tr>
      <th scope="row">
        <Foreign>{reader.name}</Foreign> <span className="tag">{reader.kind}</span>
      </th>
      <td data-label="State">
        <ReaderState reader={reader} />
      </td>
      <td data-label="Behind" className="right">
        <span className="behind">
          <span className="behind-bar" aria-hidden="true">
            <span style={{ width: `${(reader.lag.entries / most) * 100}%` }} />
          </span>
          <span>{formats.number(reader.lag.entries)}</span>
        </span>
      </td>
      <td data-label="Since" className="right">
        {reader.lag.entries === 0 ? '–' : formats.duration(reader.lag.seconds * 1_000)}
      </td>
      <td data-label="Dead letters" className={reader.deadLetters > 0 ? 'right bad-text' : 'right'}>
        {formats.number(reader.deadLetters)}
      </td>
      <td data-label="Runs in" className="muted">
        <Foreign>{reader.owner ?? '–'}</Foreign>
      </td>
    </tr>
  )
}

/** The rank in the list: readers of programs come before those of gateways, such as this dashboard's. */
function rankOf({ kind, name }: Reader): number {
  return kind === 'process' && /^(?:view|gateway):/.test(name) ? 1 : 0
}

function ReaderState({ reader }: { readonly reader: Reader }): ReactNode {
  if (reader.isPaused) {
    return (
      <Badge tone="warn" icon="pause">
        paused
      </Badge>
    )
  }
  if (reader.owner === null) {
    return (
      <Badge tone={reader.lag.entries > 0 ? 'warn' : 'quiet'} icon="off">
        not running
      </Badge>
    )
  }
  if (reader.lag.entries > BEHIND) {
    return (
      <Badge tone="warn" icon="clock">
        catching up
      </Badge>
    )
  }
  return (
    <Badge tone="good" icon="check">
      up to date
    </Badge>
  )
}
