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
import type { MonitorRow } from '../rows.ts'
import { MonitorState } from './monitor-list.tsx'
import { TimeAxis } from './time-axis.tsx'
import { TimelineItem } from './timeline-item.tsx'
import { timelineEntry } from './timeline.ts'
import type { TimelineEntry } from './timeline.ts'
import { Foreign } from '../parts/foreign.tsx'

type Order = 'found' | 'happened'

/** A monitor: its events on an axis of time, and by day. */
export function MonitorDetail({ monitor }: { readonly monitor: string }): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('monitor', { monitor }))
  const summary = useView(live.view('monitors')).rows.get(rowKey([monitor]))
  const [order, setOrder] = useState<Order>('found')
  const [hasAll, setAll] = useState(false)
  const entries = useMemo(() => entriesOf(snapshot.rows), [snapshot.rows])
  const shown = useMemo(() => arranged(entries, order, hasAll), [entries, order, hasAll])
  const quiet = entries.filter(({ kind }) => kind === 'completion').length
  const group = useId()
  const instead = useInstead(snapshot, 'events')

  return (
    <article aria-labelledby="monitor-title" className="detail">
      <header className="detail-header">
        <p className="eyebrow">Monitor</p>
        <h1 id="monitor-title" className="mono" tabIndex={-1}>
          <Foreign>{summary?.monitor ?? monitor}</Foreign>
        </h1>
        {summary !== undefined && (
          <div className="detail-facts">
            <MonitorState state={summary.state} />
            <span>
              {formats.number(summary.events)} {summary.events === 1 ? 'change' : 'changes'}
            </span>
            {summary.completions > 0 && (
              <span className="muted">
                {formats.number(summary.completions)} {summary.completions === 1 ? 'run' : 'runs'} without a
                change
              </span>
            )}
            {summary.last !== null && (
              <span className="muted">
                last <RelativeTime at={summary.last} />
              </span>
            )}
          </div>
        )}
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          {entries.length === 0 ? (
            <Notice icon="clock" title="No events yet">
              <p>
                What the monitor finds appears here at once. Events of more than 30 days ago are only in the
                log.
              </p>
            </Notice>
          ) : (
            <>
              <TimeAxis entries={shown} timeOf={timeOf(order)} />
              <div className="toolbar">
                <h2>
                  Events <span className="muted">{formats.number(shown.length)}</span>
                </h2>
                <div className="toolbar-side">
                  {quiet > 0 && (
                    <label className="check">
                      <input type="checkbox" checked={hasAll} onChange={() => setAll(!hasAll)} />
                      Runs that found nothing <span className="muted">{formats.number(quiet)}</span>
                    </label>
                  )}
                  <fieldset className="choice">
                    <legend className="visually-hidden">Order of the events</legend>
                    {(['found', 'happened'] as const).map((each) => (
                      <label key={each}>
                        <input
                          type="radio"
                          name={group}
                          checked={order === each}
                          onChange={() => setOrder(each)}
                        />
                        <span>{each === 'found' ? 'As found' : 'As it happened'}</span>
                      </label>
                    ))}
                  </fieldset>
                </div>
              </div>
              <Days entries={shown} order={order} />
            </>
          )}
        </>
      )}
    </article>
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
