import * as React from 'react'
import { useCallback, useEffect, useRef, useSyncExternalStore } from 'react'
import type { LiveStatus, LiveView, ViewSnapshot } from '../live/live.ts'
import { firstRows, waitOf } from './first-rows.ts'
import { shallowEqual } from './shallow-equal.ts'
import { useSelection } from './use-selection.ts'
import { whole } from './use-view.ts'

/** The part of a view that a component can show; undefined before the first rows. */
type Outcome<Selected> = { readonly value: Selected } | { readonly denied: LiveStatus } | undefined

/**
 * Like `useView`, but the component suspends until the view has rows: the nearest `Suspense` shows its fallback. A view that is
 * denied throws its error, a `LiveError`, to the nearest error boundary; the gateway is asked again when the boundary is reset.
 *
 * On a server the rows must be in `connect`'s `initial`. Otherwise the server sends the fallback, and the browser loads the rows.
 *
 * ```ts
 * import type { LiveView } from 'rivulet/live'
 * import { useSuspenseView } from 'rivulet/react'
 *
 * const useCount = (view: LiveView<unknown>) => useSuspenseView(view, ({ rows }) => rows.size)
 * ```
 */
export function useSuspenseView<Row>(view: LiveView<Row>): ViewSnapshot<Row>
/** As above, with the result of `selector` for the snapshot. It is not called before the view has rows. */
export function useSuspenseView<Row, Selected>(
  view: LiveView<Row>,
  selector: (snapshot: ViewSnapshot<Row>) => Selected,
  isEqual?: (a: Selected, b: Selected) => boolean,
): Selected
export function useSuspenseView(
  view: LiveView<unknown>,
  selector: (snapshot: ViewSnapshot<unknown>) => unknown = whole,
  isEqual: (a: unknown, b: unknown) => boolean = shallowEqual,
): unknown {
  const outcome = useSelection(
    view,
    useCallback((snapshot: ViewSnapshot<unknown>) => outcomeOf(snapshot, selector), [selector]),
    useCallback((a: Outcome<unknown>, b: Outcome<unknown>) => isSame(a, b, isEqual), [isEqual]),
  )
  const isOnServer = useSyncExternalStore(never, isFalse, isTrue)
  const mounted = useRef<LiveView<unknown>>(undefined)
  useEffect(() => {
    mounted.current = view
    // This component has subscribed by now.
    waitOf(view)?.end()
  }, [view])

  const wait = waitOf(view)
  if (outcome !== undefined && 'value' in outcome) {
    // A component that has called `use` must call it when it tries again.
    if ('use' in React && wait?.settled === true) React.use(wait.promise)
    return outcome.value
  }
  if (outcome !== undefined && (mounted.current === view || wait?.settled === true)) {
    throw outcome.denied.error ?? new Error(`the view ${view.address} is denied`)
  }
  if (isOnServer) {
    throw new Error(`the server has no rows of the view ${view.address}: pass them to connect as \`initial\``)
  }
  return suspend(firstRows(view).promise)
}

function outcomeOf<Selected>(
  snapshot: ViewSnapshot<unknown>,
  selector: (snapshot: ViewSnapshot<unknown>) => Selected,
): Outcome<Selected> {
  if (snapshot.status.state === 'denied') return { denied: snapshot.status }
  return snapshot.ready ? { value: selector(snapshot) } : undefined
}

function isSame(
  a: Outcome<unknown>,
  b: Outcome<unknown>,
  isEqual: (a: unknown, b: unknown) => boolean,
): boolean {
  if (a === undefined || b === undefined) return a === b
  if ('value' in a) return 'value' in b && isEqual(a.value, b.value)
  return 'denied' in b && a.denied === b.denied
}

/**
 * React 18 has no `use`, and takes a promise that is thrown. React 19 takes one as well; there, `use` returns when React tries again
 * with the promise of the attempt before, although this one is pending.
 */
function suspend(promise: Promise<void>): never {
  if ('use' in React) React.use(promise)
  throw promise
}

/** A store whose server snapshot is true, so that a rendering knows whether it is on the server, or the hydration of its HTML. */
function never(): () => void {
  return () => {}
}
const isTrue = () => true
const isFalse = () => false
