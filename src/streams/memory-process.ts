import type { ResearchEvent } from '../protocol/event.ts'
import { advanced, arrivedAt, arrivedBy, NO_TIME } from './clocks.ts'
import type { Clocks } from './clocks.ts'
import { entryOccasion, timerOccasion } from './effects.ts'
import type { CallbackEffects, Representation } from './effects.ts'
import { ProcessCore } from './process-core.ts'
import { ProcessError } from './process-error.ts'
import type { FunctionSettings, StreamInput } from './process-functions.ts'
import { NO_HOLDS } from './holds.ts'
import { Timers } from './timers.ts'
import { WaitingTimers } from './waiting-timers.ts'

/** Settings of a {@link MemoryProcess}. */
export interface MemorySettings<State, Input, Stored, Output> {
  /** The name of the process. */
  readonly name: string
  readonly functions: FunctionSettings<State, Input>
  readonly representation: Representation<State, Stored, Output>
  /** Maximum number of keys with a state, and of timers. */
  readonly maxKeys: number
  /** Called in the place of `event` for a further key. */
  readonly full: FunctionSettings<State, Input>['event']
  /** Called if a function fails. An error that it throws ends the call. */
  readonly failed: (error: ProcessError) => void
}

/** A process whose state and timers are in memory. Synchronous: the output of a call is what it causes. */
export class MemoryProcess<State, Input extends StreamInput, Stored, Output> {
  readonly #settings: MemorySettings<State, Input, Stored, Output>
  readonly #core: ProcessCore<State, Input, Stored, Output>
  readonly #states = new Map<string, Stored>()
  readonly #timers = new Timers()
  readonly #waiting: WaitingTimers
  #clocks = NO_TIME
  #output: Output[] = []

  constructor(settings: MemorySettings<State, Input, Stored, Output>) {
    this.#settings = settings
    this.#core = new ProcessCore(settings.name, settings.functions, settings.representation)
    this.#waiting = new WaitingTimers(settings.functions.lateness)
  }

  /** Processes an entry of a log, whose ticks move the time. Returns the output: first that of timers up to its time, then its own. */
  next(entry: Input): readonly Output[] {
    return this.#process(entry, advanced(this.#clocks, entry, arrivedAt(entry)))
  }

  /** Processes an event that comes now, after all events before it. Returns the output as {@link next} does. */
  arrive(event: Input): readonly Output[] {
    return this.#process(event, arrivedBy(this.#clocks, arrivedAt(event)))
  }

  #process(entry: Input, clocks: Clocks): readonly Output[] {
    const core = this.#core
    let keys: readonly string[] = []
    let failure: unknown
    try {
      keys = core.keysOf(entry)
    } catch (error) {
      failure = error
    }
    this.#fire(clocks, entry)
    if (failure !== undefined) this.#fail(failure)
    if (keys.length === 0) return this.take()
    const occasion = entryOccasion(core.name, entry, core.due(clocks))
    for (const key of keys) {
      const state = this.#states.get(key) ?? null
      const call = state === null && this.#isFull ? this.#settings.full : undefined
      try {
        const running = core.namesRead(entry, key).flatMap((range) => this.#timers.named(key, range))
        this.#apply(key, core.event(occasion, entry, key, state, running, call))
      } catch (error) {
        this.#fail(error)
      }
    }
    return this.take()
  }

  /** Lets the time pass without an event. Returns the output of timers. @param at Unix ms. */
  tick(at: number): readonly Output[] {
    this.#fire(arrivedBy(this.#clocks, at), undefined)
    return this.take()
  }

  /** Fires all timers, since no more events come: first those by event time, then each other one at the time when it is due. */
  end(): readonly Output[] {
    let { recorded } = this.#clocks
    const { complete } = this.#clocks
    for (;;) {
      this.#fire({ event: Infinity, recorded, complete, holds: NO_HOLDS }, undefined)
      const next = this.#timers.first('recorded')
      if (next === undefined) return this.take()
      recorded = Math.max(recorded, next.due)
    }
  }

  /** When the first timer fires if time passes evenly, in Unix ms; undefined for none. */
  get nextDue(): number | undefined {
    const [event, recorded] = [this.#timers.first('event'), this.#timers.first('recorded')]
    const due = Math.min(
      event === undefined ? Infinity : Math.ceil(event.due + this.#settings.functions.lateness),
      recorded?.due ?? Infinity,
    )
    return due === Infinity ? undefined : due
  }

  /** The watermark, in Unix ms; -Infinity before the first event or tick. */
  get watermark(): number {
    return this.#core.due(this.#clocks).event
  }

  /** The states by key. */
  get states(): ReadonlyMap<string, Stored> {
    return this.#states
  }

  /** The output that no call has returned, since it failed. */
  take(): readonly Output[] {
    const output = this.#output
    if (output.length > 0) this.#output = []
    return output
  }

  #fire(clocks: Clocks, entry: ResearchEvent | undefined): void {
    const core = this.#core
    this.#clocks = clocks
    const until = core.due(clocks)
    if (this.#waiting.release(until) !== undefined) this.#timers.restore()
    for (let timer = this.#timers.due(until); timer !== undefined; timer = this.#timers.due(until)) {
      if (this.#waiting.takes(timer, until)) {
        this.#timers.setAside(timer)
        continue
      }
      const { key } = timer
      const occasion = timerOccasion(core.name, timer, until)
      try {
        this.#apply(key, core.timer(occasion, timer, this.#states.get(key) ?? null, entry))
      } catch (error) {
        this.#fail(error)
        this.#apply(key, core.ended(occasion, timer))
      }
    }
  }

  get #isFull(): boolean {
    const { maxKeys } = this.#settings
    return this.#states.size >= maxKeys || this.#timers.size >= maxKeys
  }

  #apply(key: string, { state, timers, outputs }: CallbackEffects<State, Stored, Output>): void {
    if (state === null) this.#states.delete(key)
    else if (state !== undefined) this.#states.set(key, state)
    for (const change of timers) {
      this.#timers.set(change)
      if (this.#waiting.changed(change) !== undefined) this.#timers.restoreKey(change.key)
    }
    if (outputs.length > 0) this.#output.push(...outputs)
  }

  #fail(error: unknown): void {
    if (!(error instanceof ProcessError)) throw error
    this.#settings.failed(error)
  }
}
