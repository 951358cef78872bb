import { useCallback, useState } from 'react'
import type { KeyboardEvent, PointerEvent, ReactNode, RefCallback } from 'react'
import { formats } from '../parts/format.ts'
import { timeTicks } from './ticks.ts'

const HEIGHT = 168
const MARGIN = { top: 8, right: 4, bottom: 22, left: 54 }

/** The area in which a plot draws. */
export interface Area {
  readonly width: number
  readonly height: number
  x(at: number): number
  y(value: number): number
}

/** The axes of a plot. */
interface Axes {
  /** The axis of time, in Unix ms. */
  readonly from: number
  readonly to: number
  /** The width of a slice, in ms. */
  readonly slice: number
  readonly ticks: readonly number[]
  /** Whether the axis of values is logarithmic. Then no tick is 0. */
  readonly isLogarithmic?: boolean
}

/** A plot, as it is drawn. */
interface Drawing extends Axes {
  /** The message if there is nothing to draw; undefined if there is something. */
  readonly none: string | undefined
  readonly format: (value: number) => string
  readonly draw: (area: Area) => ReactNode
}

/** What stands below a plot. */
interface FootProps {
  readonly name: string
  readonly legend: ReactNode
  readonly table: ReactNode
}

/**
 * The frame of a plot over time: axes, grid, and a readout of the slice under the pointer, or that the arrow keys choose. The drawing is
 * hidden from screen readers, which get the table.
 */
export function Plot({
  name,
  readout,
  legend,
  table,
  ...drawing
}: Drawing &
  FootProps & {
    /** The text for the slice with this index. */
    readonly readout: (index: number) => ReactNode
  }): ReactNode {
  const { width, ref } = useWidth()
  const { from, to, slice } = drawing
  const count = Math.round((to - from) / slice)
  const area = areaOf(drawing, width)
  const { chosen, handlers } = useSlice(count, area.width)
  return (
    <div className="plot" ref={ref}>
      <div
        className="plot-focus"
        role="group"
        aria-label={`${name}: use the arrow keys to read it slice by slice`}
        tabIndex={0}
        {...handlers}
      >
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true" focusable="false">
            <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
              <Values {...drawing} area={area} />
              {chosen !== undefined && (
                <rect
                  className="plot-chosen"
                  x={area.x(from + chosen * slice)}
                  width={area.width / count}
                  height={area.height}
                />
              )}
              {drawing.draw(area)}
              <Times from={from} to={to} area={area} />
            </g>
          </svg>
        )}
        <div className="plot-readout" aria-live="polite">
          {chosen !== undefined && readout(chosen)}
        </div>
      </div>
      <Foot name={name} legend={legend} table={table} />
    </div>
  )
}

function Foot({ name, legend, table }: FootProps): ReactNode {
  return (
    <div className="plot-foot">
      <ul className="legend">{legend}</ul>
      <details className="plot-table">
        <summary>Table</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label={`${name}, as a table`}>
          {table}
        </div>
      </details>
    </div>
  )
}

/** The area within the margins of a plot of this width. */
function areaOf({ from, to, ticks, isLogarithmic = false }: Axes, plotWidth: number): Area {
  const width = Math.max(0, plotWidth - MARGIN.left - MARGIN.right)
  const height = HEIGHT - MARGIN.top - MARGIN.bottom
  const scale = isLogarithmic ? Math.log : Number
  const lowest = scale(ticks[0] ?? 0)
  const highest = scale(ticks.at(-1) ?? 1)
  return {
    width,
    height,
    x: (at) => ((at - from) / (to - from)) * width,
    y(value) {
      const share = (scale(value) - lowest) / (highest - lowest)
      return height - Math.min(1, Math.max(0, share)) * height
    },
  }
}

/** The slice that pointer or keys have chosen. @param width The width in which the slices are, in CSS pixels. */
function useSlice(count: number, width: number) {
  const [chosen, setChosen] = useState<number>()
  const clear = () => setChosen(undefined)
  const point = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect()
    const index = Math.floor(((event.clientX - box.left - MARGIN.left) / width) * count)
    setChosen(index >= 0 && index < count ? index : undefined)
  }
  const step = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count }[event.key]
    if (event.key === 'Escape') clear()
    if (move === undefined) return
    event.preventDefault()
    setChosen(Math.min(count - 1, Math.max(0, (chosen ?? count) + move)))
  }
  return { chosen, handlers: { onPointerMove: point, onPointerLeave: clear, onKeyDown: step, onBlur: clear } }
}

/** The axis of values with its grid, or the message that there is nothing. */
function Values({ ticks, none, format, area }: Drawing & { readonly area: Area }): ReactNode {
  const { width, height } = area
  return (
    <>
      {(none === undefined ? ticks : ticks.slice(0, 1)).map((tick) => (
        <g key={tick} transform={`translate(0 ${area.y(tick)})`}>
          <line className={tick === ticks[0] ? 'axis' : 'grid'} x2={width} />
          <text className="tick" x={-8} dy="0.32em" textAnchor="end">
            {format(tick)}
          </text>
        </g>
      ))}
      {none !== undefined && (
        <text className="plot-none" x={width / 2} y={height / 2} textAnchor="middle">
          {none}
        </text>
      )}
    </>
  )
}

/** The axis of time. */
function Times({ from, to, area }: Pick<Axes, 'from' | 'to'> & { readonly area: Area }): ReactNode {
  const { width, height } = area
  const isLong = to - from > 36 * 3_600_000
  // The text of one at the right end would be cut.
  const times = timeTicks(from, to, Math.max(2, Math.floor(width / 84))).filter(
    (at) => area.x(at) < width - 22,
  )
  return times.map((at) => (
    <g key={at} transform={`translate(${area.x(at)} ${height})`}>
      <line className="axis" y2={4} />
      <text className="tick" y={16} textAnchor="middle">
        {isLong ? formats.shortDay(at) : formats.clock(at)}
      </text>
    </g>
  ))
}

/** The width of the element that has the ref, in CSS pixels; 0 before it is known. Another element may have the ref later. */
export function useWidth(): { readonly width: number; readonly ref: RefCallback<HTMLElement> } {
  const [width, setWidth] = useState(0)
  const ref = useCallback((element: HTMLElement | null) => {
    if (element === null) return undefined
    setWidth(element.clientWidth)
    const observer = new ResizeObserver(() => setWidth(element.clientWidth))
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  return { width, ref }
}
