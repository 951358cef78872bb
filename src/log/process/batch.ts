import { MAX_APPEND_ENTRIES } from '../store/contract.ts'
import type { NewEntry } from '../store/contract.ts'
import type { NewDeadLetter } from '../store/dead-letter-store.ts'
import { deadLetterBytes } from '../store/commit-size.ts'
import type { CallbackEffects } from '../../streams/effects.ts'
import { MAX_EFFECT_BYTES, stateBytes, timerBytes } from '../../streams/sizes.ts'
import type { TimerChange } from '../../streams/timers.ts'

/** What one call of a function of a process over a log changes. */
export type ProcessEffects<State> = CallbackEffects<State, string, NewEntry>

/** The part of the effects that goes into a commit. */
export type CommittedEffects = Pick<ProcessEffects<unknown>, 'state' | 'outputs' | 'timers' | 'bytes'>

/** Maximum number of calls of callbacks in a commit, those that failed included, so that its transaction stays short. */
const MAX_CALLS = 500

/** The changes by calls of callbacks since the last commit. */
export class Batch {
  /** States by key, in the order of the last change. */
  readonly #state = new Map<string, string | null>()
  /** The last change of each timer, by key and name. */
  readonly #timers = new Map<string, Map<string, TimerChange>>()
  readonly #entries: NewEntry[] = []
  readonly #deadLetters: NewDeadLetter[] = []
  #bytes = 0
  #calls = 0

  get state(): { readonly key: string; readonly state: string | null }[] {
    return Array.from(this.#state, ([key, state]) => ({ key, state }))
  }

  get timers(): TimerChange[] {
    return Array.from(this.#timers.values(), (changes) => [...changes.values()]).flat()
  }

  /** The changes of the timers of a key. */
  timersOf(key: string): Iterable<TimerChange> {
    return this.#timers.get(key)?.values() ?? []
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
  hasRoomFor({ bytes, outputs }: CommittedEffects): boolean {
    return (
      this.#calls < MAX_CALLS &&
      this.#bytes + bytes <= MAX_EFFECT_BYTES &&
      this.#entries.length + outputs.length <= MAX_APPEND_ENTRIES
    )
  }

  /** @param isSuppressed Whether the output is dropped. */
  add(key: string, effects: CommittedEffects, isSuppressed: boolean): void {
    this.#calls += 1
    this.#bytes += effects.bytes
    if (effects.state !== undefined) {
      const earlier = this.#state.get(key)
      if (earlier !== undefined) this.#bytes -= stateBytes({ key, state: earlier })
      this.#state.delete(key)
      this.#state.set(key, effects.state)
    }
    for (const change of effects.timers) {
      const changes = this.#timers.get(key) ?? new Map<string, TimerChange>()
      const earlier = changes.get(change.name)
      if (earlier !== undefined) this.#bytes -= timerBytes(earlier)
      this.#timers.set(key, changes.set(change.name, change))
    }
    if (!isSuppressed) this.#entries.push(...effects.outputs)
  }
}
