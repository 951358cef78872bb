import { platform } from '../../src/live/environment.ts'
import type { Environment, PageEvent } from '../../src/live/environment.ts'

interface Timer {
  readonly at: number
  readonly call: () => void
}

/** A page in this process: its clock moves where a test moves it, its sockets are real, and its frames are turns of the event loop. */
export class TestPage implements Environment {
  readonly fetch = platform().fetch
  online = true
  hidden = false
  #now = Date.UTC(2026, 10, 22)
  readonly #timers = new Set<Timer>()
  readonly #listeners = new Set<(event: PageEvent) => void>()
  locks: LockManager | undefined
  BroadcastChannel: typeof BroadcastChannel | undefined
  indexedDB: IDBFactory | undefined

  /** What has come by channels. */
  readonly received: { readonly channel: string; readonly data: unknown }[] = []
  /** The names of channels whose messages wait. */
  #held: (channel: string) => boolean = () => false
  /** Messages that wait. */
  readonly #undelivered: { readonly channel: string; readonly deliver: () => void }[] = []

  constructor(features: { readonly tabs?: boolean; readonly indexedDB?: IDBFactory } = {}) {
    if (features.tabs === true) {
      this.locks = navigator.locks
      this.BroadcastChannel = this.#channelClass()
    }
    this.indexedDB = features.indexedDB
  }

  /** Its messages wait, as where its main thread is busy or stopped. Its clock is moved by the test anyway. */
  set hangs(hangs: boolean) {
    this.holdChannels(() => hangs)
  }

  /** Messages of these channels wait, and those of others are delivered. */
  holdChannels(held: (channel: string) => boolean, order?: 'last first'): void {
    this.#held = held
    const waiting = this.#undelivered.splice(0)
    if (order === 'last first') waiting.reverse()
    this.#undelivered.push(...waiting.filter(({ channel }) => held(channel)))
    for (const { channel, deliver } of waiting) if (!held(channel)) deliver()
  }

  #channelClass(): typeof BroadcastChannel {
    const whenItMay = (channel: string, deliver: () => void) => {
      if (this.#held(channel)) this.#undelivered.push({ channel, deliver })
      else deliver()
    }
    const { received } = this
    return class extends BroadcastChannel {
      override addEventListener(type: string, listener: unknown) {
        super.addEventListener(type, (event: Event) => {
          whenItMay(this.name, () => {
            if (event instanceof MessageEvent) received.push({ channel: this.name, data: event.data })
            if (typeof listener === 'function') listener(event)
          })
        })
      }
    }
  }

  now = (): number => this.#now
  random = (): number => 0.5
  isOnline = (): boolean => this.online
  isHidden = (): boolean => this.hidden

  later(delay: number, call: () => void): () => void {
    const timer = { at: this.#now + delay, call }
    this.#timers.add(timer)
    return () => void this.#timers.delete(timer)
  }

  nextFrame(call: () => void): () => void {
    const immediate = setImmediate(call)
    return () => clearImmediate(immediate)
  }

  onPageEvent(listener: (event: PageEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  emit(event: PageEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  /** How many timers and listeners are left. */
  get left(): number {
    return this.#timers.size + this.#listeners.size
  }

  /** Moves the clock on, and runs the timers that are due, in their order. */
  advance(time: number): void {
    const end = this.#now + time
    for (;;) {
      const [next] = [...this.#timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
      if (next === undefined) break
      this.#timers.delete(next)
      this.#now = Math.max(this.#now, next.at)
      next.call()
    }
    this.#now = end
  }

  /** Moves the clock without running a timer, as where the machine sleeps. */
  sleep(time: number): void {
    this.#now += time
  }
}

/** Resolves when the condition holds, looking at each turn of the event loop; `each` runs at every turn. */
export async function until(condition: () => boolean, each: () => void = () => {}): Promise<void> {
  while (!condition()) {
    each()
    await new Promise((resolve) => setImmediate(resolve))
  }
}
