import { MAX_LIVE_TEXT, MAX_LIVE_VIEWS, viewAddress } from '../protocol/live.ts'
import type { ViewRequest } from '../protocol/live.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { callAll } from './call-all.ts'
import { Connection } from './connection.ts'
import type { ConnectionOwner } from './connection.ts'
import type { Environment, PageEvent } from './environment.ts'
import type { Frame } from './frames.ts'
import type { ConnectOptions, LiveInspection, LiveState, LiveStatus, ViewSnapshot } from './live.ts'
import { LiveError } from './live-error.ts'
import type { Offline, OfflineOwner } from './offline.ts'
import { errorOf } from './refusal.ts'
import type { joinTabs, Tabs, TabsOwner } from './tabs.ts'
import { Tokens } from './tokens.ts'
import { ViewStore } from './view-store.ts'

/** How long a view is followed without a listener, in ms: a user who moves to another page asks for it again. */
const LINGER = 5_000
/** How long changes of the set of views are collected, in ms. */
const COLLECT = 25
/** How long the code of the tabs is waited for, in ms. */
const LOAD_TIMEOUT = 5_000
/** Minimum time after which a denied view is requested again, in ms. */
const ASK_AGAIN = 1_000
/** Time after which a view that the gateway could not make is requested again, in ms, if the gateway does not specify it. */
const ASK_AGAIN_UNAVAILABLE = 60_000

/** The status of a connection that follows nothing. */
const NOTHING: LiveStatus = { state: 'connecting', since: 0 }

/** The error of each view that exceeds the limit of a connection. */
const TOO_MANY = new LiveError('too_many', `A page follows up to ${MAX_LIVE_VIEWS} views at a time`)

/** The states, from the best to the worst. */
const STATES: readonly LiveState[] = ['live', 'connecting', 'stale', 'offline', 'denied']

/** The exports of the module that is loaded later. */
interface TabsModule {
  readonly joinTabs: typeof joinTabs
}

/** The views of one tab, and the source of their rows: its own connection, or the connection of another tab. */
export class Client implements ConnectionOwner, TabsOwner, OfflineOwner {
  readonly tokens: Tokens
  readonly url: string
  readonly statusListeners = new Set<(status: LiveStatus) => void>()
  readonly inspectListeners = new Set<(inspection: LiveInspection) => void>()
  status: LiveStatus = NOTHING
  readonly #options: ConnectOptions
  readonly #environment: Environment
  /** The stores of wanted views, by address. */
  readonly #stores = new Map<string, ViewStore>()
  /** The stores that the page still references, by address. */
  readonly #known = new Map<string, WeakRef<ViewStore>>()
  /** Cancels the next frame, in which changes are published together. */
  #cancelFrame: (() => void) | undefined
  readonly #connection: Connection
  #tabs: Tabs | undefined
  #inspection: LiveInspection | undefined
  #offline: Offline | undefined
  #loadingTabs: Promise<TabsModule | undefined> | undefined
  #loadingOffline: Promise<void> | undefined
  #isStarted = false
  #isClosed = false
  #endPageEvents = () => {}

  constructor(options: ConnectOptions, environment: Environment) {
    this.#options = options
    this.#environment = environment
    this.url = options.url.replace(/\/+$/, '')
    this.tokens = new Tokens(options.getToken)
    this.tokens.onOtherRights = () => this.forget()
    this.#connection = new Connection(this.url, this.tokens, this, environment)
  }

  get rights(): string | undefined {
    return this.tokens.rights
  }

  get stores(): readonly ViewStore[] {
    return [...this.#stores.values()]
  }

  get wanted(): readonly ViewStore[] {
    return this.stores.slice(0, MAX_LIVE_VIEWS)
  }

  /** Returns the same object for the same view and params, while it is referenced. Throws an ArgumentError for params that no gateway accepts. */
  store(request: ViewRequest): ViewStore {
    // Otherwise the gateway would refuse the whole connection, with the views of all tabs.
    for (const [name, value] of Object.entries(request.params ?? {})) {
      if (typeof value !== 'string' || value.length > MAX_LIVE_TEXT) {
        throw new ArgumentError(`params.${name}`, `a text of up to ${MAX_LIVE_TEXT} characters`, value)
      }
    }
    const address = viewAddress(request.view, request.params)
    const known = this.#known.get(address)?.deref()
    if (known !== undefined) return known
    // A page may ask for many in its time.
    for (const [other, ref] of this.#known) if (ref.deref() === undefined) this.#known.delete(other)
    const store = new ViewStore(address, request, this.#options.initial?.[address])
    this.#known.set(address, new WeakRef(store))
    if (this.#isClosed) this.#endStore(store)
    return store
  }

  /** @param listener Another function each time. */
  subscribe(store: ViewStore, listener: (snapshot: ViewSnapshot<unknown>) => void): () => void {
    if (!this.#isClosed) {
      // The view may be granted now: for instance, the user has logged in.
      const isRefused = store.status.state === 'denied'
      if (isRefused && this.#environment.now() - store.lastFrame > ASK_AGAIN) this.#endLinger(store)
      store.listeners.add(listener)
      this.#start()
      this.want(store)
    }
    callAll([listener], store.snapshot)
    return () => {
      if (!store.listeners.delete(listener) || store.listeners.size > 0 || this.#isClosed) return
      store.lingers = true
      store.cancelLinger()
      store.cancelLinger = this.#environment.later(LINGER, () => this.#endLinger(store))
    }
  }

  inspect(): LiveInspection {
    return (this.#inspection ??= {
      role: this.#role(),
      followers: this.#tabs?.followers ?? 0,
      ...this.#connection.inspect(),
      views: Array.from(this.#stores.values(), (store) => ({
        address: store.address,
        status: store.status,
        position: store.position,
        rows: store.size,
        gaps: store.gaps,
        lastEvent: store.lastFrame,
        listeners: store.listeners.size,
      })),
    })
  }

  #role(): LiveInspection['role'] {
    if (this.#tabs !== undefined) return this.#tabs.role
    return this.#connection.isParked || this.#stores.size === 0 ? 'idle' : 'alone'
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#endPageEvents()
    void this.#loadingOffline?.then(() => this.#offline?.end())
    this.#tabs?.leave()
    this.#connection.park()
    this.#cancelFrame?.()
    this.statusListeners.clear()
    this.inspectListeners.clear()
    this.#stores.clear()
    for (const ref of this.#known.values()) this.#endStore(ref.deref())
    this.status = this.#closedStatus('stale')
  }

  #closedStatus(state: LiveState): LiveStatus {
    return { state, since: this.#environment.now(), error: new LiveError('closed', '`close` was called') }
  }

  /** Its rows stay as they are. A view without rows gets none from now on. */
  #endStore(store: ViewStore | undefined): void {
    if (store === undefined) return
    store.listeners.clear()
    store.status = this.#closedStatus(store.position === undefined ? 'denied' : 'stale')
    store.publish()
  }

  /** Nothing is opened before the first subscription, so a server that renders opens nothing. */
  #start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    this.#endPageEvents = this.#environment.onPageEvent((event) => this.#onPageEvent(event))
    const { indexedDB, locks } = this.#environment
    const { share = true, offline = false } = this.#options
    // Both are loaded beside the first token.
    if (share && locks !== undefined) this.#loadingTabs = this.#loadTabs()
    if (offline && indexedDB !== undefined) this.#loadingOffline = this.#loadOffline(indexedDB)
  }

  /** Undefined if it cannot be loaded, for instance after another version was deployed: this tab then has its own connection. */
  #loadTabs(): Promise<TabsModule | undefined> {
    return new Promise((resolve) => {
      const giveUp = () => resolve(undefined)
      const cancel = this.#environment.later(LOAD_TIMEOUT, giveUp)
      import('./tabs.ts').then(resolve, giveUp).finally(cancel)
    })
  }

  /** Its code is loaded only when it is used. Without it, rows come from the gateway alone. */
  async #loadOffline(indexedDB: IDBFactory): Promise<void> {
    const loaded = await import('./offline.ts').catch(() => undefined)
    if (loaded === undefined) return
    this.#offline = new loaded.Offline(indexedDB, this.url, this.#environment, this)
  }

  #onPageEvent(event: PageEvent): void {
    if (event === 'hide' || event === 'sleep') this.#offline?.save()
    if (event === 'offline') this.#connection.drop()
    else if (event === 'sleep') this.#sleep()
    else if (event === 'wake') {
      this.#tabs?.wake()
      if (!this.#follows) this.#connection.wake()
    }
    this.settle()
  }

  /** Whether another tab brings the rows. */
  get #follows(): boolean {
    return this.#tabs !== undefined && !this.#tabs.isLeader
  }

  want(store: ViewStore): void {
    if (this.#stores.get(store.address) === store) return
    this.#stores.set(store.address, store)
    for (const other of this.stores) {
      if (other.lingers && this.#stores.size > MAX_LIVE_VIEWS) this.#endLinger(other)
    }
    if (this.#stores.size > MAX_LIVE_VIEWS) this.#tabs?.makeRoom()
    this.#offline?.seed()
    this.#wantedChanged(COLLECT)
  }

  /** Keeps a view without a listener no longer. */
  #endLinger(store: ViewStore): void {
    store.lingers = false
    this.drop(store)
  }

  drop(store: ViewStore): void {
    if (store.isWanted || this.#tabs?.isWantedElsewhere(store) || !this.#stores.delete(store.address)) return
    store.status = {
      state: store.position === undefined ? 'connecting' : 'stale',
      since: this.#environment.now(),
    }
    store.disconnected()
    store.publish()
    this.#wantedChanged(0)
  }

  #wantedChanged(delay: number): void {
    if (this.#follows) this.#tabs?.want()
    else this.#connection.viewsChanged(delay)
    // Other views may now be within the limit of a connection, or exceed it.
    this.settle()
  }

  async mayConnect(): Promise<boolean> {
    this.#offline?.seed()
    const { rights } = this
    const tabs = await this.#loadingTabs
    if (tabs === undefined || rights === undefined) return true
    if (this.#tabs?.rights === rights) return this.#tabs.isLeader
    this.#leaveTabs()
    if (this.#isClosed) return false
    this.#tabs = tabs.joinTabs(this.url, rights, this.#environment, this)
    return this.#tabs === undefined
  }

  tick(): void {
    this.#connection.tick()
  }

  /** No longer shares a connection. */
  excluded(): void {
    this.#loadingTabs = undefined
    this.#leaveTabs()
    this.elected(true)
  }

  /** The page stops running: other tabs need its locks, and its connection would die unnoticed. */
  #sleep(): void {
    this.#leaveTabs()
    this.#connection.park()
  }

  #leaveTabs(): void {
    if (this.#tabs === undefined) return
    this.#tabs.leave()
    this.#tabs = undefined
    this.elected(false)
  }

  /** The token belongs to another subject, or has other rights, so the rows differ. */
  forget(): void {
    this.#offline?.forget()
    for (const store of this.stores) store.clear()
    this.settle()
    if (this.#tabs === undefined) {
      // It is of the token before.
      this.#connection.drop()
      return
    }
    this.#leaveTabs()
    this.#connection.viewsChanged(0)
  }

  elected(isLeader: boolean): void {
    if (isLeader) {
      this.#connection.grace()
      this.#connection.viewsChanged(0)
      return
    }
    for (const store of this.stores) this.drop(store)
    this.#connection.park()
  }

  take(frame: Frame): boolean {
    if (!('view' in frame)) {
      // With a heartbeat: a timer of a hidden page would be late as well.
      if (this.stores.some((store) => this.#isDue(store))) this.#connection.renew()
      this.changed()
      return false
    }
    const store = this.#stores.get(frame.view)
    if (store === undefined) return false
    store.lastFrame = this.#environment.now()
    const isProgress = store.take(frame)
    if (frame.kind === 'denied') {
      store.refusal = errorOf(frame.problem, 'forbidden', frame.view)
      if (!isUnavailable(store)) this.#offline?.forget(frame.view)
    }
    this.#tabs?.pass(store, frame)
    this.settle()
    return isProgress
  }

  /** Whether to request a view again that the gateway could not make. */
  #isDue(store: ViewStore): boolean {
    const wait = Math.max(ASK_AGAIN, store.refusal?.retryAfter ?? ASK_AGAIN_UNAVAILABLE)
    return isUnavailable(store) && this.#environment.now() - store.lastFrame >= wait
  }

  connectionChanged(): void {
    if (this.#connection.isDenied) this.#offline?.forget()
    if (!this.#connection.isOpen) {
      for (const store of this.stores) store.disconnected()
      const grace = this.#connection.graceLeft
      if (grace > 0) this.#environment.later(grace, () => this.settle())
    }
    this.settle()
  }

  /** Brings the states up to date. */
  settle(): void {
    this.changed()
    if (this.#follows) return
    const now = this.#environment.now()
    const changed = this.stores.filter((store, index) => {
      const [state, error] = index < MAX_LIVE_VIEWS ? this.#stateOf(store) : (['denied', TOO_MANY] as const)
      const { status } = store
      if (state === status.state && error === status.error) return false
      const since = state === status.state ? status.since : now
      store.status = { state, since, error }
      return true
    })
    this.#tabs?.sendStatuses(changed)
  }

  #stateOf(store: ViewStore): readonly [LiveState, LiveError?] {
    const { isOpen, isDenied, error, graceLeft } = this.#connection
    const withoutGateway = store.position === undefined ? 'connecting' : 'stale'
    if (store.refusal !== undefined) return [isUnavailable(store) ? withoutGateway : 'denied', store.refusal]
    if ((isOpen && store.isCurrent) || (store.status.state === 'live' && graceLeft > 0)) return ['live']
    if (isDenied) return ['denied', error]
    if (!isOpen && !this.#environment.isOnline()) return ['offline', error]
    return [withoutGateway, error]
  }

  changed(): void {
    if (!this.#isClosed) this.#cancelFrame ??= this.#environment.nextFrame(() => this.#publish())
  }

  #publish(): void {
    this.#cancelFrame = undefined
    const changed = this.stores.filter((store) => store.publish())
    const status = this.#worst()
    const hasStatusChanged = status.state !== this.status.state || status.error !== this.status.error
    if (hasStatusChanged) this.status = status
    // All views are published before the first listener is called, so that it sees all of them at one moment.
    for (const store of changed) callAll(store.listeners, store.snapshot)
    if (hasStatusChanged) callAll(this.statusListeners, status)
    if (changed.length > 0 && !this.#follows) this.#offline?.changed()
    this.#inspection = undefined
    if (this.inspectListeners.size > 0) callAll(this.inspectListeners, this.inspect())
  }

  /** The status of the worst view that this tab wants. */
  #worst(): LiveStatus {
    let worst: LiveStatus | undefined
    for (const { listeners, status } of this.#stores.values()) {
      if (listeners.size > 0 && STATES.indexOf(status.state) >= STATES.indexOf(worst?.state ?? 'live'))
        worst = status
    }
    return worst ?? NOTHING
  }
}

function isUnavailable({ refusal }: ViewStore): boolean {
  return refusal?.reason === 'unavailable'
}
