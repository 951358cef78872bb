import { chainOf, outputId } from '../../log/process/output-id.ts'
import type { Cause, EventOf } from '../../protocol/event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { unknownOutput } from './alert-data.ts'
import type { AlertOutputType, RuleContext } from './context.ts'
import { arrivedAt, eventTime } from './event-time.ts'
import type { RuleInput } from './event-time.ts'
import { ruleOfKey } from './key.ts'
import { ruleProgram } from './program.ts'
import type { RuleProgram, ViewOf } from './program.ts'
import type { RuleState } from './state.ts'
import { Timers } from './timers.ts'
import type { MemoryTimer } from './timers.ts'

/** An event that rules emit. */
export type AlertEvent = { [Type in AlertOutputType]: EventOf<Type> }[AlertOutputType]

/** The state of {@link InMemoryRules}, as JSON. */
export interface MemorySnapshot {
  readonly states: readonly (readonly [key: string, state: RuleState])[]
  readonly timers: readonly MemoryTimer[]
  /** Null before the first event. */
  readonly clocks: { readonly event: number | null; readonly recorded: number | null }
}

/** Settings of {@link InMemoryRules}. */
export interface MemoryOptions {
  /** Maximum number of keys of all rules together. Events of further keys are not evaluated. Default 100,000. */
  readonly maxKeys?: number
  /** The state of an earlier run, from which this one continues. */
  readonly from?: MemorySnapshot
}

/** The name of the process in what rules emit without a log. */
const PROCESS = 'rules'

/** Evaluates rules in memory, synchronously: with the same alerts, ids and order as the process `rules` over a log with the same entries. */
export class InMemoryRules {
  readonly #program: RuleProgram
  readonly #rules: readonly CompiledRule[]
  readonly #maxKeys: number
  readonly #states: Map<string, RuleState>
  readonly #timers = new Timers()
  readonly #crowded = new Set<string>()
  #event = -Infinity
  #recorded = -Infinity
  #output: AlertEvent[] = []
  #unwatched = 0

  constructor(
    rules: readonly CompiledRule[],
    viewOf: ViewOf,
    { maxKeys = 100_000, from }: MemoryOptions = {},
  ) {
    this.#program = ruleProgram(rules, viewOf)
    this.#rules = rules
    this.#maxKeys = maxKeys
    this.#states = new Map(from?.states)
    for (const { name } of rules) this.#program.resume(this.#states.get(name) ?? {})
    for (const timer of from?.timers ?? []) this.#timers.set(timer)
    this.#event = from?.clocks.event ?? -Infinity
    this.#recorded = from?.clocks.recorded ?? -Infinity
  }

  /**
   * Evaluates an event. Returns the events that it causes: first those of deadlines up to its time, then its own.
   *
   * @param event With `recorded`, when it came, in Unix ms; default: its `received`.
   */
  next(event: RuleInput): readonly AlertEvent[] {
    const recorded = Math.max(this.#recorded, arrivedAt(event))
    const at = Math.max(this.#event, Math.min(eventTime(event), recorded))
    const keys = this.#program.keys(event)
    this.#fire(at, recorded)
    if (keys !== undefined) for (const key of keys.length > 1 ? keys.toSorted() : keys) this.#run(event, key)
    return this.#taken()
  }

  /** Moves the time, as a `log.tick` does. Returns the emitted events. @param at Unix ms. */
  tick(at: number): readonly AlertEvent[] {
    this.#fire(Math.max(this.#event, at), Math.max(this.#recorded, at))
    return this.#taken()
  }

  /** When the first deadline is due, in Unix ms; undefined for none. */
  get nextDue(): number | undefined {
    return this.#timers.firstDue
  }

  /** The states by key. */
  get states(): ReadonlyMap<string, RuleState> {
    return this.#states
  }

  /** Number of events of keys that are not watched, since there are too many. */
  get unwatched(): number {
    return this.#unwatched
  }

  /** The current state. It is not a copy: make JSON of it at once. */
  snapshot(): MemorySnapshot {
    const finite = (time: number) => (time === -Infinity ? null : time)
    return {
      states: [...this.#states],
      timers: this.#timers.all(),
      clocks: { event: finite(this.#event), recorded: finite(this.#recorded) },
    }
  }

  #fire(event: number, recorded: number): void {
    this.#event = event
    this.#recorded = recorded
    const until = { event, recorded }
    for (let timer = this.#timers.take(until); timer !== undefined; timer = this.#timers.take(until)) {
      const { key, name, due, cause, chain } = timer
      const at = { process: PROCESS, ...cause, timer: name, due }
      const context = this.#context(key, at, rfc3339(due), chainOf(timer, chain))
      this.#program.timer(this.#stateOf(key), due, context, name)
    }
  }

  #run(event: RuleInput, key: string): void {
    if (!this.#states.has(key) && this.#states.size >= this.#maxKeys) return this.#crowd(event, key)
    const { source, id, revision = 1, time } = event
    const hops = (event.cause?.hops ?? 0) + 1
    const context = this.#context(key, { process: PROCESS, source, id, revision, hops }, time)
    this.#program.event(this.#stateOf(key), event, context)
  }

  #stateOf(key: string): RuleState {
    return this.#states.get(key) ?? this.#program.init(key)
  }

  /** Counts an event of a further key when there are too many keys. Reports it once for each rule. */
  #crowd({ source, id, revision = 1, time }: RuleInput, key: string): void {
    this.#unwatched++
    const { name } = ruleOfKey(key)
    const rule = this.#rules.find((each) => each.name === name)
    if (rule === undefined || this.#crowded.has(name)) return
    this.#crowded.add(name)
    const context = this.#context(key, { process: PROCESS, source, id, revision, hops: 1 }, time)
    context.append(unknownOutput(rule, 'keys', {}, this.#recorded))
  }

  #context(key: string, cause: Cause, time: string | null, chain?: string): RuleContext {
    const { process: _process, timer: _timer, due: _due, ...origin } = cause
    let count = 0
    return {
      key,
      now: (clock) => (clock === 'event' ? this.#event : this.#recorded),
      set: (state) => {
        if (state === null) this.#states.delete(key)
        else this.#states.set(key, state)
      },
      timer: (name, due, options) =>
        this.#timers.set({
          key,
          name,
          due: Math.ceil(due),
          clock: options?.clock ?? 'recorded',
          cause: origin,
          chain: chain ?? null,
        }),
      cancel: (name) => this.#timers.cancel({ key, name }),
      append: (output) => {
        const id = outputId(cause, chain, key, count)
        const received = rfc3339(this.#recorded)
        this.#output.push({ id, ...output, time, received, via: 'process', cause })
        count++
      },
    }
  }

  #taken(): readonly AlertEvent[] {
    const output = this.#output
    if (output.length > 0) this.#output = []
    return output
  }
}
