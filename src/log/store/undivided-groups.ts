import { JoinedGroups } from './joined-groups.ts'

/** Groups of a log whose sources are not divided: each member has every part, and the claims of what is worked on decide. */
export class UndividedGroups {
  readonly #closed: AbortSignal
  readonly #joined: JoinedGroups

  /** @param closed Aborted once the log is closed. Its reason is the error with which calls reject from then on. */
  constructor(log: string, owner: string, closed: AbortSignal) {
    this.#joined = new JoinedGroups(log, owner)
    this.#closed = closed
  }

  async *share(
    group: string,
    parts: number,
    signal: AbortSignal,
  ): AsyncGenerator<ReadonlySet<number>, void, void> {
    this.#closed.throwIfAborted()
    if (signal.aborted) return
    const leave = this.#joined.join(group)
    // The member leaves even if nothing asks for a share then.
    signal.addEventListener('abort', leave, { once: true })
    try {
      yield new Set(Array.from({ length: parts }, (_, part) => part))
      await aborted(AbortSignal.any([signal, this.#closed]))
      if (!signal.aborted) this.#closed.throwIfAborted()
    } finally {
      signal.removeEventListener('abort', leave)
      leave()
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
