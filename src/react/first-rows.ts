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

const waits = new WeakMap<LiveView<unknown>, FirstRows>()

/** A subscription on behalf of components that are not mounted yet, since React discards a component that suspends. */
class FirstRows {
  /** Resolves when the view has rows or is denied, and when the wait has ended. */
  readonly promise: Promise<void>
  readonly #view: LiveView<unknown>
  #resolve: () => void = () => {}
  #settled = false
  #ended = false
  #timer: ReturnType<typeof setTimeout> | undefined
  #unsubscribe: (() => void) | undefined

  constructor(view: LiveView<unknown>) {
    this.#view = view
    this.promise = new Promise((resolve) => (this.#resolve = resolve))
    // React's `use` reads the state of a promise from it, and does not suspend for one that is fulfilled.
    Object.assign(this.promise, { status: 'pending' })
    // A store that changes within a rendering would update other components there.
    queueMicrotask(() => this.#begin())
  }

  /** Whether the view has rows or is denied. */
  get settled(): boolean {
    return this.#settled
  }

  /** Ends the subscription, for a component that has its own. */
  readonly end = (): void => {
    this.#ended = true
    clearTimeout(this.#timer)
    this.#unsubscribe?.()
    if (waits.get(this.#view) === this) waits.delete(this.#view)
    this.#fulfil()
  }

  #begin(): void {
    if (this.#ended) return
    this.#timer = setTimeout(this.end, WAIT)
    this.#unsubscribe = this.#view.subscribe((snapshot) => this.#settle(snapshot))
  }

  #settle({ ready, status }: ViewSnapshot<unknown>): void {
    const isDenied = status.state === 'denied'
    if (this.#settled || (!ready && !isDenied)) return
    this.#settled = true
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.end, isDenied ? AFTER_DENIAL : AFTER_ROWS)
    this.#fulfil()
  }

  #fulfil(): void {
    Object.assign(this.promise, { status: 'fulfilled', value: undefined })
    this.#resolve()
  }
}

/** The wait for a view's first rows, if there is one. */
export function waitOf(view: LiveView<unknown>): FirstRows | undefined {
  return waits.get(view)
}

/** Begins a wait unless there is one that has not settled. */
export function firstRows(view: LiveView<unknown>): FirstRows {
  const current = waits.get(view)
  if (current !== undefined && !current.settled) return current
  const wait = new FirstRows(view)
  waits.set(view, wait)
  // After the new one has subscribed, so that the view is followed without a break.
  if (current !== undefined) queueMicrotask(current.end)
  return wait
}

/**
 * Begins to follow views before the components that show them are rendered, so that the components do not wait for each other. Followed
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
