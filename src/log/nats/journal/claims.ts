import { setTimeout as delay } from 'node:timers/promises'
import { FencedError, LogClosedError, LogInUseError } from '../../errors.ts'
import type { Fence } from '../../store/contract.ts'
import type { Journal } from './journal.ts'
import type { JournalChanges } from './journal-changes.ts'
import { OWN_TOKEN } from './journal-message.ts'
import type { JournalClaim, JournalHead } from './journal-message.ts'
import type { JournalState } from './journal-state.ts'
import type { Journals } from './journals.ts'
import type { Lease } from './lease.ts'
import { isTransient } from '../server/server-error.ts'

/** Pause after a release that could not be stored before the next attempt, in ms. */
const RELEASE_INTERVAL = 1_000

/** An open log that claims names. */
export interface NatsClaimer {
  readonly owner: string
  readonly lease: Lease
  /** Aborted once the log is closed. */
  readonly closed: AbortSignal
}

/**
 * The claims of names, as one open log has them. A claim is a message of the name's journal, so that each later write of an
 * earlier owner is refused; whether the owner lives, its lease says.
 */
export class NatsClaims {
  readonly #journals: Journals
  readonly #changes: JournalChanges
  readonly #claimer: NatsClaimer
  /** Claims that this open log has not given up: tokens by name. */
  readonly #held = new Map<string, number>()
  /** Number of claiming calls in flight, by name. */
  readonly #claiming = new Map<string, number>()
  /** Names whose claim may have been stored although its call failed. */
  readonly #lookedAt = new Set<string>()

  constructor(journals: Journals, changes: JournalChanges, claimer: NatsClaimer) {
    this.#journals = journals
    this.#changes = changes
    this.#claimer = claimer
  }

  /** The open log, in the keys of the leases. */
  get instance(): string {
    return this.#claimer.lease.instance
  }

  /** Whether this open log has claimed a name and not given it up, as far as it knows. */
  holds(name: string): boolean {
    return this.#held.has(name)
  }

  /** Claims a name, or waits for it if there is a signal. */
  async claim(name: string, wait?: AbortSignal): Promise<Fence> {
    wait?.throwIfAborted()
    const journal = this.#journals.of(name)
    if (wait === undefined) {
      const result = await this.#tryClaim(journal)
      if (typeof result === 'string') throw new LogInUseError(this.#journals.log, name, result)
      return result
    }
    const fence = await this.#changes.until(
      name,
      async () => {
        const result = await this.#tryClaim(journal, wait)
        return typeof result === 'string' ? undefined : result
      },
      wait,
    )
    if (!wait.aborted) return fence
    await this.release(fence)
    throw wait.reason
  }

  /**
   * Gives a name up. A fence that is void already is ignored. If the server cannot store that now, it rejects, and retries until the log
   * is closed: as long as this open log lives, no other one may take the name over.
   */
  async release(fence: Fence): Promise<void> {
    const { name, token } = fence
    if (this.#held.get(name) === token) this.#held.delete(name)
    const isOver = (claim: JournalClaim) => this.#isOwn(claim, token)
    try {
      await this.#giveUp(name, isOver)
    } catch (error) {
      if (isTransient(error)) void this.#giveUpLater(name, isOver)
      throw error
    }
  }

  /** Gives up a claim that the server may have stored: no other log could take the name over while this one lives. */
  #giveUpUnknown(name: string): void {
    if (this.#lookedAt.has(name)) return
    this.#lookedAt.add(name)
    const end = () => this.#lookedAt.delete(name)
    void this.#giveUpLater(name, (claim) => this.#isUnknown(claim, name)).finally(end)
  }

  async #giveUpLater(name: string, isOver: (claim: JournalClaim) => boolean): Promise<void> {
    while (!this.#claimer.closed.aborted) {
      await delay(RELEASE_INTERVAL, undefined, { ref: false })
      try {
        await this.#giveUp(name, isOver)
        // A call that claims it may still fail before it stores its own claim.
        if (!this.#claiming.has(name)) return
      } catch (error) {
        if (!isTransient(error)) return
      }
    }
  }

  /** Stores that a name is free, if its claim is over. */
  async #giveUp(name: string, isOver: (claim: JournalClaim) => boolean): Promise<void> {
    const released = await this.#journals
      .of(name)
      .write(({ head }) => {
        if (!isOver(head.claim)) {
          // The known state may be old.
          throw new FencedError(this.#journals.log, name)
        }
        return { head: { claim: { ...head.claim, token: OWN_TOKEN, isHeld: false } } }
      })
      .catch(ignoreFenced)
    if (released !== undefined) this.#changes.notify(name)
  }

  /** Rejects with a FencedError for a fence that is void, as far as the server knows by now. */
  async check(fence: Fence): Promise<void> {
    await this.#journals.of(fence.name).read((state) => this.checkIn(state, fence))
  }

  /** Throws a FencedError for a fence that is void in this state. */
  checkIn({ head: { claim } }: JournalState, { name, token }: Fence): void {
    if (!this.#isOwn(claim, token)) throw new FencedError(this.#journals.log, name)
  }

  /** The owner of a name that is held, by an open log that lives; null for a free one. */
  async ownerOf(name: string): Promise<string | null> {
    const head = await this.#journals.head(name)
    if (head === undefined || !head.claim.isHeld) return null
    const { lease, closed } = this.#claimer
    return (await lease.isAlive(head.claim.instance, closed)) ? head.claim.owner : null
  }

  /** The owners of held names, from the last messages of their journals. */
  async owners(): Promise<(head: JournalHead) => string | null> {
    const alive = await this.#claimer.lease.alive()
    return ({ claim }) => (claim.isHeld && alive.has(claim.instance) ? claim.owner : null)
  }

  /**
   * Makes the last fence of a name void, with a change of its head. Rejects with a LogInUseError while an open log holds the
   * name. Without effect for an unknown name.
   */
  async revoke(name: string, change: { readonly head: Partial<JournalHead>; readonly isDropped: boolean }) {
    const journal = this.#journals.of(name)
    for (;;) {
      const { holder, sequence } = await journal.read(async (state) => {
        const { claim } = state.head
        const isOwn = claim.isHeld && claim.instance === this.instance
        return { sequence: state.sequence, holder: isOwn ? claim.owner : await this.#holder(state) }
      })
      if (holder !== undefined) throw new LogInUseError(this.#journals.log, name, holder)
      if (sequence === 0) return
      const revoked = await journal.write((state) =>
        // Others may have claimed it meanwhile.
        state.sequence === sequence
          ? {
              ...change,
              head: { ...change.head, claim: { ...state.head.claim, token: OWN_TOKEN, isHeld: false } },
            }
          : undefined,
      )
      if (revoked !== undefined) {
        this.#changes.notify(name)
        return
      }
    }
  }

  /** Gives up what this open log holds, and its lease. */
  async close(): Promise<void> {
    const held = Array.from(this.#held, ([name, token]) => ({ name, token }))
    try {
      await Promise.all(held.map((fence) => this.release(fence)))
    } finally {
      await this.#claimer.lease.release()
    }
  }

  /** Claims a name, or returns the owner if another open log holds it. */
  async #tryClaim(journal: Journal, wait?: AbortSignal): Promise<Fence | string> {
    const { name } = journal
    this.#claiming.set(name, (this.#claiming.get(name) ?? 0) + 1)
    try {
      return await this.#storeClaim(journal, wait)
    } finally {
      const others = (this.#claiming.get(name) ?? 0) - 1
      if (others === 0) this.#claiming.delete(name)
      else this.#claiming.set(name, others)
    }
  }

  async #storeClaim(journal: Journal, wait?: AbortSignal): Promise<Fence | string> {
    const { lease, owner, closed } = this.#claimer
    const { name } = journal
    for (;;) {
      // The state moves on while the lease of its owner is read.
      const { holder, sequence } = await journal.read(async (state) => ({
        sequence: state.sequence,
        holder: await this.#holder(state, wait),
      }))
      if (holder !== undefined) return holder
      await lease.hold()
      closed.throwIfAborted()
      const token = await journal
        .write((state) =>
          // Others may have claimed it meanwhile.
          state.sequence === sequence
            ? { head: { claim: { token: OWN_TOKEN, owner, instance: lease.instance, isHeld: true } } }
            : undefined,
        )
        .catch((error: unknown) => {
          this.#giveUpUnknown(name)
          throw error
        })
      if (token === undefined) continue
      this.#held.set(name, token)
      const fence = { name, token }
      if (!closed.aborted) return fence
      await this.release(fence)
      throw new LogClosedError(this.#journals.log)
    }
  }

  /** The owner of a name, if it is another open log that lives. */
  async #holder({ head: { claim } }: JournalState, wait?: AbortSignal): Promise<string | undefined> {
    const { lease, closed } = this.#claimer
    if (!claim.isHeld || claim.instance === lease.instance) return undefined
    const signal = wait === undefined ? closed : AbortSignal.any([wait, closed])
    const isAlive = await lease.isAlive(claim.instance, signal)
    closed.throwIfAborted()
    return isAlive ? claim.owner : undefined
  }

  /** Whether a claim of this open log was stored without an answer to the call. */
  #isUnknown({ isHeld, instance, token }: JournalClaim, name: string): boolean {
    const isKnown = this.#held.get(name) === token || this.#claiming.has(name)
    return isHeld && instance === this.instance && !isKnown
  }

  #isOwn(claim: JournalClaim, token: number): boolean {
    return claim.isHeld && claim.token === token && claim.instance === this.#claimer.lease.instance
  }
}

function ignoreFenced(error: unknown): undefined {
  if (!(error instanceof FencedError)) throw error
  return undefined
}
