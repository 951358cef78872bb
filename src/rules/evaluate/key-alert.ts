import type { AlertData, AlertKnown, AlertResolved } from '../../protocol/alert.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { alertData, dataOf, firedNow, sourceOfRule, unknownOutput } from './alert-data.ts'
import type { AlertOutput, RuleContext } from './context.ts'
import type { Fired, RuleState } from './state.ts'

/** A change of an alert that has a value. */
type AlertChange = 'pending' | 'firing' | 'resolved'

/** How a change of an alert was decided. */
interface Decision {
  /** Default `condition`. */
  readonly reason?: AlertResolved['reason']
  /** Whether all events of its windows were there. The end of an alert says what its beginning said. Default true. */
  readonly isComplete?: boolean
}

/**
 * The alert of a state during one call, and its events. It is inactive, then pending while `trueSince` is there without `fired`, then firing
 * with `fired`, then kept while `falseSince` is there.
 */
export class KeyAlert {
  readonly #name: string
  readonly #state: RuleState
  readonly #context: RuleContext
  /** It became pending during this call, and is pending. */
  #pending: AlertData | undefined
  /** It was pending before this call, and did not fire. */
  #inactive: AlertData | undefined
  /** It was unknown, and is known. */
  #known: AlertKnown | undefined

  constructor(name: string, state: RuleState, context: RuleContext) {
    this.#name = name
    this.#state = state
    this.#context = context
  }

  /** Moves the alert, given its level at a time. The caller gives the result to {@link KeyAlert.change}, with the value. */
  step(
    time: number,
    level: boolean,
    rule: Pick<CompiledRule, 'for' | 'keepFiringFor'>,
  ): AlertChange | undefined {
    const state = this.#state
    if (level) {
      const isNew = state.trueSince === undefined
      state.trueSince ??= time
      delete state.falseSince
      delete state.isExpired
      if (state.fired !== undefined) return undefined
      if (time >= firesAt(state.trueSince, state, rule)) return 'firing'
      return isNew ? 'pending' : undefined
    }
    if (state.trueSince === undefined) return undefined
    if (state.fired === undefined) {
      this.end()
      return undefined
    }
    state.falseSince ??= time
    return time >= state.falseSince + rule.keepFiringFor ? 'resolved' : undefined
  }

  change(
    change: AlertChange,
    rule: CompiledRule,
    value: Fired['value'],
    { reason = 'condition', isComplete = true }: Decision = {},
  ): void {
    const state = this.#state
    const wasComplete = change === 'resolved' ? state.fired?.complete !== false : isComplete
    const now = firedNow(rule, state, value, wasComplete)
    const data = alertData(this.#name, state, now)
    if (change === 'resolved') return this.#resolved({ ...data, reason })
    if (change === 'pending') {
      state.announced = { ...now, since: state.trueSince ?? 0 }
      this.#pending = data
      return
    }
    state.fired = now
    delete state.announced
    this.#pending = undefined
    this.#append({ type: 'alert.firing', source: sourceOfRule(this.#name), data })
  }

  /** It is inactive again. If it was firing, the caller has appended its end. */
  end(): void {
    const state = this.#state
    const { announced, fired, trueSince, unknown } = state
    if (this.#pending !== undefined) this.#pending = undefined
    else if (fired === undefined && trueSince !== undefined && announced?.since === trueSince)
      this.#inactive = alertData(this.#name, state, announced)
    if (unknown === undefined) delete state.announced
    delete state.trueSince
    delete state.fired
    delete state.falseSince
    delete state.isExpired
  }

  /** It is not known whether the condition holds: an alert that fires continues, a pending alert is given up. */
  unknown(rule: CompiledRule, reason: NonNullable<RuleState['unknown']>, since: number): void {
    const state = this.#state
    if (state.fired === undefined) this.end()
    if (state.unknown === reason) return
    state.unknown = reason
    this.#known = undefined
    const output = unknownOutput(rule, reason, state.key ?? {}, since)
    const { group, labels } = output.data
    state.announced = { group, labels, annotations: {}, value: null, since }
    this.#append(output)
  }

  /** It is known whether the condition holds. */
  known(): void {
    const state = this.#state
    if (state.unknown === undefined) return
    const { group, labels } = dataOf(this.#name, state)
    this.#known = { alert: this.#name, group, key: state.key ?? {}, labels }
    delete state.unknown
    delete state.announced
  }

  /** Its rule was removed. */
  remove(): void {
    const { fired } = this.#state
    this.known()
    if (fired === undefined) this.end()
    else this.#resolved({ ...alertData(this.#name, this.#state, fired), reason: 'rule' })
    this.flush()
  }

  /**
   * Appends the changes of an alert that does not fire. Once, at the end of the call: the id of an output has its place among the outputs
   * of its call, and these must not move those that fire and end alerts.
   */
  flush(): void {
    const source = sourceOfRule(this.#name)
    if (this.#inactive !== undefined) this.#append({ type: 'alert.inactive', source, data: this.#inactive })
    if (this.#pending !== undefined) this.#append({ type: 'alert.pending', source, data: this.#pending })
    if (this.#known !== undefined) this.#append({ type: 'alert.known', source, data: this.#known })
  }

  #resolved(data: AlertData & Pick<AlertResolved, 'reason'>): void {
    this.#append({ type: 'alert.resolved', source: sourceOfRule(this.#name), data })
    this.end()
  }

  #append(output: AlertOutput): void {
    this.#context.append(output)
  }
}

/** When an alert fires that began to hold at a time. Its `for` begins again at a gap of the source. */
function firesAt(since: number, { gap = since }: RuleState, rule: Pick<CompiledRule, 'for'>): number {
  return rule.for === 0 ? since : Math.max(since, gap) + rule.for
}

/** When the alert changes without a change of its level; undefined for never. */
export function alertDeadline(
  state: RuleState,
  rule: Pick<CompiledRule, 'for' | 'keepFiringFor'>,
): number | undefined {
  const { trueSince, fired, falseSince } = state
  if (trueSince === undefined) return undefined
  if (fired === undefined) return firesAt(trueSince, state, rule)
  return falseSince === undefined ? undefined : falseSince + rule.keepFiringFor
}
