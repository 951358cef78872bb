import { MAX_TIMER_DELAY } from '../protocol/timer-limit.ts'

/** A change of the page's state: `wake` when the connection may have died unnoticed, `sleep` when the page stops running. */
export type PageEvent = 'wake' | 'sleep' | 'hide' | 'offline'

/** The parts of the platform that the client uses. Tests pass their own. */
export interface Environment {
  /** The current time, Unix ms. */
  now(): number
  /** Calls the function once after so many ms. Returns a function that cancels it. */
  later(delay: number, call: () => void): () => void
  /** Calls the function once, with the next frame of the page. Returns a function that cancels it. */
  nextFrame(call: () => void): () => void
  /** A random number, from 0 (inclusive) to 1 (exclusive). */
  random(): number
  readonly fetch: typeof fetch
  /** Calls the listener for each event of the page. Returns a function that ends it. */
  onPageEvent(listener: (event: PageEvent) => void): () => void
  isOnline(): boolean
  isHidden(): boolean
  readonly locks?: LockManager | undefined
  readonly BroadcastChannel?: typeof BroadcastChannel | undefined
  readonly indexedDB?: IDBFactory | undefined
}

/** A frame that does not come, since the page is not drawn, in ms. */
const FRAME_TIMEOUT = 100
/** Duration that replaces a frame if the platform has no frames, in ms. */
const FRAME = 16

/** The platform that this code runs on. Missing features are left out. */
export function platform(): Environment {
  const { navigator, indexedDB, BroadcastChannel, document, requestAnimationFrame } = optionalGlobals()
  return {
    now: () => Date.now(),
    later,
    nextFrame(call) {
      let isDone = false
      const once = () => {
        if (!isDone) call()
        isDone = true
      }
      // The browser draws no frame of a hidden page.
      requestAnimationFrame?.(once)
      const cancel = later(requestAnimationFrame === undefined ? FRAME : FRAME_TIMEOUT, once)
      return () => {
        isDone = true
        cancel()
      }
    },
    random: Math.random,
    fetch: (input, init) => globalThis.fetch(input, init),
    onPageEvent,
    isOnline: () => navigator?.onLine !== false,
    isHidden: () => document?.visibilityState === 'hidden',
    locks: navigator?.locks,
    BroadcastChannel,
    indexedDB,
  }
}

function later(delay: number, call: () => void): () => void {
  const timer = setTimeout(call, Math.min(delay, MAX_TIMER_DELAY))
  return () => clearTimeout(timer)
}

/** The globals that a server, an old browser or an insecure page may not have. */
function optionalGlobals(): Partial<
  Pick<
    typeof globalThis,
    'navigator' | 'indexedDB' | 'BroadcastChannel' | 'document' | 'requestAnimationFrame'
  >
> {
  return globalThis
}

function onPageEvent(listener: (event: PageEvent) => void): () => void {
  const { document } = optionalGlobals()
  if (document === undefined) return () => {}
  const ended = new AbortController()
  const { signal } = ended
  const on = (target: EventTarget, name: string, eventOf: () => PageEvent) =>
    target.addEventListener(name, () => listener(eventOf()), { signal })
  const wake = () => 'wake' as const
  const sleep = () => 'sleep' as const
  on(globalThis, 'online', wake)
  on(globalThis, 'offline', () => 'offline')
  on(globalThis, 'pageshow', wake)
  // The page may be kept for the back button. One that is not kept ends with its connection and its locks.
  on(globalThis, 'pagehide', sleep)
  on(document, 'resume', wake)
  on(document, 'freeze', sleep)
  on(document, 'visibilitychange', () => (document.visibilityState === 'hidden' ? 'hide' : 'wake'))
  return () => ended.abort()
}
