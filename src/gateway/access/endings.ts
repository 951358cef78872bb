import type { SchedulerLike } from 'rxjs'
import type { AccessEnd, Endings, GrantedAccess } from './access.ts'

/** An access that something waits for the end of. */
interface Watched {
  readonly access: GrantedAccess
  readonly end: (reason: AccessEnd) => void
}

/** The accesses of open connections, which end when their grants expire or are revoked. */
export class OpenAccesses implements Endings {
  readonly #scheduler: SchedulerLike
  readonly #isRevoked: (access: GrantedAccess) => boolean
  readonly #watched = new Set<Watched>()

  /** @param isRevoked Whether the grant is revoked now. */
  constructor(scheduler: SchedulerLike, isRevoked: (access: GrantedAccess) => boolean) {
    this.#scheduler = scheduler
    this.#isRevoked = isRevoked
  }

  watch(access: GrantedAccess, onEnd: (reason: AccessEnd) => void): () => void {
    const expiry = this.#scheduler.schedule(
      () => watched.end('expired'),
      Math.max(0, access.expires - this.#scheduler.now()),
    )
    const stop = () => {
      expiry.unsubscribe()
      this.#watched.delete(watched)
    }
    const watched: Watched = {
      access,
      end: (reason) => {
        // Once, whatever comes first.
        if (!this.#watched.has(watched)) return
        stop()
        onEnd(reason)
      },
    }
    this.#watched.add(watched)
    // It may have ended since it was verified, and a timer is too late for bytes that are sent at once.
    queueMicrotask(() => {
      if (this.#isRevoked(access)) watched.end('revoked')
      else if (access.expires <= this.#scheduler.now()) watched.end('expired')
    })
    return stop
  }

  /** Ends those whose grants have been revoked. */
  endRevoked(): void {
    for (const watched of Array.from(this.#watched)) {
      if (this.#isRevoked(watched.access)) watched.end('revoked')
    }
  }
}
