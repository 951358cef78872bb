import { MAX_LIVE_VIEWS, viewAddress } from '../protocol/live.ts'
import type { ViewRequest } from '../protocol/live.ts'
import { Election } from './election.ts'
import type { Environment } from './environment.ts'
import type { ViewFrame } from './frames.ts'
import type { LiveState, LiveStatus } from './live.ts'
import { LiveError } from './live-error.ts'
import type { LiveErrorCode } from './live-error.ts'
import type { Holding, StoredRows, ViewStore } from './view-store.ts'

/** What the tabs of a group need of this tab's views. */
export interface TabsOwner {
  /** Those that are wanted. */
  readonly stores: readonly ViewStore[]
  store(request: ViewRequest): ViewStore
  /** A view is wanted that maybe was not. */
  want(store: ViewStore): void
  /** A view may not be wanted any more. */
  drop(store: ViewStore): void
  elected(isLeader: boolean): void
  /** Rows or states have changed. */
  changed(): void
  tick(): void
  /** This tab must have a connection of its own. */
  excluded(): void
}

/** What a tab wants of the leader. */
type Wish = readonly { readonly request: ViewRequest; readonly holding: Holding }[]

/** A status as tabs send it, without the error's class. */
interface SentStatus {
  readonly state: LiveState
  readonly since: number
  readonly error?: readonly [code: LiveErrorCode, message: string, retryAfter: number | undefined]
}

/** What the leader sends. */
type Sent =
  /** A frame of the gateway, for the tabs whose rows are the leader's. */
  | { readonly kind: 'frame'; readonly frame: ViewFrame }
  /** All rows, for some tabs. */
  | {
      readonly kind: 'rows'
      readonly to: readonly string[]
      readonly address: string
      readonly rows: StoredRows
      readonly gaps: number
    }
  | {
      readonly kind: 'statuses'
      readonly statuses: readonly (readonly [address: string, status: SentStatus])[]
    }
  /** The connection does not carry the views of this tab. */
  | { readonly kind: 'full'; readonly to: string }

/** Joins the tabs whose tokens have the same rights. Undefined where the browser does not let tabs share. */
export function joinTabs(
  gateway: string,
  rights: string,
  environment: Environment,
  owner: TabsOwner,
): Tabs | undefined {
  const { locks, BroadcastChannel } = environment
  if (locks === undefined || BroadcastChannel === undefined) return undefined
  // Other versions of this code may run in other tabs. The number is that of what tabs send to each other.
  const name = `rivulet live 1 ${gateway} ${rights}`
  try {
    const channel = new BroadcastChannel(name)
    return new Tabs(name, rights, environment, locks, channel, owner)
  } catch {
    // The browser blocks it, such as in a frame of another origin.
    return undefined
  }
}

/** The views of all tabs that share a connection. The leader passes on what comes from the gateway. */
export class Tabs {
  readonly rights: string
  readonly #environment: Environment
  readonly #owner: TabsOwner
  readonly #election: Election<Wish, Sent>

  constructor(
    name: string,
    rights: string,
    environment: Environment,
    locks: LockManager,
    channel: BroadcastChannel,
    owner: TabsOwner,
  ) {
    this.rights = rights
    this.#environment = environment
    this.#owner = owner
    this.#election = new Election<Wish, Sent>(name, environment, locks, channel, {
      elected: (isLeader) => owner.elected(isLeader),
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

  // As a tab that follows.

  /** Sends what this tab wants to the leader. */
  want(): void {
    this.#election.want(this.#owner.stores.map(({ request, holding }) => ({ request, holding })))
  }

  #led(): void {
    for (const store of this.#owner.stores) if (store.position !== undefined) store.holding = 'old'
    this.want()
  }

  #received(sent: Sent): void {
    if (sent.kind === 'statuses') {
      for (const [address, status] of sent.statuses) {
        const store = this.#find(address)
        if (store !== undefined) store.status = receivedStatus(status)
      }
    } else if (sent.kind === 'full') {
      if (sent.to === this.#election.id) this.#owner.excluded()
      return
    } else if (sent.kind === 'rows') {
      const store = sent.to.includes(this.#election.id) ? this.#find(sent.address) : undefined
      if (store === undefined) return
      store.replace(sent.rows)
      store.gaps = sent.gaps
      store.holding = 'same'
      store.lastFrame = this.#environment.now()
    } else {
      const store = this.#find(sent.frame.view)
      if (store === undefined || (store.holding !== 'same' && sent.frame.kind !== 'denied')) return
      store.take(sent.frame)
      store.lastFrame = this.#environment.now()
    }
    this.#owner.changed()
  }

  #find(address: string): ViewStore | undefined {
    return this.#owner.stores.find((store) => store.address === address)
  }

  // As the tab that leads.

  /** Passes a frame on that this tab has taken. */
  pass(store: ViewStore, frame: ViewFrame): void {
    if (store.tabs.size === 0) return
    this.#election.send({ kind: 'frame', frame })
    this.#offer(store)
  }

  sendStatuses(stores: readonly ViewStore[]): void {
    const statuses = stores.map(({ address, status }) => [address, sentStatus(status)] as const)
    if (statuses.length > 0) this.#election.send({ kind: 'statuses', statuses })
  }

  /** The connection has no room for more views of this tab, so tabs that follow must have their own. */
  makeRoom(): void {
    while (this.#owner.stores.length > MAX_LIVE_VIEWS) {
      const tab = this.#owner.stores
        .findLast(({ tabs }) => tabs.size > 0)
        ?.tabs.keys()
        .next().value
      if (tab === undefined) return
      this.#exclude(tab)
      for (const store of this.#owner.stores) this.#owner.drop(store)
    }
  }

  #exclude(tab: string): void {
    for (const store of this.#owner.stores) store.tabs.delete(tab)
    this.#election.send({ kind: 'full', to: tab })
  }

  #wanted(tab: string, wish: Wish): void {
    for (const store of this.#owner.stores) store.tabs.delete(tab)
    const addresses = this.#owner.stores.flatMap(({ address, isWanted }) => (isWanted ? address : []))
    const wished = wish.map(({ request: { view, params } }) => viewAddress(view, params))
    const isFull = new Set([...addresses, ...wished]).size > MAX_LIVE_VIEWS
    if (isFull) this.#exclude(tab)
    for (const { request, holding } of isFull ? [] : wish) {
      const store = this.#owner.store(request)
      store.tabs.set(tab, holding)
      this.#owner.want(store)
      this.#offer(store)
    }
    for (const store of this.#owner.stores) this.#owner.drop(store)
    this.sendStatuses(this.#owner.stores)
  }

  /** Sends the rows to the tabs that do not have them. Those with rows of another leader get them once they are current. */
  #offer(store: ViewStore): void {
    const { address, tabs, gaps } = store
    const to = [...tabs].flatMap(([tab, holding]) =>
      holding === 'none' || (holding === 'old' && store.isCurrent) ? tab : [],
    )
    const rows = to.length === 0 ? undefined : store.stored()
    if (rows === undefined) return
    for (const tab of to) tabs.set(tab, 'same')
    this.#election.send({ kind: 'rows', to, address, rows, gaps })
  }
}

function sentStatus({ state, since, error }: LiveStatus): SentStatus {
  if (!(error instanceof LiveError)) return { state, since }
  return { state, since, error: [error.code, error.message, error.retryAfter] }
}

function receivedStatus({ state, since, error }: SentStatus): LiveStatus {
  if (error === undefined) return { state, since }
  const [code, message, retryAfter] = error
  return { state, since, error: new LiveError(code, message, { retryAfter }) }
}
