import { useSyncExternalStore } from 'react'
import type { ReactNode } from 'react'
import { formats } from './format.ts'

/** How often relative times are written anew, in ms. */
const STEP = 5_000

const listeners = new Set<() => void>()
let now = Date.now()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void): () => void {
  // The clock stands while nothing shows it.
  if (timer === undefined) now = Date.now()
  listeners.add(listener)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const each of listeners) each()
  }, STEP)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** One timer serves all components that show it. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}

/** How long ago, with the exact time on hover. */
export function RelativeTime({ at }: { readonly at: number }): ReactNode {
  const time = useNow()
  return (
    <time dateTime={new Date(at).toISOString()} title={formats.exact(at)}>
      {formats.relative(at, time)}
    </time>
  )
}

/** A time of day, with the date on hover. */
export function ClockTime({
  at,
  seconds = false,
}: {
  readonly at: number
  readonly seconds?: boolean
}): ReactNode {
  return (
    <time dateTime={new Date(at).toISOString()} title={formats.exact(at)}>
      {seconds ? formats.clockWithSeconds(at) : formats.clock(at)}
    </time>
  )
}

/** The duration until now, with its beginning on hover. */
export function Elapsed({ since }: { readonly since: number }): ReactNode {
  const time = useNow()
  return (
    <time dateTime={new Date(since).toISOString()} title={`since ${formats.exact(since)}`}>
      {formats.duration(Math.max(0, time - since))}
    </time>
  )
}
