import { rfc3339 } from '../../protocol/timestamp.ts'
import { causeOf, labelsOf, MAX_CAUSES, sourceOfRule } from './alert-data.ts'
import { INCOMPLETE_INTERVAL, LATE_TIMER, TIMER } from './context.ts'
import type { RuleContext } from './context.ts'
import type { RuleInput } from './event-time.ts'
import { holdEvent } from './held-event.ts'
import { alertDeadline, KeyAlert } from './key-alert.ts'
import { isHeld } from './prepared-rule.ts'
import type { PreparedRule } from './prepared-rule.ts'
import type { Contribution, MatchedEvent, MatchResult, RuleState, WindowState } from './state.ts'
import { VALUE_KEPT } from './windows/changed.ts'
import type { WindowKind } from './windows/window.ts'

/** Number of identities that a key remembers, and how long, in ms: a fuller revision comes within minutes. */
const MAX_COUNTED = 256
const COUNTED_KEPT = 24 * 3_600_000

/** How long the late events of a key are counted before they are reported, in ms. */
const LATE_INTERVAL = 60_000

/**
 * The time of one key of a rule: its events and its deadlines, in order. An event that waits has a timer of its own, and the deadlines of
 * the key have one. What a timer evaluates ends at its due time: so results do not depend on how often time moves.
 */
export class Timeline {
  readonly #prepared: PreparedRule
  readonly #state: RuleState
  readonly #context: RuleContext
  readonly #alert: KeyAlert
  readonly #windows: readonly (readonly [WindowKind, WindowState])[]

  constructor(prepared: PreparedRule, state: RuleState, context: RuleContext) {
    this.#prepared = prepared
    this.#state = state
    this.#context = context
    this.#alert = new KeyAlert(prepared.rule.name, state, context)
    const windows = (state.windows ??= [])
    this.#windows = prepared.windows.map((window, index) => [window, (windows[index] ??= { times: [] })])
  }

  /** Whether its events are applied in the order of their times. */
  get #isOrdered(): boolean {
    return this.#prepared.family !== 'match' || isHeld(this.#prepared)
  }

  /** Whether the event waits, since one that comes later may be before it. */
  #isHeld({ time }: MatchedEvent): boolean {
    if (isHeld(this.#prepared)) return true
    return this.#isOrdered && time > this.#context.now('event')
  }

  /** An event came. */
  event(event: MatchedEvent, entry: RuleInput): void {
    if (event.time < this.#earliest()) this.#late(event)
    else if (this.#isHeld(event)) {
      const { key = {} } = this.#state
      // A state that has nothing else is not stored.
      return holdEvent(entry, { key, event }, event.time + this.#prepared.rule.lateness + 1, this.#context)
    } else this.#take(event)
    this.#store()
  }

  /** A timer of this time fires. @param held The event that has waited for it; undefined for the timer of the deadlines. */
  timer(due: number, held?: MatchedEvent): void {
    if (held !== undefined) this.#take(held)
    else {
      delete this.#state.due
      this.#advance(due - this.#prepared.rule.lateness)
    }
    this.#store(due)
  }

  /**
   * The service no longer has events of the source that were before this time. It counts at once, not in the order of time: what is
   * decided later about an earlier time may need these events too.
   */
  gap(time: number): void {
    const state = this.#state
    state.gap = Math.max(state.gap ?? time, time)
    if (this.#giveUp() || state.undecidedUntil !== undefined) this.#unknown(state.gap, 'gap')
    this.#store()
  }

  /** Reports the late events since the last report. */
  reportLate(): void {
    const { late, key = {} } = this.#state
    if (late === undefined) return
    delete this.#state.late
    const { rule } = this.#prepared
    const { name, group } = rule
    const { first, since, count, by } = late
    const events = { event: causeOf(first), count, by, since: rfc3339(since) }
    const data = { alert: name, group, key, labels: labelsOf(rule, key), ...events }
    this.#context.append({ type: 'alert.late', source: sourceOfRule(name), data })
    this.#store()
  }

  /** An earlier event is late. */
  #earliest(): number {
    return this.#state.evaluatedUntil ?? -Infinity
  }

  /** Applies an event. The deadlines of its time come before it. */
  #take(event: MatchedEvent): void {
    this.#advance(event.time)
    this.#apply(event)
  }

  /** Performs the deadlines up to this time. */
  #advance(until: number): void {
    for (;;) {
      const deadline = this.#deadline()
      if (deadline === undefined || deadline > until) return
      this.#at(deadline)
    }
  }

  #apply(event: MatchedEvent): void {
    const { family } = this.#prepared
    const state = this.#state
    const { time, cause, annotationParts } = event
    const { matches, resolves } = this.#resultOf(event)
    if (matches !== null && !this.#hasCounted(event)) {
      let isPulse = family === 'match'
      let contribution: Contribution = {
        causes: [cause],
        ...(annotationParts !== undefined && { annotationParts }),
      }
      for (const [index, [window, own]] of this.#windows.entries()) {
        const match = matches[index] ?? null
        if (match === null) continue
        const pulse = window.apply(own, time, match, event)
        if (pulse === false) continue
        isPulse = true
        contribution = window.takePulse?.(own) ?? contribution
        if (pulse !== true) state.lastValue = pulse.value
      }
      if (isPulse) this.#pulse(time, contribution)
      else if (family === 'hold') this.#caused(contribution, time + this.#prepared.spanOf(matches))
    }
    if (resolves === true && !(state.lastPulse !== undefined && state.lastPulse > time)) this.#reset()
    if (this.#isOrdered) state.evaluatedUntil = Math.max(state.evaluatedUntil ?? time, time)
    this.#step(time)
    if (state.gap !== undefined && time < state.gap && this.#giveUp()) this.#unknown(state.gap, 'gap')
  }

  /** Gives up the sequences that wait for `not_then`. Returns whether there were any. */
  #giveUp(): boolean {
    let isAny = false
    for (const [window, own] of this.#windows) if (window.giveUp?.(own) === true) isAny = true
    return isAny
  }

  /** When the last gap no longer matters: for no window, and for no `for` that it began again. */
  #gapEnds(): number | undefined {
    const { gap } = this.#state
    const { reach, rule } = this.#prepared
    return gap === undefined ? undefined : gap + Math.max(reach, rule.for)
  }

  /** Whether no event that the windows count at this time may be missing. */
  #isComplete(time: number): boolean {
    const { reach } = this.#prepared
    if (this.#windows.length === 0) return true
    const { gap = -Infinity } = this.#state
    if (this.#windows.some(([window, own]) => window.isComplete?.(own, time) === false)) return false
    return this.#context.complete && (reach === 0 || gap <= time - reach)
  }

  /** Performs the actions that are due. */
  #at(time: number): void {
    const state = this.#state
    const { rule, family } = this.#prepared
    const { complete } = this.#context
    let isUnknown = !complete && state.undecidedUntil !== undefined && time >= state.undecidedUntil
    for (const [window, own] of this.#windows) {
      if (!window.at(own, time)) continue
      const contribution = window.takePulse?.(own) ?? { causes: [] }
      // The event that `not_then` excludes may be missing.
      if (complete) this.#pulse(time, contribution)
      else isUnknown = true
    }
    if (isUnknown) this.#unknown(time, 'incomplete')
    if (time >= (this.#gapEnds() ?? Infinity)) delete state.gap
    if (state.lastPulse !== undefined && time >= state.lastPulse + rule.resolve.after) {
      delete state.lastPulse
      state.isExpired = true
      // The end of a match is remembered for as long as the match held, so that an older match is late.
      if (family === 'match') this.#keep(time + rule.resolve.after)
    }
    if (state.keptUntil !== undefined && time >= state.keptUntil) {
      delete state.keptUntil
      delete state.counted
      delete state.previousHashes
    }
    if (this.#isOrdered || state.isExpired === true)
      state.evaluatedUntil = Math.max(state.evaluatedUntil ?? time, time)
    this.#step(time, complete)
    if (state.trueSince === undefined) delete state.isExpired
  }

  /**
   * The level of the rule at this time, and what the alert does then.
   *
   * @param isCertain False if events that are missing may be the reason: then the alert neither fires nor ends.
   */
  #step(time: number, isCertain = true): void {
    const state = this.#state
    const { rule, family } = this.#prepared
    const isMissing = !this.#context.complete || time < (state.gap ?? -Infinity)
    if (!isMissing && state.undecidedUntil !== undefined) {
      delete state.undecidedUntil
      this.#alert.known()
    }
    const level =
      family === 'hold'
        ? this.#windows.every(([window, own]) => window.holds?.(own, time) === true)
        : state.lastPulse !== undefined
    if (family === 'hold' && state.trueSince === undefined) this.#trimCauses(time)
    // Its `for` begins when it is decided again.
    if (state.undecidedUntil !== undefined && state.fired === undefined && rule.for > 0) return
    const change = this.#alert.step(time, level, rule)
    if (change === undefined) return
    if (!isCertain && change !== 'pending') return this.#unknown(time, 'incomplete')
    const reason = state.isExpired === true ? 'expired' : 'condition'
    this.#alert.change(change, rule, this.#value(time), { reason, isComplete: this.#isComplete(time) })
  }

  /** Events up to this time may be missing. */
  #unknown(time: number, reason: 'gap' | 'incomplete'): void {
    const { gap = time, unknown } = this.#state
    this.#state.undecidedUntil = Math.max(time, gap) + INCOMPLETE_INTERVAL
    if (unknown === undefined) this.#alert.unknown(this.#prepared.rule, reason, time)
  }

  #value(time: number): number | string | null {
    const [first] = this.#windows
    if (first === undefined) return null
    const [window, own] = first
    return window.value?.(own, time) ?? this.#state.lastValue ?? null
  }

  #pulse(time: number, by: Contribution): void {
    const state = this.#state
    // The events of an earlier episode.
    if (state.trueSince === undefined) delete state.causes
    this.#caused(by)
    // Matches may come in any order.
    state.lastPulse = Math.max(state.lastPulse ?? time, time)
  }

  /** @param until When the event leaves its last window. */
  #caused({ causes, annotationParts }: Contribution, until?: number): void {
    const state = this.#state
    pushLast((state.causes ??= []), causes)
    if (until !== undefined) pushLast((state.causesEndAt ??= []), [until])
    if (annotationParts === undefined) delete state.annotationParts
    else state.annotationParts = annotationParts
  }

  /** Forgets events that are no longer in any window. */
  #trimCauses(time: number): void {
    const { causes = [], causesEndAt = [] } = this.#state
    if (causesEndAt.every((each) => each > time)) return
    const isIn = (_: unknown, index: number) => (causesEndAt[index] ?? 0) > time
    this.#state.causes = causes.filter(isIn)
    this.#state.causesEndAt = causesEndAt.filter(isIn)
  }

  #reset(): void {
    const state = this.#state
    delete state.lastPulse
    // They are in no window, whatever their time.
    if (state.causesEndAt !== undefined)
      state.causesEndAt = state.causesEndAt.map(() => Number.MIN_SAFE_INTEGER)
    for (const [window, own] of this.#windows) window.reset?.(own)
  }

  /** The result of evaluating the event, now that the event before it is known. */
  #resultOf(event: MatchedEvent): MatchResult {
    const state = this.#state
    let combination = 0
    if (event.watchedHashes !== undefined) {
      const last = state.previousHashes ?? []
      for (const [index, hash] of event.watchedHashes.entries()) {
        const before = last[index] ?? null
        if (hash !== null && before !== null && hash !== before) combination |= 1 << index
      }
      state.previousHashes = event.watchedHashes.map((hash, index) => hash ?? last[index] ?? null)
      this.#keep(event.time + VALUE_KEPT)
    }
    return event.results[combination] ?? { matches: null }
  }

  /** Whether an earlier revision of the event counted. If not, this one does. */
  #hasCounted({ identity, time }: MatchedEvent): boolean {
    if (identity === undefined) return false
    const counted = (this.#state.counted ??= [])
    if (counted.includes(identity)) return true
    counted.push(identity)
    if (counted.length > MAX_COUNTED) counted.shift()
    this.#keep(time + COUNTED_KEPT)
    return false
  }

  #keep(until: number): void {
    this.#state.keptUntil = Math.max(this.#state.keptUntil ?? until, until)
  }

  #late({ cause, time, results }: MatchedEvent): void {
    if (results.every(({ matches }) => matches === null)) return
    const state = this.#state
    state.lateEvents = (state.lateEvents ?? 0) + 1
    const since = this.#context.now()
    // An outage makes many of them.
    if (state.late === undefined) this.#context.timer(LATE_TIMER, since + LATE_INTERVAL)
    const late = (state.late ??= { first: cause, since, count: 0, by: 0 })
    late.count++
    late.by = Math.max(late.by, this.#earliest() - time)
  }

  /** When the next thing changes without an event. */
  #deadline(): number | undefined {
    const state = this.#state
    const { rule } = this.#prepared
    const now = this.#earliest()
    let next = state.undecidedUntil ?? alertDeadline(state, rule) ?? Infinity
    if (state.lastPulse !== undefined) next = Math.min(next, state.lastPulse + rule.resolve.after)
    if (state.keptUntil !== undefined) next = Math.min(next, state.keptUntil)
    next = Math.min(next, this.#gapEnds() ?? Infinity)
    for (const [window, own] of this.#windows) next = Math.min(next, window.deadline(own, now) ?? Infinity)
    return next === Infinity ? undefined : next
  }

  /** Stores the state and starts its timer, or removes both. */
  #store(fired = -Infinity): void {
    const state = this.#state
    const context = this.#context
    const { lateness } = this.#prepared.rule
    this.#alert.flush()
    if (this.#isIdle()) {
      if (state.due !== undefined) context.cancel(TIMER)
      return context.set(null)
    }
    const deadline = this.#deadline()
    // A timer that is too early is moved when it fires.
    if (deadline !== undefined && (state.due === undefined || deadline + lateness < state.due)) {
      state.due = Math.max(Math.ceil(deadline + lateness), fired + 1)
      context.timer(TIMER, state.due, { clock: 'event' })
    }
    context.set(state)
  }

  #isIdle(): boolean {
    const { trueSince, lastPulse, keptUntil, late, undecidedUntil, gap } = this.#state
    for (const each of [trueSince, lastPulse, keptUntil, late, undecidedUntil, gap])
      if (each !== undefined) return false
    return this.#windows.every(([window, own]) => window.isEmpty?.(own) ?? own.times.length === 0)
  }
}

/** Adds items, and keeps the last ones. */
function pushLast<Item>(list: Item[], items: readonly Item[]): void {
  list.push(...items)
  while (list.length > MAX_CAUSES) list.shift()
}
