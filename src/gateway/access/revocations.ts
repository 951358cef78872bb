import type { Revocation } from '../grant.ts'
import { MAX_TIME_TO_LIVE } from './checked-grant.ts'

/** The fields that identify a grant. */
export interface Revocable {
  readonly sub: string
  /** The id of its token. */
  readonly grant: string
  /** When it was made, in Unix ms. */
  readonly issued: number
}

/** How long a revocation is kept, in ms: no grant lives longer. Twice as long, since clocks may differ. */
export const REVOCATION_AGE = 2 * MAX_TIME_TO_LIVE

/** The grants that are revoked. */
export class Revocations {
  /** When each was revoked, in Unix ms, in the order in which they were added. */
  readonly #revoked = new Map<string, number>()

  /** Revokes one grant, or all of a subject that were made until this time. */
  add(revocation: Revocation, at: number, now: number): void {
    const key = revocationKey(revocation)
    const earlier = this.#revoked.get(key) ?? -Infinity
    this.#revoked.delete(key)
    this.#revoked.set(key, Math.max(at, earlier))
    for (const [old, revoked] of this.#revoked) {
      if (revoked > now - REVOCATION_AGE) break
      this.#revoked.delete(old)
    }
  }

  has({ sub, grant, issued }: Revocable): boolean {
    return issued <= this.subjectAt(sub) || this.#revoked.has(revocationKey({ grant }))
  }

  /** When the grants of a subject were revoked last, in Unix ms; -Infinity for never. */
  subjectAt(sub: string): number {
    return this.#revoked.get(revocationKey({ sub })) ?? -Infinity
  }
}

/** The same text for the same grants. */
export function revocationKey(revocation: Revocation): string {
  return 'sub' in revocation ? `sub:${revocation.sub}` : `grant:${revocation.grant}`
}
