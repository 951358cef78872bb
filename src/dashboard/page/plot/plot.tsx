import { useLayoutEffect, useRef, useState } from 'react'
import type { KeyboardEvent, PointerEvent, ReactNode } from 'react'
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

/**
 * The frame of a plot over time: axes, grid, and a readout of the slice under the pointer, or that the arrow keys choose. The drawing is
 * hidden from screen readers, which get the table.
 */
export function Plot({
  name,
  from,
  to,
  slice,
  ticks,
  isLogarithmic = false,
  none,
  format,
  draw,
  readout,
  legend,
  table,
}: {
  readonly name: string
  /** The axis of time, in Unix ms. */
  readonly from: number
  readonly to: number
  /** The width of a slice, in ms. */
  readonly slice: number
  readonly ticks: readonly number[]
  /** Whether the axis of values is logarithmic. Then no tick is 0. */
  readonly isLogarithmic?: boolean
  /** The message if there is nothing to draw; undefined if there is something. */
  readonly none: string | undefined
  readonly format: (value: number) => string
  readonly draw: (area: Area) => ReactNode
  /** The text for the slice with this index. */
  readonly readout: (index: number) => ReactNode
  readonly legend: ReactNode
  readonly table: ReactNode
}): ReactNode {
  const frame = useRef<HTMLDivElement>(null)
  const width = useWidth(frame)
  const [chosen, setChosen] = useState<number>()
  const count = Math.round((to - from) / slice)
  const scale = isLogarithmic ? Math.log : Number
  const lowest = scale(ticks[0] ?? 0)
  const highest = scale(ticks.at(-1) ?? 1)
  const inner = {
    width: Math.max(0, width - MARGIN.left - MARGIN.right),
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  }
  const area: Area = {
    ...inner,
    x: (at) => ((at - from) / (to - from)) * inner.width,
    y(value) {
      const share = (scale(value) - lowest) / (highest - lowest)
      return inner.height - Math.min(1, Math.max(0, share)) * inner.height
    },
  }
  // The text of one at the right end would be cut.
  const times = timeTicks(from, to, Math.max(2, Math.floor(inner.width / 84))).filter(
    (at) => area.x(at) < inner.width - 22,
  )
  const isLong = to - from > 36 * 3_600_000

  const point = (event: PointerEvent) => {
    const box = event.currentTarget.getBoundingClientRect()
    const index = Math.floor(((event.clientX - box.left - MARGIN.left) / inner.width) * count)
    setChosen(index >= 0 && index < count ? index : undefined)
  }
  const step = (event: KeyboardEvent) => {
    const move = { ArrowLeft: -1, ArrowRight: 1, Home: -count, End: count }[event.key]
    if (event.key === 'Escape') setChosen(undefined)
    if (move === undefined) return
    event.preventDefault()
    setChosen(Math.min(count - 1, Math.max(0, (chosen ?? count) + move)))
  }

  return (
    <div className="plot" ref={frame}>
      <div
        className="plot-focus"
        role="group"
        aria-label={`${name}: use the arrow keys to read it slice by slice`}
        tabIndex={0}
        onPointerMove={point}
        onPointerLeave={() => setChosen(undefined)}
        onKeyDown={step}
        onBlur={() => setChosen(undefined)}
      >
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true" focusable="false">
            <g transform={`translate(${MARGIN.left} ${MARGIN.top})`}>
              {(none === undefined ? ticks : ticks.slice(0, 1)).map((tick) => (
                <g key={tick} transform={`translate(0 ${area.y(tick)})`}>
                  <line className={tick === ticks[0] ? 'axis' : 'grid'} x2={inner.width} />
                  <text className="tick" x={-8} dy="0.32em" textAnchor="end">
                    {format(tick)}
                  </text>
                </g>
              ))}
              {none !== undefined && (
                <text className="plot-none" x={inner.width / 2} y={inner.height / 2} textAnchor="middle">
                  {none}
                </text>
              )}
              {chosen !== undefined && (
                <rect
                  className="plot-chosen"
                  x={area.x(from + chosen * slice)}
                  width={inner.width / count}
                  height={inner.height}
                />
              )}
              {draw(area)}
              {times.map((at) => (
                <g key={at} transform={`translate(${area.x(at)} ${inner.height})`}>
                  <line className="axis" y2={4} />
                  <text className="tick" y={16} textAnchor="middle">
                    {isLong ? formats.shortDay(at) : formats.clock(at)}
                  </text>
                </g>
              ))}
            </g>
          </svg>
        )}
        <div className="plot-readout" aria-live="polite">
          {chosen !== undefined && readout(chosen)}
        </div>
      </div>
      <div className="plot-foot">
        <ul className="legend">{legend}</ul>
        <details className="plot-table">
          <summary>Table</summary>
          <div className="scroll" tabIndex={0} role="region" aria-label={`${name}, as a table`}>
            {table}
          </div>
        </details>
      </div>
    </div>
  )
}

/** The width of an element, in CSS pixels; 0 before it is known. */
function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const { current } = element
    if (current === null) return undefined
    setWidth(current.clientWidth)
    const observer = new ResizeObserver(() => setWidth(current.clientWidth))
    observer.observe(current)
    return () => observer.disconnect()
  }, [element])
  return width
}
