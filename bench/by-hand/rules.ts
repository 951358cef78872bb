import type { ResearchEvent } from 'rivulet'
import type { AlertCause } from 'rivulet/rules'

/** A rule that fires while at least `gte` events match within `over` ms. */
export interface CountRule {
  readonly name: string
  readonly type: string
  readonly matches: (event: ResearchEvent) => boolean
  readonly over: number
  readonly gte: number
}

/** An alert that fires or ends. */
export interface CountAlert {
  readonly type: 'alert.firing' | 'alert.resolved'
  readonly rule: string
  /** When it began to fire, in Unix ms. */
  readonly since: number
  /** Number of events in the window. */
  readonly value: number
  /** The latest events. */
  readonly events: readonly AlertCause[]
}

/** Number of events that an alert names. */
const MAX_EVENTS = 20

/** What a rule keeps. */
interface State {
  /** Times of events, in order. Those before `first` have left the window. */
  readonly times: number[]
  first: number
  readonly latest: ResearchEvent[]
  /** When the alert began to fire. */
  since: number | undefined
}

/**
 * Evaluates rules that count events, without Rivulet: what a careful engineer writes by hand for rules of this one kind. Conditions are
 * functions, a window is an array of times, and each event first ends the alerts that were over before it. Events that are not in order
 * are dropped.
 */
export class RulesByHand {
  readonly #onAlert: (alert: CountAlert) => void
  readonly #states: ReadonlyMap<CountRule, State>
  readonly #byType: ReadonlyMap<string, readonly CountRule[]>
  readonly #firing = new Set<CountRule>()

  constructor(rules: readonly CountRule[], onAlert: (alert: CountAlert) => void) {
    this.#onAlert = onAlert
    this.#states = new Map(rules.map((rule) => [rule, { times: [], first: 0, latest: [], since: undefined }]))
    this.#byType = Map.groupBy(rules, ({ type }) => type)
  }

  next(event: ResearchEvent): void {
    const now = Date.parse(event.time ?? event.received)
    for (const rule of this.#firing) this.#resolve(rule, now)
    for (const rule of this.#byType.get(event.type) ?? [])
      if (rule.matches(event)) this.#count(rule, event, now)
  }

  #count(rule: CountRule, event: ResearchEvent, now: number): void {
    const state = this.#states.get(rule)
    if (state === undefined || now < (state.times.at(-1) ?? now)) return
    const { times, latest } = state
    leave(state, now - rule.over)
    times.push(now)
    latest.push(event)
    if (latest.length > MAX_EVENTS) latest.shift()
    if (state.since !== undefined || times.length - state.first < rule.gte) return
    state.since = now
    this.#firing.add(rule)
    this.#alert('alert.firing', rule, state)
  }

  /** Ends the alert if too few events were in its window before this time. */
  #resolve(rule: CountRule, now: number): void {
    const state = this.#states.get(rule)
    const decisive = state?.times.at(-rule.gte)
    if (state === undefined || decisive === undefined || decisive + rule.over > now) return
    leave(state, decisive)
    this.#alert('alert.resolved', rule, state)
    state.since = undefined
    this.#firing.delete(rule)
  }

  #alert(type: CountAlert['type'], rule: CountRule, { times, first, latest, since = 0 }: State): void {
    const events = latest.map(({ source, id, type: kind, time }) => ({ source, id, type: kind, time }))
    this.#onAlert({ type, rule: rule.name, since, value: times.length - first, events })
  }
}

/** The events up to this time leave the window. The array is cut when half of it has left. */
function leave(state: State, until: number): void {
  const { times } = state
  while ((times[state.first] ?? Infinity) <= until) state.first += 1
  if (state.first < times.length / 2) return
  times.splice(0, state.first)
  state.first = 0
}
