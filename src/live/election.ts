import type { Environment } from './environment.ts'

/** The callbacks of a tab in its group. */
export interface ElectionOwner<Wish, Sent> {
  /** This tab leads from now on, or no longer leads. */
  elected(isLeader: boolean): void
  /** Another tab leads. The data that this tab has is from another leader. */
  led(): void
  /** The leader has sent something. */
  received(sent: Sent): void
  /** Another tab wants this and nothing else; undefined if it is gone. */
  wanted(tab: string, wish: Wish | undefined): void
  /** Another tab shows that time has passed: timers of a hidden page may be late by a minute. */
  tick(): void
  /** The browser has no locks here, for instance because it blocks storage: there is no group. */
  failed(): void
}

type Message<Wish, Sent> =
  | { readonly kind: 'lead'; readonly since: number }
  | { readonly kind: 'ask' }
  | { readonly kind: 'want'; readonly wish: Wish }
  | { readonly kind: 'sent'; readonly sent: Sent }

type SentMessage<Wish, Sent> = Message<Wish, Sent> & { readonly from: string }

/** How often a visible tab asks for its leader, in ms. */
const TICK = 400
/** A leader that leaves so many questions unanswered is replaced. */
const MAX_UNANSWERED = 3

/** What the tabs of an origin share. */
export interface Shared {
  /** The name of their lock and of their channels. */
  readonly name: string
  readonly environment: Environment
  readonly locks: LockManager
  readonly Channel: typeof BroadcastChannel
}

/**
 * The tabs of an origin that share a connection. The tab that holds a Web Lock leads. The browser gives the lock to the next tab when the
 * leader is closed or crashes. A leader that hangs keeps it, so the others ask for signs of life, and steal it.
 */
export class Election<Wish, Sent> {
  readonly name: string
  isLeader = false
  readonly id = crypto.randomUUID()
  readonly #environment: Environment
  readonly #locks: LockManager
  readonly #owner: ElectionOwner<Wish, Sent>
  readonly #Channel: typeof BroadcastChannel
  /** The channel that all tabs listen to. */
  readonly #channel: BroadcastChannel
  /** The channel of this tab alone. */
  readonly #own: BroadcastChannel
  readonly #left = new AbortController()
  /** Aborts the request that waits for the lock, or ends the time for which this tab leads. */
  #term = new AbortController()
  #endTick = () => {}
  #leader: string | undefined
  #leaderSince = 0
  #unanswered = 0
  #lastTick = 0
  /** The other tabs that have wanted something of this leader. */
  readonly #others = new Set<string>()

  constructor({ name, environment, locks, Channel }: Shared, owner: ElectionOwner<Wish, Sent>) {
    this.name = name
    this.#environment = environment
    this.#locks = locks
    this.#owner = owner
    this.#Channel = Channel
    this.#channel = new Channel(name)
    this.#own = new Channel(this.#presence(this.id))
    for (const channel of [this.#channel, this.#own]) {
      channel.addEventListener('message', ({ data }: MessageEvent<SentMessage<Wish, Sent>>) =>
        this.#receive(data),
      )
    }
    // The leader takes this lock when this tab is gone, however it ends.
    const lost = this.#hold(this.#presence(this.id), { signal: this.#left.signal }, () => {
      this.#queue()
      this.#tick()
      return this.#left.signal
    })
    void lost.then(() => this.#fail())
  }

  get followers(): number {
    return this.#others.size
  }

  get role(): 'leader' | 'follower' | 'idle' {
    if (this.isLeader) return 'leader'
    return this.#leader === undefined ? 'idle' : 'follower'
  }

  /** Leaves the group. The next tab leads. */
  leave(): void {
    this.#left.abort()
    this.#term.abort()
    this.#endTick()
    this.#channel.close()
    this.#own.close()
    this.isLeader = false
  }

  /** Sends what this tab wants to the leader. */
  want(wish: Wish): void {
    if (this.#leader !== undefined) this.#send({ kind: 'want', wish })
  }

  /** Sends something to the tabs that follow. */
  send(sent: Sent): void {
    if (this.#others.size > 0) this.#send({ kind: 'sent', sent })
  }

  /**
   * Sends a message to one tab that follows. It may come before messages that were sent to all tabs earlier, or after messages that are
   * sent later.
   */
  sendTo(tab: string, sent: Sent): void {
    if (this.#left.signal.aborted) return
    const channel = new this.#Channel(this.#presence(tab))
    this.#send({ kind: 'sent', sent }, channel)
    channel.close()
  }

  /** Looks for the leader at once. */
  wake(): void {
    this.#unanswered = 0
    this.#tick()
  }

  #send(message: Message<Wish, Sent>, channel = this.#channel): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- A channel has no target: it is limited to one origin.
    if (!this.#left.signal.aborted) channel.postMessage({ ...message, from: this.id })
  }

  #receive(message: SentMessage<Wish, Sent>): void {
    const { from } = message
    switch (message.kind) {
      case 'ask':
        if (!this.isLeader) return
        this.#owner.tick()
        this.#lead()
        return
      case 'want':
        if (!this.isLeader) return
        this.#meet(from)
        this.#owner.wanted(from, message.wish)
        return
      case 'lead':
        if (this.isLeader || message.since < this.#leaderSince) return
        this.#unanswered = 0
        // The same tab may lead again after another one.
        if (from === this.#leader && message.since === this.#leaderSince) return
        this.#leader = from
        this.#leaderSince = message.since
        this.#owner.led()
        return
      default:
        if (from === this.#leader && !this.isLeader) {
          this.#unanswered = 0
          this.#owner.received(message.sent)
        }
    }
  }

  /** The browser has refused a lock, or has taken one that no tab steals. */
  #fail(): void {
    // Called later, so that the constructor's caller already has this group.
    this.#environment.later(0, () => {
      if (!this.#left.signal.aborted) this.#owner.failed()
    })
  }

  /** Waits for the lock. */
  #queue(): void {
    this.#term = new AbortController()
    this.#request({ signal: this.#term.signal })
  }

  #request(options: LockOptions): void {
    const term = this.#term
    let wasHeld = false
    const lost = this.#hold(this.name, options, () => {
      wasHeld = true
      // It was given up meanwhile. A request that steals has no signal.
      if (term.signal.aborted) return
      this.isLeader = true
      // Later than the term before, also if the clock was set back.
      this.#leaderSince = Math.max(this.#environment.now(), this.#leaderSince + 1)
      this.#leader = undefined
      this.#lead()
      this.#owner.elected(true)
      return term.signal
    })
    void lost.then(() => {
      if (this.#left.signal.aborted || term !== this.#term) return
      if (!wasHeld) return this.#fail()
      // Another tab has stolen the lock.
      term.abort()
      this.#others.clear()
      if (this.isLeader) {
        this.isLeader = false
        this.#owner.elected(false)
      }
      this.#queue()
      this.wake()
    })
  }

  #lead(): void {
    this.#send({ kind: 'lead', since: this.#leaderSince })
  }

  /** Notices when another tab is gone. */
  #meet(tab: string): void {
    if (this.#others.has(tab)) return
    this.#others.add(tab)
    const { signal } = this.#term
    void this.#hold(this.#presence(tab), { signal }, () => {
      this.#others.delete(tab)
      if (!signal.aborted) this.#owner.wanted(tab, undefined)
    })
  }

  /** Asks for the leader while this tab is visible and follows. */
  #tick(): void {
    this.#endTick()
    const now = this.#environment.now()
    // A page that was asleep itself knows nothing of its leader.
    if (Math.abs(now - this.#lastTick) > 2 * TICK) this.#unanswered = 0
    this.#lastTick = now
    if (this.isLeader || this.#environment.isHidden() || this.#left.signal.aborted) return
    if (this.#unanswered++ < MAX_UNANSWERED) this.#send({ kind: 'ask' })
    else this.#steal()
    this.#endTick = this.#environment.later(TICK, () => this.#tick())
  }

  #steal(): void {
    this.#unanswered = 0
    this.#term.abort()
    this.#term = new AbortController()
    this.#request({ steal: true })
  }

  #presence(tab: string): string {
    return `${this.name} ${tab}`
  }

  /** Holds a lock until the signal that `held` returns aborts. Resolves when the lock is lost, or the request is given up. */
  async #hold(name: string, options: LockOptions, held: () => AbortSignal | void): Promise<void> {
    try {
      await this.#locks.request(name, options, () => {
        const until = held()
        return (
          until &&
          new Promise<void>((resolve) => until.addEventListener('abort', () => resolve(), { once: true }))
        )
      })
    } catch {
      // Stolen or given up.
    }
  }
}
