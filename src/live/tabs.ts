import { MAX_LIVE_VIEWS, viewAddress } from '../protocol/live.ts'
import type { ViewRequest } from '../protocol/live.ts'
import { Election } from './election.ts'
import type { Shared } from './election.ts'
import type { Environment } from './environment.ts'
import type { ViewFrame } from './frames.ts'
import type { LiveState, LiveStatus } from './live.ts'
import { LiveError } from './live-error.ts'
import type { LiveErrorReason } from './live-error.ts'
import type { StoredRows, ViewStore } from './view-store.ts'

/** The part of this tab's client that the tabs of a group use. */
export interface TabsOwner {
  /** The stores of wanted views. */
  readonly stores: readonly ViewStore[]
  store(request: ViewRequest): ViewStore
  /** A view is wanted that maybe was not. */
  want(store: ViewStore): void
  /** A view may be no longer wanted. */
  drop(store: ViewStore): void
  elected(isLeader: boolean): void
  /** Rows or states have changed. */
  changed(): void
  tick(): void
  /** This tab must have its own connection. */
  excluded(): void
}

/** The rows that a tab has of a view: none, rows of another leader, or all that the leader has sent. */
type Holding = 'none' | 'old' | 'same'

/** The views that a tab wants from the leader. */
type Wish = readonly { readonly request: ViewRequest; readonly holding: Holding }[]

/** A status as tabs send it, without the error's class. */
interface SentStatus {
  readonly state: LiveState
  readonly since: number
  readonly error?: readonly [reason: LiveErrorReason, message: string, retryAfter: number | undefined]
}

/** A message of the leader. */
type Sent =
  /** A frame of the gateway, for the tabs whose rows are the leader's. */
  | { readonly kind: 'frame'; readonly frame: ViewFrame }
  /** All rows of a view, for some tabs. If they are for one tab, it gets the rows alone: this message marks their position among the frames. */
  | {
      readonly kind: 'rows'
      readonly id: string
      readonly to: readonly string[]
      readonly address: string
      readonly rows: StoredRows | undefined
      readonly gaps: number
    }
  /** The rows that one tab gets alone. They come through another channel, so before or after their position among the frames. */
  | { readonly kind: 'alone'; readonly id: string; readonly rows: StoredRows }
  | {
      readonly kind: 'statuses'
      readonly statuses: readonly (readonly [address: string, status: SentStatus])[]
    }
  /** The connection does not carry the views of this tab. */
  | { readonly kind: 'full'; readonly to: string }

/** The position of rows among the frames, until the rows have come. */
interface Place {
  /** Address of the view; empty if later rows of the view have come first. */
  address: string
  readonly gaps: number
  /** The frames that came after this position. */
  readonly frames: ViewFrame[]
  status: LiveStatus | undefined
}

/** Joins the tabs whose tokens have the same rights. Undefined if the browser does not let tabs share. */
export function joinTabs(
  gateway: string,
  rights: string,
  environment: Environment,
  owner: TabsOwner,
): Tabs | undefined {
  const { locks, BroadcastChannel: Channel } = environment
  if (locks === undefined || Channel === undefined) return undefined
  // Other versions of this code may run in other tabs. The number is the version of the messages between tabs.
  const name = `rivulet live 1 ${gateway} ${rights}`
  try {
    return new Tabs(rights, { name, environment, locks, Channel }, owner)
  } catch {
    // The browser blocks it, such as in a frame of another origin.
    return undefined
  }
}

/** The views of all tabs that share a connection. The leader passes on the frames of the gateway. */
export class Tabs {
  readonly rights: string
  readonly #environment: Environment
  readonly #owner: TabsOwner
  readonly #election: Election<Wish, Sent>
  /** In a tab that follows: the views of which it has all that the leader has sent. */
  readonly #same = new Set<ViewStore>()
  /** The rows that are still to come, and the rows whose position is still to come, by their id. */
  readonly #places = new Map<string, Place>()
  readonly #arrived = new Map<string, StoredRows>()
  /** In the leader: the views that the other tabs want, by tab, and the rows that they have of each. */
  readonly #wishes = new Map<string, Map<ViewStore, Holding>>()

  constructor(rights: string, shared: Shared, owner: TabsOwner) {
    this.rights = rights
    this.#environment = shared.environment
    this.#owner = owner
    this.#election = new Election<Wish, Sent>(shared, {
      elected: (isLeader) => {
        this.#reset()
        owner.elected(isLeader)
      },
      led: () => this.#led(),
      received: (sent) => this.#received(sent),
      wanted: (tab, wish) => this.#wanted(tab, wish ?? []),
      tick: () => owner.tick(),
      failed: () => owner.excluded(),
    })
  }

  get isLeader(): boolean {
    return this.#election.isLeader
  }

  get role(): 'leader' | 'follower' | 'idle' {
    return this.#election.role
  }

  get followers(): number {
    return this.#election.followers
  }

  leave(): void {
    this.#election.leave()
  }

  wake(): void {
    this.#election.wake()
  }

  /** Whether another tab wants it of this one. */
  isWantedElsewhere(store: ViewStore): boolean {
    return [...this.#wishes.values()].some((wish) => wish.has(store))
  }

  /** Drops the data of another leader. */
  #reset(): void {
    this.#same.clear()
    this.#places.clear()
    this.#arrived.clear()
    this.#wishes.clear()
  }

  // As a tab that follows.

  /** Sends what this tab wants to the leader. */
  want(): void {
    const { stores } = this.#owner
    for (const store of this.#same) if (!stores.includes(store)) this.#same.delete(store)
    this.#election.want(stores.map((store) => ({ request: store.request, holding: this.#holding(store) })))
  }

  #holding(store: ViewStore): Holding {
    if (this.#same.has(store)) return 'same'
    return store.position === undefined ? 'none' : 'old'
  }

  #led(): void {
    this.#reset()
    this.want()
  }

  #received(sent: Sent): void {
    switch (sent.kind) {
      case 'statuses':
        for (const [address, status] of sent.statuses) this.#receivedStatus(address, receivedStatus(status))
        this.#owner.changed()
        return
      case 'full':
        if (sent.to === this.#election.id) this.#owner.excluded()
        return
      case 'rows':
        if (!sent.to.includes(this.#election.id)) return
        this.#places.set(sent.id, { address: sent.address, gaps: sent.gaps, frames: [], status: undefined })
        if (sent.rows !== undefined) this.#arrived.set(sent.id, sent.rows)
        this.#replace(sent.id)
        return
      case 'alone':
        this.#arrived.set(sent.id, sent.rows)
        this.#replace(sent.id)
        return
      default:
        this.#receivedFrame(sent.frame)
    }
  }

  #receivedFrame(frame: ViewFrame): void {
    const place = this.#placeOf(frame.view)
    if (place === undefined) this.#take(frame)
    else place.frames.push(frame)
  }

  /** A view is not live before its rows have come. */
  #receivedStatus(address: string, status: LiveStatus): void {
    const place = this.#placeOf(address)
    const store = this.#find(address)
    if (place !== undefined) place.status = status
    else if (store !== undefined) store.status = status
  }

  #placeOf(view: string): Place | undefined {
    return [...this.#places.values()].findLast(({ address }) => address === view)
  }

  #take(frame: ViewFrame): void {
    const store = this.#find(frame.view)
    if (store === undefined || (!this.#same.has(store) && frame.kind !== 'denied')) return
    store.take(frame)
    store.lastFrame = this.#environment.now()
    if (store.position === undefined) this.#same.delete(store)
    this.#owner.changed()
  }

  /** Takes rows at their position, once both have come, and the frames that have come since. */
  #replace(id: string): void {
    const place = this.#places.get(id)
    const rows = this.#arrived.get(id)
    if (place === undefined || rows === undefined) return
    const { address } = place
    for (const each of this.#places.values()) {
      if (each === place) break
      if (each.address === address) each.address = ''
    }
    this.#places.delete(id)
    this.#arrived.delete(id)
    const store = this.#find(address)
    if (store === undefined) return
    store.replace(rows)
    store.gaps = place.gaps
    store.lastFrame = this.#environment.now()
    this.#same.add(store)
    for (const frame of place.frames) this.#take(frame)
    if (place.status !== undefined) store.status = place.status
    this.#owner.changed()
  }

  #find(address: string): ViewStore | undefined {
    return this.#owner.stores.find((store) => store.address === address)
  }

  // As the tab that leads.

  /** Passes a frame on that this tab has taken. */
  pass(store: ViewStore, frame: ViewFrame): void {
    if (!this.isWantedElsewhere(store)) return
    this.#election.send({ kind: 'frame', frame })
    if (store.position === undefined) {
      for (const wish of this.#wishes.values()) if (wish.has(store)) wish.set(store, 'none')
    }
    this.#offer(store)
  }

  sendStatuses(stores: readonly ViewStore[]): void {
    const statuses = stores.map(({ address, status }) => [address, sentStatus(status)] as const)
    if (statuses.length > 0) this.#election.send({ kind: 'statuses', statuses })
  }

  /** The connection has no room for more views of this tab, so tabs that follow must have their own. */
  makeRoom(): void {
    while (this.#owner.stores.length > MAX_LIVE_VIEWS) {
      const tab = [...this.#wishes.keys()].at(-1)
      if (tab === undefined) return
      this.#exclude(tab)
      this.#dropAll()
    }
  }

  #exclude(tab: string): void {
    this.#wishes.delete(tab)
    this.#election.send({ kind: 'full', to: tab })
  }

  #wanted(tab: string, wish: Wish): void {
    this.#wishes.delete(tab)
    const addresses = this.#owner.stores.flatMap((store) =>
      store.isWanted || this.isWantedElsewhere(store) ? store.address : [],
    )
    const wished = wish.map(({ request: { view, params } }) => viewAddress(view, params))
    if (new Set([...addresses, ...wished]).size > MAX_LIVE_VIEWS) this.#exclude(tab)
    else if (wish.length > 0) {
      const stores = wish.map(({ request, holding }) => [this.#owner.store(request), holding] as const)
      this.#wishes.set(tab, new Map(stores))
      for (const [store] of stores) {
        this.#owner.want(store)
        this.#offer(store)
      }
    }
    this.#dropAll()
    this.sendStatuses(this.#owner.stores)
  }

  #dropAll(): void {
    for (const store of this.#owner.stores) this.#owner.drop(store)
  }

  /** Sends the rows to the tabs that do not have them. Tabs with rows of another leader get them once the rows are current. */
  #offer(store: ViewStore): void {
    const { address, gaps } = store
    const lacking = [...this.#wishes].filter(([, wish]) => {
      const holding = wish.get(store)
      return holding === 'none' || (holding === 'old' && store.isCurrent)
    })
    const rows = lacking.length === 0 ? undefined : store.stored()
    if (rows === undefined) return
    for (const [, wish] of lacking) wish.set(store, 'same')
    const id = crypto.randomUUID()
    const to = lacking.map(([tab]) => tab)
    const [tab, ...more] = to
    // All tabs clone the messages of the common channel, so many rows for one tab are sent through its own channel.
    const isAlone = tab !== undefined && more.length === 0
    this.#election.send({ kind: 'rows', id, to, address, gaps, rows: isAlone ? undefined : rows })
    if (isAlone) this.#election.sendTo(tab, { kind: 'alone', id, rows })
  }
}

function sentStatus({ state, since, error }: LiveStatus): SentStatus {
  if (!(error instanceof LiveError)) return { state, since }
  return { state, since, error: [error.reason, error.message, error.retryAfter] }
}

function receivedStatus({ state, since, error }: SentStatus): LiveStatus {
  if (error === undefined) return { state, since }
  const [reason, message, retryAfter] = error
  return { state, since, error: new LiveError(reason, message, { retryAfter }) }
}
