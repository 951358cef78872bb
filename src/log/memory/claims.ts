import type { Fence } from '../store/contract.ts'
import { FencedError, LogInUseError } from '../errors.ts'
import { WaitingCalls } from './waiting-calls.ts'

/** An open log that claims names. */
interface MemoryClaimer {
  readonly owner: string
}

interface Claim {
  /** Token of the last fence. A release raises it too, which makes that fence void. */
  token: number
  holder: MemoryClaimer | undefined
  readonly waiting: WaitingCalls<MemoryClaimer, Fence>
}

/** Which open log holds which name. */
export class MemoryClaims {
  readonly #log: string
  readonly #claims = new Map<string, Claim>()

  constructor(log: string) {
    this.#log = log
  }

  /** Claims a name, or waits for it if there is a signal. */
  async claim(name: string, claimer: MemoryClaimer, wait: AbortSignal | undefined): Promise<Fence> {
    wait?.throwIfAborted()
    let claim = this.#claims.get(name)
    if (claim === undefined) {
      claim = { token: 0, holder: undefined, waiting: new WaitingCalls() }
      this.#claims.set(name, claim)
    }
    if (claim.holder === undefined || claim.holder === claimer) return give(name, claim, claimer)
    if (wait !== undefined) return claim.waiting.add(claimer, wait)
    throw new LogInUseError(this.#log, name, claim.holder.owner)
  }

  /** Throws a FencedError for a fence that is void. */
  check({ name, token }: Fence): void {
    if (this.#claims.get(name)?.token !== token) throw new FencedError(this.#log, name)
  }

  /** Whether the fence is valid and its name held. */
  isHeld({ name, token }: Fence): boolean {
    const claim = this.#claims.get(name)
    return claim?.holder !== undefined && claim.token === token
  }

  /** The owner of a name that is held; null for a free one. */
  ownerOf(name: string): string | null {
    return this.#claims.get(name)?.holder?.owner ?? null
  }

  /** Makes the last fence of a name void. Throws a LogInUseError while an open log holds the name. */
  revoke(name: string): void {
    const claim = this.#claims.get(name)
    if (claim?.holder !== undefined) throw new LogInUseError(this.#log, name, claim.holder.owner)
    if (claim !== undefined) claim.token += 1
  }

  release({ name, token }: Fence, claimer: MemoryClaimer): void {
    const claim = this.#claims.get(name)
    if (claim === undefined || claim.token !== token || claim.holder !== claimer) return
    claim.token += 1
    free(name, claim)
  }

  /** Frees what the claimer holds. Its fences are valid until another claims their names. */
  lose(claimer: MemoryClaimer): void {
    for (const [name, claim] of this.#claims) if (claim.holder === claimer) free(name, claim)
  }

  /** Releases what the claimer holds. Its waiting claims reject. */
  close(claimer: MemoryClaimer, error: Error): void {
    for (const { waiting } of this.#claims.values()) waiting.reject(claimer, error)
    for (const [name, claim] of this.#claims) {
      if (claim.holder === claimer) this.release({ name, token: claim.token }, claimer)
    }
  }
}

function give(name: string, claim: Claim, claimer: MemoryClaimer): Fence {
  claim.holder = claimer
  claim.token += 1
  return { name, token: claim.token }
}

function free(name: string, claim: Claim): void {
  claim.holder = undefined
  claim.waiting.settle((claimer) => (claim.holder === undefined ? give(name, claim, claimer) : undefined))
}
