import { LogConflictError } from '../../errors.ts'
import type { Fence, StreamAppend } from '../../store/contract.ts'
import type { NatsClaims } from './claims.ts'
import type { Journals } from './journals.ts'

/** The position of a stream after an append. */
export interface StreamMove {
  readonly fence: Fence
  readonly expect: string | null
  readonly position: string
}

/** The upstream positions of streams. */
export class Streams {
  readonly #journals: Journals
  readonly #claims: NatsClaims

  constructor(journals: Journals, claims: NatsClaims) {
    this.#journals = journals
    this.#claims = claims
  }

  /** The positions; null for a stream without one. */
  async positions(names: readonly string[]): Promise<readonly (string | null)[]> {
    const heads = await this.#journals.heads(names)
    return heads.map((head) => head?.position ?? null)
  }

  /**
   * Checks the fences of an append, and then where its streams stand, as far as the server knows by now. Rejects with a
   * FencedError or a LogConflictError.
   *
   * @returns The streams to {@link move} once the entries are stored, each once.
   */
  async check(appends: readonly Omit<StreamAppend, 'entries'>[]): Promise<readonly StreamMove[]> {
    const names = [...new Set(appends.map(({ fence }) => fence.name))]
    const positions = new Map(
      await Promise.all(
        names.map(async (name) => {
          const own = appends.filter(({ fence }) => fence.name === name)
          return this.#journals.of(name).read((state) => {
            for (const { fence } of own) this.#claims.checkIn(state, fence)
            return [name, state.head.position] as const
          })
        }),
      ),
    )
    const moved = new Map<string, StreamMove>()
    for (const { fence, expect, position } of appends) {
      const { name } = fence
      const first = positions.get(name) ?? null
      if ((moved.get(name)?.position ?? first) !== expect) {
        throw new LogConflictError(this.#journals.log, name)
      }
      if (position !== undefined) moved.set(name, { fence, expect: first, position })
    }
    return [...moved.values()]
  }

  /** Moves streams. Rejects with a FencedError or a LogConflictError for the first one that stands elsewhere by now. */
  async move(moves: readonly StreamMove[]): Promise<void> {
    await Promise.all(
      moves.map(({ fence, expect, position }) =>
        this.#journals.of(fence.name).write((state) => {
          this.#claims.checkIn(state, fence)
          if (state.head.position !== expect) throw new LogConflictError(this.#journals.log, fence.name)
          return { head: { position } }
        }),
      ),
    )
  }
}
