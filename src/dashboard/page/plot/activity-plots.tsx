import { useId, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useDashboard } from '../dashboard.ts'
import { useView } from 'rivulet/react'
import { formats } from '../parts/format.ts'
import { useNow } from '../parts/time.tsx'
import { MissedNotice, useInstead } from '../parts/view-rows.tsx'
import { FAMILIES, slicesOf } from './activity.ts'
import type { Slice } from './activity.ts'
import { Plot } from './plot.tsx'
import type { Area } from './plot.tsx'
import { lagTicks, valueTicks } from './ticks.ts'

const SPANS = [
  { name: '1 h', label: 'Last hour', minutes: 1, count: 60 },
  { name: '6 h', label: 'Last 6 hours', minutes: 5, count: 72 },
  { name: '24 h', label: 'Last 24 hours', minutes: 20, count: 72 },
] as const

/** Events and lag over time. */
export function ActivityPlots(): ReactNode {
  const { live } = useDashboard()
  const snapshot = useView(live.view('activity'))
  const group = useId()
  const [span, setSpan] = useState<(typeof SPANS)[number]>(SPANS[0])
  const now = useNow()
  // The last slice, so that a new one is begun by time, and counted by rows alone.
  const until = Math.floor(now / (span.minutes * 60_000))
  const slices = useMemo(
    () => slicesOf(snapshot.rows.values(), until * span.minutes * 60_000, span.minutes, span.count),
    [snapshot.rows, until, span],
  )
  const instead = useInstead(snapshot, 'activity')

  return (
    <section className="panel" aria-labelledby="activity-title">
      <header className="panel-header">
        <h2 id="activity-title">Activity</h2>
        <fieldset className="choice">
          <legend className="visually-hidden">Time shown</legend>
          {SPANS.map((each) => (
            <label key={each.name}>
              <input type="radio" name={group} checked={each === span} onChange={() => setSpan(each)} />
              <span>{each.name}</span>
            </label>
          ))}
        </fieldset>
      </header>
      {instead ?? (
        <>
          <MissedNotice gaps={snapshot.gaps} />
          <div className="plots">
            <EventsPlot slices={slices} span={span} />
            <LagPlot slices={slices} span={span} />
          </div>
        </>
      )}
    </section>
  )
}

interface PlotProps {
  readonly slices: readonly Slice[]
  readonly span: (typeof SPANS)[number]
}

function EventsPlot({ slices, span }: PlotProps): ReactNode {
  const families = FAMILIES.filter((family) => slices.some(({ counts }) => counts[family] > 0))
  const total = slices.reduce((sum, slice) => sum + slice.total, 0)
  const { from, to, size } = rangeOf(slices, span)
  const ticks = valueTicks(Math.max(...slices.map((slice) => slice.total)), 4, true)
  const per = span.minutes === 1 ? 'minute' : `${span.minutes} minutes`
  return (
    <figure>
      <figcaption>
        <span className="figure-title">Events per {per}</span>
        <span className="figure-sum">
          {formats.number(total)} in the {span.label.toLowerCase()}
        </span>
      </figcaption>
      <Plot
        name={`Events per ${per}`}
        from={from}
        to={to}
        slice={size}
        ticks={ticks}
        none={total === 0 ? `No events in the ${span.label.toLowerCase()}` : undefined}
        format={formats.number}
        draw={(area) => slices.map((slice) => <Bar key={slice.from} slice={slice} size={size} area={area} />)}
        readout={(index) => {
          const slice = slices[index]
          if (slice === undefined) return null
          const counted = families.filter((family) => slice.counts[family] > 0)
          return (
            <>
              <strong>{formats.clock(slice.from)}</strong>{' '}
              {slice.total === 0
                ? 'no events'
                : counted.map((family) => `${family} ${formats.number(slice.counts[family])}`).join(', ')}
            </>
          )
        }}
        legend={families.map((family) => (
          <li key={family} className={`series-${family.toLowerCase()}`}>
            {family}
          </li>
        ))}
        table={
          <EventsTable
            slices={slices}
            families={families}
            caption={`Events per ${per}, ${span.label.toLowerCase()}`}
          />
        }
      />
    </figure>
  )
}

function EventsTable({
  slices,
  families,
  caption,
}: {
  readonly slices: readonly Slice[]
  /** The families of events that occur. */
  readonly families: readonly (typeof FAMILIES)[number][]
  readonly caption: string
}): ReactNode {
  return (
    <table>
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">From</th>
          {families.map((family) => (
            <th key={family} scope="col" className="right">
              {family}
            </th>
          ))}
          <th scope="col" className="right">
            All
          </th>
        </tr>
      </thead>
      <tbody>
        {slices
          .filter((slice) => slice.total > 0)
          .map((slice) => (
            <tr key={slice.from}>
              <th scope="row">{formats.clock(slice.from)}</th>
              {families.map((family) => (
                <td key={family} className="right">
                  {formats.number(slice.counts[family])}
                </td>
              ))}
              <td className="right">{formats.number(slice.total)}</td>
            </tr>
          ))}
      </tbody>
    </table>
  )
}

function Bar({
  slice,
  size,
  area,
}: {
  readonly slice: Slice
  readonly size: number
  readonly area: Area
}): ReactNode {
  const left = area.x(slice.from)
  const width = area.x(slice.from + size) - left
  const gap = width > 4 ? 1 : 0
  let below = 0
  return FAMILIES.map((family) => {
    const count = slice.counts[family]
    if (count === 0) return null
    const bottom = area.y(below)
    below += count
    const top = area.y(below)
    return (
      <rect
        key={family}
        className={`series-${family.toLowerCase()}`}
        x={left + gap / 2}
        width={Math.max(1, width - gap)}
        y={top}
        height={Math.max(0.5, bottom - top)}
      />
    )
  })
}

function LagPlot({ slices, span }: PlotProps): ReactNode {
  const { from, to, size } = rangeOf(slices, span)
  const known = slices.flatMap(({ from: at, lag }) => (lag === undefined ? [] : [{ at, ...lag }]))
  const last = known.at(-1)
  // Lags are of milliseconds or of hours. On a linear axis, one long lag would hide all short ones.
  const ticks = lagTicks(
    known.map(({ mean }) => mean),
    known.map(({ max }) => max),
  )
  return (
    <figure>
      <figcaption>
        <span className="figure-title">Lag from event to log</span>
        <span className="figure-sum">
          {last !== undefined && `${formats.duration(last.mean)} on average at ${formats.clock(last.at)}`}
        </span>
      </figcaption>
      <Plot
        name="Lag from event to log"
        from={from}
        to={to}
        slice={size}
        ticks={ticks}
        isLogarithmic
        none={known.length === 0 ? `No events with a time in the ${span.label.toLowerCase()}` : undefined}
        format={formats.duration}
        draw={(area) => (
          <>
            {runsOf(slices).map((run) => (
              <LagRun key={run[0]?.from} run={run} size={size} area={area} />
            ))}
          </>
        )}
        readout={(index) => {
          const slice = slices[index]
          if (slice === undefined) return null
          return (
            <>
              <strong>{formats.clock(slice.from)}</strong>{' '}
              {slice.lag === undefined
                ? 'no events with a time'
                : `${formats.duration(slice.lag.mean)} on average, ${formats.duration(slice.lag.max)} at most`}
            </>
          )
        }}
        legend={
          known.length > 0 && (
            <>
              <li className="lag-mean">Average</li>
              <li className="lag-max">Highest</li>
            </>
          )
        }
        table={<LagTable known={known} caption={`Lag from event to log, ${span.label.toLowerCase()}`} />}
      />
    </figure>
  )
}

function LagTable({
  known,
  caption,
}: {
  /** The slices with a lag, with the time at which they begin. */
  readonly known: readonly { readonly at: number; readonly mean: number; readonly max: number }[]
  readonly caption: string
}): ReactNode {
  return (
    <table>
      <caption className="visually-hidden">{caption}</caption>
      <thead>
        <tr>
          <th scope="col">From</th>
          <th scope="col" className="right">
            Average
          </th>
          <th scope="col" className="right">
            Highest
          </th>
        </tr>
      </thead>
      <tbody>
        {known.map(({ at, mean, max }) => (
          <tr key={at}>
            <th scope="row">{formats.clock(at)}</th>
            <td className="right">{formats.duration(mean)}</td>
            <td className="right">{formats.duration(max)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** Adjacent slices with a lag: a line is not drawn over slices without. */
function runsOf(slices: readonly Slice[]): Slice[][] {
  const runs: Slice[][] = []
  let isOpen = false
  for (const slice of slices) {
    if (slice.lag !== undefined) {
      if (isOpen) runs.at(-1)?.push(slice)
      else runs.push([slice])
    }
    isOpen = slice.lag !== undefined
  }
  return runs
}

function LagRun({
  run,
  size,
  area,
}: {
  readonly run: readonly Slice[]
  readonly size: number
  readonly area: Area
}): ReactNode {
  const points = (value: (lag: { readonly mean: number; readonly max: number }) => number) =>
    run.flatMap(({ from, lag }) => {
      if (lag === undefined) return []
      const y = area.y(value(lag)).toFixed(1)
      // As wide as its slice, so that a single one is seen.
      return [`${area.x(from).toFixed(1)} ${y}`, `${area.x(from + size).toFixed(1)} ${y}`]
    })
  const max = points((lag) => lag.max)
  const mean = points((lag) => lag.mean)
  return (
    <>
      <polygon className="lag-max" points={`${max.join(' ')} ${mean.toReversed().join(' ')}`} />
      <polyline className="lag-mean" points={mean.join(' ')} />
    </>
  )
}

function rangeOf(slices: readonly Slice[], span: PlotProps['span']) {
  const size = span.minutes * 60_000
  const from = slices[0]?.from ?? 0
  return { from, to: from + slices.length * size, size }
}
