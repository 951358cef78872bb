import { causeOf, alertData, firedNow, labelsOf, MAX_CAUSES, sourceOfRule } from './alert-data.ts'
import { alertDeadline, end, step } from './alert-state.ts'
import { TIMER } from './context.ts'
import type { RuleContext } from './context.ts'
import { hold, MAX_HELD } from './held.ts'
import { isHeld } from './prepared-rule.ts'
import type { PreparedRule } from './prepared-rule.ts'
import type { Chain, Fact, Outcome, RuleState, WindowState } from './state.ts'
import { VALUE_KEPT } from './windows/changed.ts'

/** Number of identities that a key remembers, and how long, in ms: a fuller revision comes within minutes. */
const MAX_COUNTED = 256
const COUNTED_KEPT = 24 * 3_600_000

/** The time of one key of a rule: its events and its deadlines, in order. */
export class Timeline {
  readonly #prepared: PreparedRule
  readonly #state: RuleState
  readonly #context: RuleContext
  readonly #windows: WindowState[]

  constructor(prepared: PreparedRule, state: RuleState, context: RuleContext) {
    this.#prepared = prepared
    this.#state = state
    this.#context = context
    this.#windows = state.w ??= prepared.windows.map((window) => window.begin())
  }

  /** Whether its events are applied in the order of their times. */
  get #isOrdered(): boolean {
    return this.#prepared.family !== 'match' || isHeld(this.#prepared)
  }

  /** An event came. */
  event(fact: Fact): void {
    const state = this.#state
    if (fact.t < this.#earliest()) {
      this.#late(fact)
    } else if (isHeld(this.#prepared)) {
      const held = (state.h ??= [])
      hold(held, fact)
      const [first] = held
      if (held.length > MAX_HELD && first !== undefined) {
        state.b = (state.b ?? 0) + 1
        this.#advance(first.t)
        if (held[0] === first) this.#applyFirst(held)
      }
    } else {
      this.#advance(fact.t)
      this.#apply(fact)
    }
    this.#store()
  }

  /** A timer of this time fires. */
  timer(due: number): void {
    delete this.#state.d
    this.#advance(due - this.#prepared.rule.lateness)
    this.#store(due)
  }

  /** An earlier event is late. */
  #earliest(): number {
    return this.#state.u ?? -Infinity
  }

  /** Applies held events before this time, and deadlines up to it. */
  #advance(until: number): void {
    const { h: held = [] } = this.#state
    for (;;) {
      const deadline = this.#deadline()
      const [first] = held
      // A deadline comes before the events of its time.
      if (first !== undefined && first.t < until && !(deadline !== undefined && deadline <= first.t))
        this.#applyFirst(held)
      else if (deadline !== undefined && deadline <= until) this.#at(deadline)
      else return
    }
  }

  #applyFirst(held: Fact[]): void {
    const first = held.shift()
    if (first !== undefined) this.#apply(first)
  }

  #apply(fact: Fact): void {
    const { family } = this.#prepared
    const state = this.#state
    const { t: time } = fact
    const { m: matches, r: resolves } = this.#outcome(fact)
    if (matches !== null && !this.#hasCounted(fact)) {
      let isPulse = family === 'match'
      let chain: Chain | undefined
      for (const [index, window] of this.#prepared.windows.entries()) {
        const match = matches[index] ?? null
        const own = this.#windows[index]
        if (match === null || own === undefined) continue
        const pulse = window.apply(own, time, match, fact)
        if (pulse === false) continue
        isPulse = true
        chain = window.takePulse?.(own)
        if (pulse !== true) state.v = pulse.value
      }
      if (isPulse) this.#pulse(time, chain ?? { e: [fact.e], ...(fact.a !== undefined && { a: fact.a }) })
      else if (family === 'hold')
        this.#caused(
          { e: [fact.e], ...(fact.a !== undefined && { a: fact.a }) },
          time + this.#prepared.spanOf(matches),
        )
    }
    if (resolves === 1 && !(state.p !== undefined && state.p > time)) this.#reset()
    if (this.#isOrdered) state.u = Math.max(state.u ?? time, time)
    this.#step(time)
  }

  /** Performs the actions that are due. */
  #at(time: number): void {
    const state = this.#state
    const { windows, rule, family } = this.#prepared
    for (const [index, window] of windows.entries()) {
      const own = this.#windows[index]
      if (own === undefined || !window.at(own, time)) continue
      this.#pulse(time, window.takePulse?.(own) ?? { e: [] })
    }
    if (state.p !== undefined && time >= state.p + rule.resolve.after) {
      delete state.p
      state.x = 1
      // The end of a match is remembered for as long as the match held, so that an older match is late.
      if (family === 'match') this.#keep(time + rule.resolve.after)
    }
    if (state.g !== undefined && time >= state.g) {
      delete state.g
      delete state.c
      delete state.l
    }
    if (this.#isOrdered || state.x === 1) state.u = Math.max(state.u ?? time, time)
    this.#step(time)
    if (state.s === undefined) delete state.x
  }

  /** The level of the rule at this time, and what becomes of the alert. */
  #step(time: number): void {
    const state = this.#state
    const { rule, family } = this.#prepared
    const level =
      family === 'hold'
        ? this.#prepared.windows.every((window, index) => this.#holds(window, index, time))
        : state.p !== undefined
    if (family === 'hold' && state.s === undefined) this.#trimCauses(time)
    const transition = step(state, time, level, rule)
    if (transition === undefined) return
    const value = this.#value(time)
    const fired = firedNow(rule, state, value)
    const data = alertData(rule.name, state, fired)
    const source = sourceOfRule(rule.name)
    if (transition === 'firing') {
      state.f = fired
      this.#context.append({ type: 'alert.firing', source, data })
    } else {
      const reason = state.x === 1 ? 'expired' : 'condition'
      this.#context.append({ type: 'alert.resolved', source, data: { ...data, reason } })
      end(state)
    }
  }

  #holds(window: PreparedRule['windows'][number], index: number, time: number): boolean {
    const own = this.#windows[index]
    return own !== undefined && window.holds(own, time)
  }

  #value(time: number): number | string | null {
    const [window] = this.#prepared.windows
    const [own] = this.#windows
    if (window === undefined || own === undefined) return null
    return window.value(own, time) ?? this.#state.v ?? null
  }

  #pulse(time: number, by: Pick<Chain, 'e' | 'a'>): void {
    const state = this.#state
    // The events of an earlier episode.
    if (state.s === undefined) delete state.e
    this.#caused(by)
    // Matches may come in any order.
    state.p = Math.max(state.p ?? time, time)
  }

  /** @param until When the event leaves its last window. */
  #caused({ e, a }: Pick<Chain, 'e' | 'a'>, until?: number): void {
    const state = this.#state
    pushLast((state.e ??= []), e)
    if (until !== undefined) pushLast((state.i ??= []), [until])
    if (a === undefined) delete state.a
    else state.a = a
  }

  /** Forgets events that are no longer in any window. */
  #trimCauses(time: number): void {
    const { e = [], i: times = [] } = this.#state
    if (times.every((each) => each > time)) return
    const isIn = (_: unknown, index: number) => (times[index] ?? 0) > time
    this.#state.e = e.filter(isIn)
    this.#state.i = times.filter(isIn)
  }

  #reset(): void {
    const state = this.#state
    delete state.p
    // They are in no window, whatever their time.
    if (state.i !== undefined) state.i = state.i.map(() => Number.MIN_SAFE_INTEGER)
    for (const [index, window] of this.#prepared.windows.entries()) {
      const own = this.#windows[index]
      if (own !== undefined) window.reset(own)
    }
  }

  /** The result of evaluating the event, now that the event before it is known. */
  #outcome(fact: Fact): Outcome {
    const state = this.#state
    let combination = 0
    if (fact.l !== undefined) {
      const last = state.l ?? []
      for (const [index, hash] of fact.l.entries()) {
        const before = last[index] ?? null
        if (hash !== null && before !== null && hash !== before) combination |= 1 << index
      }
      state.l = fact.l.map((hash, index) => hash ?? last[index] ?? null)
      this.#keep(fact.t + VALUE_KEPT)
    }
    return fact.o[combination] ?? { m: null }
  }

  /** Whether an earlier revision of the event counted. If not, this one does. */
  #hasCounted({ c: identity, t }: Fact): boolean {
    if (identity === undefined) return false
    const counted = (this.#state.c ??= [])
    if (counted.includes(identity)) return true
    counted.push(identity)
    if (counted.length > MAX_COUNTED) counted.shift()
    this.#keep(t + COUNTED_KEPT)
    return false
  }

  #keep(until: number): void {
    this.#state.g = Math.max(this.#state.g ?? until, until)
  }

  #late({ e, t, o }: Fact): void {
    if (o.every(({ m }) => m === null)) return
    const state = this.#state
    const { rule } = this.#prepared
    state.n = (state.n ?? 0) + 1
    const { k: key = {} } = state
    const by = this.#earliest() - t
    const { name, group } = rule
    const data = { alert: name, group, key, labels: labelsOf(rule, key), event: causeOf(e), by }
    this.#context.append({ type: 'alert.late', source: sourceOfRule(name), data })
  }

  /** When the next thing changes without an event. */
  #deadline(): number | undefined {
    const state = this.#state
    const { rule, windows } = this.#prepared
    const now = this.#earliest()
    let next = alertDeadline(state, rule) ?? Infinity
    if (state.p !== undefined) next = Math.min(next, state.p + rule.resolve.after)
    if (state.g !== undefined) next = Math.min(next, state.g)
    for (const [index, window] of windows.entries()) {
      const own = this.#windows[index]
      if (own !== undefined) next = Math.min(next, window.deadline(own, now) ?? Infinity)
    }
    return next === Infinity ? undefined : next
  }

  /** Stores the state and starts its timer, or removes both. */
  #store(fired = -Infinity): void {
    const state = this.#state
    const context = this.#context
    const { lateness } = this.#prepared.rule
    const [first] = state.h ?? []
    if (first === undefined) delete state.h
    if (first === undefined && this.#isIdle()) {
      if (state.d !== undefined) context.cancel(TIMER)
      return context.set(null)
    }
    const deadline = this.#deadline()
    const due = Math.min(
      deadline === undefined ? Infinity : deadline + lateness,
      first === undefined ? Infinity : first.t + lateness + 1,
    )
    // A timer that is too early is moved when it fires.
    if (due !== Infinity && (state.d === undefined || due < state.d)) {
      state.d = Math.max(Math.ceil(due), fired + 1)
      context.timer(TIMER, state.d, { clock: 'event' })
    }
    context.set(state)
  }

  #isIdle(): boolean {
    const { s, p, g } = this.#state
    if (s !== undefined || p !== undefined || g !== undefined) return false
    return this.#prepared.windows.every((window, index) => {
      const own = this.#windows[index]
      return own === undefined || window.isEmpty(own)
    })
  }
}

/** Adds items, and keeps the last ones. */
function pushLast<Item>(list: Item[], items: readonly Item[]): void {
  list.push(...items)
  while (list.length > MAX_CAUSES) list.shift()
}
