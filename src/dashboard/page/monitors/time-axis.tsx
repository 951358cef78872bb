import type { ReactNode } from 'react'
import { formats } from '../parts/format.ts'
import { useNow } from '../parts/time.tsx'
import { useWidth } from '../plot/plot.tsx'
import { timeTicks } from '../plot/ticks.ts'
import type { TimelineEntry } from './timeline.ts'

const HEIGHT = 58
const BASE = 36
const HOUR = 3_600_000

/** The entries as marks on an axis of time. The list below it has the same content in words. */
export function TimeAxis({
  entries,
  timeOf,
}: {
  readonly entries: readonly TimelineEntry[]
  readonly timeOf: (entry: TimelineEntry) => number
}): ReactNode {
  const { width, ref } = useWidth()
  const now = useNow()
  if (entries.length === 0) return null

  const times = entries.map(timeOf)
  const first = times.reduce((a, b) => Math.min(a, b))
  const last = times.reduce((a, b) => Math.max(a, b))
  const padding = Math.max((last - first) * 0.02, HOUR / 2)
  const from = first - padding
  // Nothing was found in the future, but a date may be there.
  const to = last > now ? last + padding : Math.min(last + padding, Math.max(now, last + 0.05 * padding))
  const x = (at: number) => ((at - from) / (to - from)) * width
  const ticks = timeTicks(from, to, Math.max(2, Math.floor(width / 84)))
  const isOfDays = to - from > 48 * HOUR

  return (
    <div className="time-axis" ref={ref}>
      {width > 0 && (
        <svg
          width={width}
          height={HEIGHT}
          role="img"
          aria-label={`${formats.number(entries.length)} ${entries.length === 1 ? 'event' : 'events'} from ${formats.exact(first)} to ${formats.exact(last)}`}
        >
          {ticks.map((at) => (
            <g key={at} transform={`translate(${x(at)} 0)`}>
              <line className="grid" y1={4} y2={BASE} />
              <text className="tick" y={BASE + 16} textAnchor={anchorOf(x(at), width)}>
                {isOfDays ? formats.shortDay(at) : formats.clock(at)}
              </text>
            </g>
          ))}
          <line className="axis" x2={width} y1={BASE} y2={BASE} />
          <Marks entries={entries} left={(entry) => x(timeOf(entry))} />
        </svg>
      )}
    </div>
  )
}

/** The entries as marks. */
function Marks({
  entries,
  left: leftOf,
}: {
  readonly entries: readonly TimelineEntry[]
  readonly left: (entry: TimelineEntry) => number
}): ReactNode {
  return binned(entries, leftOf).map(({ left, kinds }) =>
    kinds.map(([kind, count], index) => (
      <rect
        key={`${left} ${kind}`}
        className={`mark-${kind}`}
        x={left}
        y={BASE - kinds.slice(0, index + 1).reduce((sum, [, each]) => sum + sizeOf(each), 0)}
        width={4}
        height={sizeOf(count) - 1}
        rx={1.5}
      />
    )),
  )
}

/** The height of a mark grows slowly, so that a burst does not hide single events. */
function sizeOf(count: number): number {
  return Math.min(30, 14 + 4 * Math.log2(count))
}

function anchorOf(x: number, width: number): 'start' | 'middle' | 'end' {
  if (x < 24) return 'start'
  return x > width - 24 ? 'end' : 'middle'
}

/** Entries that would overlap, as one mark. So thousands of entries are no more marks than fit into the width. */
function binned(entries: readonly TimelineEntry[], left: (entry: TimelineEntry) => number) {
  const bins = Map.groupBy(entries, (entry) => Math.round(left(entry) / 5) * 5 - 2)
  return [...bins].map(([at, those]) => {
    const kinds = Map.groupBy(those, ({ kind }) => kind)
    return { left: at, kinds: [...kinds].map(([kind, { length }]) => [kind, length] as const) }
  })
}
