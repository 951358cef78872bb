import { errorText } from '../protocol/error-text.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { isThenable } from '../protocol/thenable.ts'
import type { Clocks } from './clocks.ts'
import { CallbackEffects, EXPIRY, MAX_NAME_LENGTH } from './effects.ts'
import type { EffectSettings, Occasion, Representation } from './effects.ts'
import { ProcessError } from './process-error.ts'
import type { FunctionSettings } from './process-functions.ts'
import { RefusedEffect } from './refused-effect.ts'
import { MAX_OUTPUTS } from './sizes.ts'
import type { NameRange, Timer } from './timers.ts'

/** Maximum number of keys of one entry. */
const MAX_KEYS = 10_000

const NO_NAMES: readonly NameRange[] = []

/** The place of a call, for the error if it fails. */
type Place = ConstructorParameters<typeof ProcessError>[1]

/**
 * What one process does: the keys of an entry, and for a state and an entry or a timer, the next state, timers and output. It keeps
 * nothing. Over a log and in memory, a process is this with states and timers from there.
 */
export class ProcessCore<State, Input, Stored, Output> {
  readonly name: string
  readonly #functions: FunctionSettings<State, Input>
  readonly #representation: Representation<State, Stored, Output>
  readonly #settings: EffectSettings

  constructor(
    name: string,
    functions: FunctionSettings<State, Input>,
    representation: Representation<State, Stored, Output>,
  ) {
    this.name = name
    this.#functions = functions
    this.#representation = representation
    const { maxStateBytes, timeToLive, timer, lateness } = functions
    this.#settings = { process: name, maxStateBytes, timeToLive, hasTimers: timer !== undefined, lateness }
  }

  /** The times up to which timers fire. */
  due({ event, ...rest }: Clocks): Clocks {
    return { event: Math.floor(event - this.#functions.lateness), ...rest }
  }

  /**
   * The keys of an entry, each once, in the order of their texts. None for an entry that is not wanted.
   *
   * @throws {ProcessError} if a function fails.
   */
  keysOf(entry: Input & ResearchEvent): readonly string[] {
    const { types, where, key } = this.#functions
    const wanted: readonly string[] | undefined = types
    if (wanted !== undefined && !wanted.includes(entry.type)) return []
    try {
      return where === undefined || where(entry) ? checkedKeys(key(entry)) : []
    } catch (error) {
      throw this.#errorOf(error, { entry })
    }
  }

  /** The names of the timers that {@link event} needs. */
  namesRead(entry: Input, key: string): readonly NameRange[] {
    return this.#functions.reads?.(entry, key) ?? NO_NAMES
  }

  /**
   * Calls `event`.
   *
   * @param running The timers of {@link namesRead}.
   * @param call The function to call in its place.
   * @throws {ProcessError} if the function fails, or what it does is refused.
   */
  event(
    occasion: Occasion,
    entry: Input & ResearchEvent,
    key: string,
    stored: Stored | null,
    running?: readonly Timer[],
    call = this.#functions.event,
  ): CallbackEffects<State, Stored, Output> {
    const effects = new CallbackEffects(this.#settings, this.#representation, occasion, key, running)
    try {
      return this.#checked(effects, call(this.#stateOf(key, stored), entry, effects))
    } catch (error) {
      throw this.#errorOf(error, { key, entry })
    } finally {
      effects.end()
    }
  }

  /**
   * Calls `timer`, or ends a state that was not set for long.
   *
   * @param entry The entry before which the timer fires, if there is one.
   * @throws {ProcessError} as `event` does. The timer is over then as well: see {@link ended}.
   */
  timer(
    occasion: Occasion,
    timer: Timer,
    stored: Stored | null,
    entry: Place['entry'],
  ): CallbackEffects<State, Stored, Output> {
    const { key, name, due, data } = timer
    // It is over, unless the function starts it again.
    const effects = this.ended(occasion, timer)
    try {
      if (name === EXPIRY) {
        effects.expire(timer)
        return effects
      }
      const { timer: call } = this.#functions
      if (call === undefined) throw new RefusedEffect('a timer fires, and there is no function `timer`')
      const given: unknown = data === null ? undefined : JSON.parse(data)
      return this.#checked(effects, call(this.#stateOf(key, stored), due, effects, name, given))
    } catch (error) {
      throw this.#errorOf(error, { key, entry, timer })
    } finally {
      effects.end()
    }
  }

  /** The one effect of a timer whose function has failed. */
  ended(occasion: Occasion, { key, name }: Timer): CallbackEffects<State, Stored, Output> {
    const effects = new CallbackEffects(this.#settings, this.#representation, occasion, key)
    effects.endTimer(name)
    return effects
  }

  #stateOf(key: string, stored: Stored | null): State {
    if (stored !== null) return this.#representation.state(stored)
    return this.#representation.initial(this.#functions.init(key))
  }

  /** @param result The result of the function. */
  #checked(
    effects: CallbackEffects<State, Stored, Output>,
    result: unknown,
  ): CallbackEffects<State, Stored, Output> {
    if (isThenable(result)) {
      result.then(undefined, () => {})
      throw new RefusedEffect('its function returned a promise: functions of a process are synchronous')
    }
    const { maxEffectBytes } = this.#representation
    if (maxEffectBytes !== Infinity && effects.bytes > maxEffectBytes) {
      throw new RefusedEffect(
        `what it changes takes ${effects.bytes} bytes: at most ${maxEffectBytes} fit into a commit`,
      )
    }
    const { length } = effects.outputs
    if (length <= MAX_OUTPUTS) return effects
    throw new RefusedEffect(`it appends ${length} events: at most ${MAX_OUTPUTS} at a time`)
  }

  #errorOf(error: unknown, at: Place): ProcessError {
    const problem = error instanceof RefusedEffect ? error.message : `its function threw ${errorText(error)}`
    return new ProcessError(this.name, at, problem, { cause: error })
  }
}

/** @throws {RefusedEffect} for what is no key. */
function checkedKeys(given: unknown): readonly string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) return [checkedKey(given)]
  if (given.length > MAX_KEYS) {
    throw new RefusedEffect(`its ${given.length} keys are too many for an entry: at most ${MAX_KEYS}`)
  }
  if (given.length === 1) return [checkedKey(given[0])]
  // It may have holes.
  return [...new Set(Array.from(given, checkedKey))].toSorted()
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string' && key.length <= MAX_NAME_LENGTH) return key
  throw new RefusedEffect(
    `its key must be a text of up to ${MAX_NAME_LENGTH} characters, several of them, or undefined`,
  )
}
