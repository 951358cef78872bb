import type { LiveView, ViewSnapshot } from '../live/live.ts'

/**
 * How long a subscription is kept for a component that suspends, in ms. React does not report that it gave up on a component. A
 * component that still waits renders again then, and begins another wait.
 */
const WAIT = 30_000
/** How long it is kept after the rows have come, in ms, so that the component can mount and subscribe itself. */
const AFTER_ROWS = 5_000
/** The same after a refusal, in ms: React renders once more before it takes the error. A later attempt asks the gateway again. */
const AFTER_DENIAL = 250

/** A subscription on behalf of components that are not mounted yet, since React keeps nothing of a component that suspends. */
interface FirstRows {
  /** Resolves when the view has rows or is denied, and when the wait is over. The same one for each attempt to render. */
  readonly promise: Promise<void>
  /** Whether the view has rows or is denied. */
  readonly settled: boolean
  /** Ends the subscription, for a component that has its own. */
  end(): void
}

const waits = new WeakMap<LiveView<unknown>, FirstRows>()

/** The wait for a view's first rows, if there is one. */
export function waitOf(view: LiveView<unknown>): FirstRows | undefined {
  return waits.get(view)
}

/** The wait for a view's first rows. Begins one unless there is one that has not settled. */
export function firstRows(view: LiveView<unknown>): FirstRows {
  const earlier = waits.get(view)
  if (earlier !== undefined && !earlier.settled) return earlier

  let settled = false
  let ended = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let unsubscribe: (() => void) | undefined
  let resolve: () => void = () => {}
  const wait: FirstRows = {
    promise: new Promise((done) => (resolve = done)),
    get settled() {
      return settled
    },
    end() {
      ended = true
      clearTimeout(timer)
      unsubscribe?.()
      if (waits.get(view) === wait) waits.delete(view)
      resolve()
    },
  }
  const settle = ({ ready, status }: ViewSnapshot<unknown>) => {
    const denied = status.state === 'denied'
    if (settled || (!ready && !denied)) return
    settled = true
    clearTimeout(timer)
    timer = setTimeout(wait.end, denied ? AFTER_DENIAL : AFTER_ROWS)
    resolve()
  }
  waits.set(view, wait)
  // A store that changes within a rendering would update other components there.
  queueMicrotask(() => {
    if (ended) return
    timer = setTimeout(wait.end, WAIT)
    unsubscribe = view.subscribe(settle)
    earlier?.end()
  })
  return wait
}

/**
 * Begins to follow views before the components that show them are rendered, so that none of them waits for another one. Followed
 * for 5 s after the first rows, unless a component is mounted by then.
 *
 * ```ts
 * import type { LiveView } from 'rivulet/live'
 * import { prefetchView, useSuspenseView } from 'rivulet/react'
 *
 * function useBoth<A, B>(left: LiveView<A>, right: LiveView<B>) {
 *   prefetchView(left, right)
 *   return [useSuspenseView(left), useSuspenseView(right)] as const
 * }
 * ```
 */
export function prefetchView(...views: readonly LiveView<unknown>[]): void {
  for (const view of views) if (!view.getSnapshot().ready) firstRows(view)
}
