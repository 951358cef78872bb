import { useId, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { rowKey } from 'rivulet/live'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { formats } from '../parts/format.ts'
import { useMore } from '../parts/more.tsx'
import { Notice } from '../parts/notice.tsx'
import { RelativeTime } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import type { MonitorRow, MonitorsRow } from '../rows.ts'
import { MonitorState } from './monitor-list.tsx'
import { TimeAxis } from './time-axis.tsx'
import { TimelineItem } from './timeline-item.tsx'
import { timelineEntry } from './timeline.ts'
import type { TimelineEntry } from './timeline.ts'
import { Foreign } from '../parts/foreign.tsx'

type Order = 'found' | 'happened'

/** Which events are shown, and in which order. */
interface Arrangement {
  readonly order: Order
  /** Whether runs that found nothing are shown. */
  readonly hasAll: boolean
}

/** A monitor: its events on an axis of time, and by day. */
export function MonitorDetail({ monitor }: { readonly monitor: string }): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('monitor', { monitor }))
  const summary = useView(live.view('monitors')).rows.get(rowKey([monitor]))
  const entries = useMemo(() => entriesOf(snapshot.rows), [snapshot.rows])
  // Here, since it outlasts the time in which the events are loaded again.
  const [arrangement, setArrangement] = useState<Arrangement>({ order: 'found', hasAll: false })
  const instead = useInstead(snapshot, 'events')

  return (
    <article aria-labelledby="monitor-title" className="detail">
      <header className="detail-header">
        <p className="eyebrow">Monitor</p>
        <h1 id="monitor-title" className="mono" tabIndex={-1}>
          <Foreign>{summary?.monitor ?? monitor}</Foreign>
        </h1>
        {summary !== undefined && <MonitorFacts summary={summary} />}
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          <Timeline entries={entries} arrangement={arrangement} onArrange={setArrangement} />
        </>
      )}
    </article>
  )
}

function MonitorFacts({ summary }: { readonly summary: MonitorsRow }): ReactNode {
  return (
    <div className="detail-facts">
      <MonitorState state={summary.state} />
      <span>
        {formats.number(summary.events)} {summary.events === 1 ? 'change' : 'changes'}
      </span>
      {summary.completions > 0 && (
        <span className="muted">
          {formats.number(summary.completions)} {summary.completions === 1 ? 'run' : 'runs'} without a change
        </span>
      )}
      {summary.last !== null && (
        <span className="muted">
          last <RelativeTime at={summary.last} />
        </span>
      )}
    </div>
  )
}

/** The events, on an axis and by day, in the order that the reader chooses. */
function Timeline({
  entries,
  arrangement,
  onArrange,
}: {
  readonly entries: readonly TimelineEntry[]
  readonly arrangement: Arrangement
  readonly onArrange: (arrangement: Arrangement) => void
}): ReactNode {
  const { order, hasAll } = arrangement
  const shown = useMemo(() => arranged(entries, order, hasAll), [entries, order, hasAll])
  const quiet = entries.filter(({ kind }) => kind === 'completion').length
  if (entries.length === 0) {
    return (
      <Notice icon="clock" title="No events yet">
        <p>
          What the monitor finds appears here at once. Events of more than 30 days ago are only in the log.
        </p>
      </Notice>
    )
  }
  return (
    <>
      <TimeAxis entries={shown} timeOf={timeOf(order)} />
      <div className="toolbar">
        <h2>
          Events <span className="muted">{formats.number(shown.length)}</span>
        </h2>
        <div className="toolbar-side">
          {quiet > 0 && (
            <label className="check">
              <input
                type="checkbox"
                checked={hasAll}
                onChange={() => onArrange({ order, hasAll: !hasAll })}
              />
              Runs that found nothing <span className="muted">{formats.number(quiet)}</span>
            </label>
          )}
          <OrderChoice order={order} onChange={(chosen) => onArrange({ order: chosen, hasAll })} />
        </div>
      </div>
      <Days entries={shown} order={order} />
    </>
  )
}

function OrderChoice({
  order,
  onChange,
}: {
  readonly order: Order
  readonly onChange: (order: Order) => void
}): ReactNode {
  const group = useId()
  return (
    <fieldset className="choice">
      <legend className="visually-hidden">Order of the events</legend>
      {(['found', 'happened'] as const).map((each) => (
        <label key={each}>
          <input type="radio" name={group} checked={order === each} onChange={() => onChange(each)} />
          <span>{each === 'found' ? 'As found' : 'As it happened'}</span>
        </label>
      ))}
    </fieldset>
  )
}

function Days({
  entries,
  order,
}: {
  readonly entries: readonly TimelineEntry[]
  readonly order: Order
}): ReactNode {
  const { shown, more } = useMore(entries, 60)
  const days = groupByDay(shown, timeOf(order), formats.dayKey)
  if (entries.length === 0) return <p className="hint">Only runs that found nothing.</p>
  return (
    <>
      {days.map((day) => (
        <section key={day.key} className="day" aria-label={formats.day(day.at)}>
          <h3>
            {formats.day(day.at)} <span className="muted">{formats.number(day.items.length)}</span>
          </h3>
          <ol className="timeline">
            {day.items.map((entry) => (
              <TimelineItem key={entry.key} entry={entry} hasClock={order === 'found'} />
            ))}
          </ol>
        </section>
      ))}
      {more}
    </>
  )
}

function timeOf(order: Order): (entry: TimelineEntry) => number {
  return order === 'found' ? ({ found }) => found : ({ found, happened }) => happened ?? found
}

function entriesOf(rows: ReadonlyMap<string, MonitorRow>): TimelineEntry[] {
  return [...rows].map(([key, row]) => timelineEntry(key, row))
}

function arranged(entries: readonly TimelineEntry[], order: Order, hasAll: boolean): TimelineEntry[] {
  const time = timeOf(order)
  return entries
    .filter(({ kind }) => hasAll || kind !== 'completion')
    .toSorted((a, b) => time(b) - time(a) || b.found - a.found)
}

/** Items of one day. */
interface Day<Item> {
  /** Equal for the days of one date. */
  readonly key: string
  /** The time of the day's first item, in Unix ms. */
  readonly at: number
  readonly items: readonly Item[]
}

/** Groups items by the day of their time, in their given order. Adjacent items of one date form a day. */
export function groupByDay<Item>(
  items: readonly Item[],
  time: (item: Item) => number,
  dayKey: (at: number) => string,
): Day<Item>[] {
  const days: { key: string; at: number; items: Item[] }[] = []
  for (const item of items) {
    const at = time(item)
    const key = dayKey(at)
    const last = days.at(-1)
    if (last?.key === key) last.items.push(item)
    else days.push({ key, at, items: [item] })
  }
  return days
}
