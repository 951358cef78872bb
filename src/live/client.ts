import { viewAddress } from '../protocol/live.ts'
import type { LiveSnapshot, ViewRequest } from '../protocol/live.ts'
import { Connection } from './connection.ts'
import type { Environment } from './environment.ts'
import type { Frame } from './frames.ts'
import type { ConnectOptions, LiveState, LiveStatus, ViewSnapshot } from './live.ts'
import type { LiveError } from './live-error.ts'
import { callAll, Notifier } from './notifier.ts'
import { errorOf } from './refusal.ts'
import { Tokens } from './tokens.ts'
import { ViewStore } from './view-store.ts'

/** How long a view is followed without a listener, in ms: a page that goes on to another one asks for it again. */
const LINGER = 5_000
/** How long changes of the set of views are collected, in ms. */
const COLLECT = 25

/** From the best one to the worst one. */
const STATES: readonly LiveState[] = ['live', 'connecting', 'stale', 'offline', 'denied']

/** The views of one tab, and what brings their rows. */
export class Client {
  readonly tokens: Tokens
  readonly statusListeners = new Set<(status: LiveStatus) => void>()
  readonly #environment: Environment
  readonly #initial: LiveSnapshot
  readonly #stores = new Map<string, ViewStore>()
  readonly #notifier: Notifier
  readonly #connection: Connection
  #status: LiveStatus = { state: 'connecting', since: 0 }
  #isStarted = false
  #isClosed = false
  #endPageEvents = () => {}

  constructor({ url, getToken, initial = {} }: ConnectOptions, environment: Environment) {
    this.#environment = environment
    this.#initial = initial
    this.tokens = new Tokens(getToken, environment)
    this.#notifier = new Notifier(environment, () => this.#publish())
    this.#connection = new Connection(
      url.replace(/\/+$/, ''),
      this.tokens,
      {
        wanted: () => this.#wanted(),
        take: (frame) => this.#take(frame),
        changed: () => this.#connectionChanged(),
      },
      environment,
    )
  }

  get status(): LiveStatus {
    return this.#status
  }

  store(request: ViewRequest): ViewStore {
    const address = viewAddress(request.view, request.params)
    let store = this.#stores.get(address)
    if (store === undefined) {
      store = new ViewStore(request, this.#initial[address])
      this.#stores.set(address, store)
    }
    return store
  }

  subscribe(store: ViewStore, listener: (snapshot: ViewSnapshot<unknown>) => void): () => void {
    // The same function may subscribe twice.
    const own = (snapshot: ViewSnapshot<unknown>) => listener(snapshot)
    if (!this.#isClosed) {
      const wasWanted = store.isWanted
      store.listeners.add(own)
      this.#start()
      if (!wasWanted) this.#connection.viewsChanged(COLLECT)
    }
    callAll([listener], store.snapshot)
    return () => {
      if (!store.listeners.delete(own) || store.listeners.size > 0 || this.#isClosed) return
      store.lingers = true
      this.#environment.later(LINGER, () => {
        store.lingers = false
        if (!store.isWanted) this.#connection.viewsChanged(0)
      })
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#endPageEvents()
    this.#connection.stop()
    this.#notifier.stop()
    for (const store of this.#stores.values()) store.listeners.clear()
    this.statusListeners.clear()
  }

  /** Nothing is opened before the first subscription, so a server that renders opens nothing. */
  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#endPageEvents = this.#environment.onPageEvent((event) => {
      if (event === 'wake') this.#connection.wake()
      else if (event === 'offline') this.#connection.drop()
      this.#settle()
    })
  }

  #wanted(): ViewRequest[] {
    return [...this.#stores.values()].filter((store) => store.isWanted).map((store) => store.resume())
  }

  #take(frame: Frame): boolean {
    if (!('view' in frame)) return false
    const store = this.#stores.get(frame.view)
    if (store === undefined) return false
    store.lastFrame = this.#environment.now()
    const hasMoved = store.take(frame)
    if (frame.kind === 'denied') {
      store.refusal = errorOf(frame.problem, 'forbidden', frame.view)
      store.clear()
    }
    this.#settle()
    return hasMoved
  }

  #connectionChanged(): void {
    if (!this.#connection.isOpen) {
      for (const store of this.#stores.values()) store.disconnected()
      const grace = this.#connection.graceUntil - this.#environment.now()
      if (grace > 0) this.#environment.later(grace, () => this.#settle())
    }
    this.#settle()
  }

  /** Brings the states up to date. */
  #settle(): void {
    const now = this.#environment.now()
    for (const store of this.#stores.values()) {
      const { state, error } = this.#stateOf(store, now)
      if (state !== store.status.state || error !== store.status.error) {
        const since = state === store.status.state ? store.status.since : now
        store.status = error === undefined ? { state, since } : { state, since, error }
      }
    }
    this.#notifier.changed()
  }

  #stateOf(
    store: ViewStore,
    now: number,
  ): { readonly state: LiveState; readonly error?: LiveError | undefined } {
    const { isOpen, isDenied, error, graceUntil } = this.#connection
    if (store.refusal !== undefined) return { state: 'denied', error: store.refusal }
    if (isOpen && store.isCurrent) return { state: 'live' }
    if (store.status.state === 'live' && now < graceUntil) return { state: 'live' }
    if (isDenied) return { state: 'denied', error }
    if (!isOpen && !this.#environment.isOnline()) return { state: 'offline', error }
    return { state: store.position === undefined ? 'connecting' : 'stale', error }
  }

  #publish(): void {
    const changed = [...this.#stores.values()].filter((store) => store.publish())
    const status = this.#worst()
    const hasStatusChanged = status.state !== this.#status.state || status.error !== this.#status.error
    if (hasStatusChanged) this.#status = status
    // All of them are published before the first listener is called, so that it sees all views at one moment.
    for (const store of changed) callAll(store.listeners, store.snapshot)
    if (hasStatusChanged) callAll(this.statusListeners, status)
  }

  /** The status of the worst view that is wanted. */
  #worst(): LiveStatus {
    let worst: LiveStatus | undefined
    for (const { isWanted, status } of this.#stores.values()) {
      if (isWanted && STATES.indexOf(status.state) >= STATES.indexOf(worst?.state ?? 'live')) worst = status
    }
    return worst ?? { state: 'connecting', since: 0 }
  }
}
