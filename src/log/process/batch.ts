import { MAX_APPEND_ENTRIES, MAX_COMMIT_BYTES } from '../store/contract.ts'
import type { NewEntry } from '../store/contract.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'
import { deadLetterBytes, stateBytes, timerBytes } from '../store/commit-size.ts'
import type { TimerChange } from '../store/process-store.ts'
import { timerId } from './timer-queue.ts'
import type { CallbackEffects } from './effects.ts'

/**
 * Space for the cursor and the checkpoint of the process, in bytes: seven positions and a key. A position takes up to 7 KB, in a log
 * in memory of 1,000 partitions.
 */
const RESERVE = 64 * 1024

/** Maximum size of the changes of callbacks and of dead letters, in bytes. */
export const MAX_EFFECT_BYTES = MAX_COMMIT_BYTES - RESERVE

/** Maximum number of calls of callbacks in a commit, those that failed included, so that its transaction stays short. */
const MAX_CALLS = 500

/** The changes by calls of callbacks since the last commit. */
export class Batch {
  /** States by key, in the order of the last change. */
  readonly #state = new Map<string, string | null>()
  readonly #timers = new Map<string, TimerChange>()
  readonly #entries: NewEntry[] = []
  readonly #deadLetters: NewDeadLetter[] = []
  #bytes = 0
  #calls = 0

  get state(): { readonly key: string; readonly state: string | null }[] {
    return Array.from(this.#state, ([key, state]) => ({ key, state }))
  }

  get timers(): TimerChange[] {
    return [...this.#timers.values()]
  }

  get entries(): readonly NewEntry[] {
    return this.#entries
  }

  get deadLetters(): readonly NewDeadLetter[] {
    return this.#deadLetters
  }

  /** Whether the dead letter fits into the same commit. */
  hasRoomForDeadLetter(deadLetter: NewDeadLetter): boolean {
    return this.#calls < MAX_CALLS && this.#bytes + deadLetterBytes(deadLetter) <= MAX_EFFECT_BYTES
  }

  addDeadLetter(deadLetter: NewDeadLetter): void {
    this.#calls += 1
    this.#bytes += deadLetterBytes(deadLetter)
    this.#deadLetters.push(deadLetter)
  }

  /** Whether the effects fit into the same commit. */
  hasRoomFor({ bytes, entries }: CallbackEffects<unknown>): boolean {
    return (
      this.#calls < MAX_CALLS &&
      this.#bytes + bytes <= MAX_EFFECT_BYTES &&
      this.#entries.length + entries.length <= MAX_APPEND_ENTRIES
    )
  }

  /** @param isSuppressed Whether the output is dropped. */
  add(key: string, effects: CallbackEffects<unknown>, isSuppressed: boolean): void {
    this.#calls += 1
    this.#bytes += effects.bytes
    if (effects.state !== undefined) {
      const earlier = this.#state.get(key)
      if (earlier !== undefined) this.#bytes -= stateBytes({ key, state: earlier })
      this.#state.delete(key)
      this.#state.set(key, effects.state)
    }
    for (const change of effects.timers.values()) {
      const id = timerId(change)
      const earlier = this.#timers.get(id)
      if (earlier !== undefined) this.#bytes -= timerBytes(earlier)
      this.#timers.set(id, change)
    }
    if (!isSuppressed) this.#entries.push(...effects.entries)
  }
}
