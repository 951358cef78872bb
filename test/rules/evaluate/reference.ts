/**
 * Evaluates a rule over all of its events by the definitions, in the most obvious way: at each ms, from all events before. Shares no code
 * with the engine.
 */
import { AGGREGATES, numberOf } from './plain-rule.ts'
import type { Condition, PlainRule, PlainWindow, Sample } from './plain-rule.ts'

/** What became of an alert. Times in ms after the base. */
export interface Transition {
  readonly type: 'firing' | 'resolved' | 'unknown'
  readonly key: string
  readonly since: number
  readonly reason?: string
  readonly value?: number | string | null
  readonly events?: readonly string[]
}

type Aggregate = PlainWindow & { readonly kind: (typeof AGGREGATES)[number] }

/** An event where the rule has placed it, with what it is for the rule. */
interface Placed {
  readonly sample: Sample
  readonly t: number
  /** For each window, whether it matches. Null where the rule does not. */
  readonly matches: readonly (boolean | number)[] | null
  readonly resolves: boolean
}

/** The transitions of each key, in order. `arrived` is in the order of recording. `end`: up to here, in ms. */
export function reference(rule: PlainRule, arrived: readonly Sample[], end: number): readonly Transition[] {
  const keys = new Map<string, Sample[]>()
  for (const sample of arrived) {
    if (rule.backfill === 'ignore' && sample.backfill !== 'no') continue
    const { key } = sample.fields
    if (rule.isKeyed && key === null) continue
    const parts = [...(rule.isKeyed ? [key] : []), ...(rule.isPerEvent ? [sample.id, sample.source] : [])]
    const text = JSON.stringify(parts)
    keys.set(text, [...(keys.get(text) ?? []), sample])
  }
  return [...keys].flatMap(([key, samples]) => new OneKey(rule, key, samples).run(end))
}

/** One key of a rule without absence. */
class OneKey {
  readonly #rule: PlainRule
  readonly #key: string
  readonly #samples: readonly Sample[]
  readonly #applied: Placed[] = []
  /** Pulses: when, by which events, and how many events had been applied. */
  #pulses: { t: number; events: readonly string[]; applied: number; value: string | null }[] = []
  /** How many events had been applied when a resolving one was the last of them. */
  #resolved = 0
  /** How many events had been applied when a sequence was complete. */
  #completed = 0
  #pending: { t: number; events: readonly string[] } | undefined
  #alert:
    | {
        since: number
        fired: boolean
        quiet?: number
        reason?: string
        from: number
        causes: readonly string[]
        pulsesFrom: number
      }
    | undefined
  readonly #out: Transition[] = []

  constructor(rule: PlainRule, key: string, samples: readonly Sample[]) {
    this.#rule = rule
    this.#key = key
    const compare = (a: string, b: string) => (a === b ? 0 : a < b ? -1 : 1)
    this.#samples =
      rule.lateness === 0
        ? samples
        : samples.toSorted((a, b) => a.at - b.at || compare(a.source, b.source) || compare(a.id, b.id))
  }

  run(end: number): readonly Transition[] {
    for (let t = 0; t <= end; t++) {
      this.#deadlines(t)
      this.#judge(t)
      for (const sample of this.#samples) {
        if (sample.at !== t) continue
        this.#apply(sample, t)
        this.#judge(t)
      }
    }
    return this.#out
  }

  #deadlines(t: number): void {
    const [window] = this.#rule.windows
    if (window?.kind !== 'sequence' || this.#pending === undefined) return
    if (this.#pending.t + window.within === t) {
      this.#pulse(t, this.#pending.events)
      this.#pending = undefined
    }
  }

  #pulse(t: number, events: readonly string[], value: string | null = null): void {
    this.#pulses.push({ t, events, applied: this.#applied.length, value })
  }

  #apply(sample: Sample, t: number): void {
    const { when, windows, resolveWhen } = this.#rule
    const before = this.#samples.slice(0, this.#samples.indexOf(sample))
    const last = before.findLast(({ fields }) => fields.value !== null)?.fields.value ?? null
    const holds = ({ bit, changed = false }: Condition) => {
      const { bits, value } = sample.fields
      return (
        Math.floor(bits / 2 ** bit) % 2 === 1 &&
        (!changed || (value !== null && last !== null && value !== last))
      )
    }
    const isIn = (window: PlainWindow): boolean | number => {
      if (window.kind === 'absence') return true
      if (window.kind === 'sequence') {
        const all = [...window.steps, ...(window.notThen === null ? [] : [window.notThen])]
        return all.reduce((bits, step, index) => bits + (holds(step) ? 2 ** index : 0), 0)
      }
      if (window.when !== null && !holds(window.when)) return false
      if (window.kind === 'changed') return sample.fields.value !== null
      if (AGGREGATES.some((kind) => kind === window.kind)) return numberOf(sample.fields) !== null
      return (window.kind !== 'distinct' && window.kind !== 'new') || sample.fields.values.length > 0
    }
    const all = when === null || holds(when) ? windows.map(isIn) : null
    const isNone = all !== null && all.length > 0 && all.every((each) => each === false || each === 0)
    const resolves = resolveWhen !== null && holds(resolveWhen)
    const hasCounted =
      sample.type === 'task_run.state' &&
      this.#applied.some(
        (each) =>
          each.matches !== null && each.sample.id === sample.id && each.sample.source === sample.source,
      )
    const matches = isNone || hasCounted ? null : all
    this.#applied.push({ sample, t, matches, resolves })
    if (matches !== null) this.#pulsesOf(t, sample)
    if (resolves) {
      this.#resolved = this.#applied.length
      this.#pending = undefined
    }
  }

  #pulsesOf(t: number, sample: Sample): void {
    const [window] = this.#rule.windows
    const { value } = sample.fields
    if (window === undefined) return this.#pulse(t, [sample.id])
    const before = this.#applied.slice(0, -1).filter(({ matches }) => matches?.[0] === true)
    if (window.kind === 'new') {
      const within = before.filter((each) => each.t >= t - window.within)
      const known = new Set(within.flatMap((each) => each.sample.fields.values))
      const fresh = new Set(sample.fields.values.filter((each) => !known.has(each)))
      if (fresh.size > 0) this.#pulse(t, [sample.id], [...fresh].join(', '))
    } else if (window.kind === 'changed') {
      const last = before.at(-1)
      if (last !== undefined && last.sample.fields.value !== value) this.#pulse(t, [sample.id], String(value))
    } else if (window.kind === 'sequence') this.#sequence(window, t)
  }

  #sequence(window: PlainWindow & { readonly kind: 'sequence' }, t: number): void {
    const bitsOf = (each: Placed | undefined) => Number(each?.matches?.[0] ?? 0)
    const has = (each: Placed | undefined, step: number) => Math.floor(bitsOf(each) / 2 ** step) % 2 === 1
    if (window.notThen !== null && has(this.#applied.at(-1), window.steps.length)) this.#pending = undefined
    const from = Math.max(this.#completed, this.#resolved)
    /** All ways to the last event, as places of events. */
    const ways = (step: number, at: number): number[][] => {
      if (at < from || !has(this.#applied[at], step)) return []
      if (step === 0) return [[at]]
      const all: number[][] = []
      for (let earlier = at - 1; earlier >= from; earlier--)
        for (const way of ways(step - 1, earlier)) all.push([...way, at])
      return all
    }
    const complete = ways(window.steps.length - 1, this.#applied.length - 1).filter(
      ([first = 0]) => t - (this.#applied[first]?.t ?? 0) <= window.within,
    )
    // The latest events, beginning with the last step.
    const [best] = complete.toSorted((a, b) => {
      for (let step = a.length - 1; step >= 0; step--) {
        const difference = (b[step] ?? 0) - (a[step] ?? 0)
        if (difference !== 0) return difference
      }
      return 0
    })
    if (best === undefined) return
    this.#completed = this.#applied.length
    const events = best.map((at) => this.#applied[at]?.sample.id ?? '')
    if (window.notThen === null) this.#pulse(t, events)
    else this.#pending ??= { t, events }
  }

  /** Events that are in a window now. */
  #within(index: number, from: number, to: number): readonly Placed[] {
    return this.#applied
      .slice(this.#resolved)
      .filter(({ t, matches }) => matches?.[index] === true && t > from && t <= to)
  }

  #measure(
    window: PlainWindow,
    index: number,
    now: number,
  ): { readonly holds: boolean; readonly value: number | null } {
    switch (window.kind) {
      case 'count': {
        const value = this.#within(index, now - window.over, now).length
        return { value, holds: value >= window.gte }
      }
      case 'rate': {
        const { length } = this.#within(index, now - window.over, now)
        return {
          value: (length * window.per) / window.over,
          holds: length * window.per >= window.gte * window.over,
        }
      }
      case 'distinct': {
        const events = this.#within(index, now - window.over, now)
        const value = new Set(events.flatMap(({ sample }) => sample.fields.values)).size
        return { value, holds: value >= window.gte }
      }
      case 'spike': {
        const value = this.#within(index, now - window.over, now).length
        const before = this.#within(index, now - 2 * window.over, now - window.over).length
        return { value, holds: value >= window.min && value >= window.factor * before }
      }
      case 'sum':
      case 'avg':
      case 'min':
      case 'max':
      case 'percentile': {
        const events = this.#within(index, now - window.over, now)
        const value = aggregateOf(
          window,
          events.map(({ sample }) => numberOf(sample.fields) ?? NaN),
        )
        const { gte, lte } = window
        const isBelow = value !== null && gte !== null && value < gte
        const isAbove = value !== null && lte !== null && value > lte
        return { value, holds: value !== null && !isBelow && !isAbove }
      }
      default:
        return { holds: false, value: null }
    }
  }

  #judge(now: number): void {
    const { windows, after } = this.#rule
    const isHold = windows.some(({ kind }) =>
      ['count', 'rate', 'distinct', 'spike', ...AGGREGATES].includes(kind),
    )
    const measured = windows.map((window, index) => this.#measure(window, index, now))
    const pulse = this.#pulses.at(-1)
    const isOver = pulse !== undefined && this.#isResolved(pulse)
    const level = isHold
      ? measured.every(({ holds }) => holds)
      : pulse !== undefined && !isOver && now < pulse.t + after
    const value = isHold ? (measured[0]?.value ?? null) : (pulse?.value ?? null)
    if (level) {
      this.#alert ??= {
        since: now,
        fired: false,
        from: this.#applied.length,
        causes: this.#inWindows(now),
        pulsesFrom: this.#pulses.length - 1,
      }
      delete this.#alert.quiet
      if (!this.#alert.fired && now - this.#alert.since >= this.#rule.for) {
        this.#alert.fired = true
        this.#say('firing', isHold, value)
      }
    } else if (this.#alert?.fired === false) this.#alert = undefined
    else if (this.#alert !== undefined) {
      if (this.#alert.quiet === undefined) {
        this.#alert.quiet = now
        this.#alert.reason = isHold || isOver ? 'condition' : 'expired'
      }
      if (now - this.#alert.quiet >= this.#rule.keepFiringFor) {
        this.#say('resolved', isHold, value, this.#alert.reason)
        this.#alert = undefined
      }
    }
  }

  /** Whether a resolving event came after it, or was it. */
  #isResolved({ applied }: { readonly applied: number }): boolean {
    const [window] = this.#rule.windows
    const isOfDeadline = window?.kind === 'sequence' && window.notThen !== null
    return isOfDeadline ? this.#resolved > applied : this.#resolved >= applied
  }

  /** Events that are in one of the windows that they match. */
  #inWindows(now: number): readonly string[] {
    const overs = this.#rule.windows.map((window) => ('over' in window ? window.over : 0))
    return this.#applied
      .slice(this.#resolved)
      .filter(({ t, matches }) => overs.some((over, index) => matches?.[index] === true && t > now - over))
      .map(({ sample }) => sample.id)
  }

  #say(type: 'firing' | 'resolved', isHold: boolean, value: number | string | null, reason?: string): void {
    if (this.#alert === undefined) return
    const { since, from, causes, pulsesFrom } = this.#alert
    const events = isHold
      ? [
          ...causes,
          ...this.#applied
            .slice(from)
            .flatMap(({ sample, matches }) => (matches === null ? [] : [sample.id])),
        ]
      : this.#pulses.slice(pulsesFrom).flatMap((pulse) => pulse.events)
    const more = reason === undefined ? {} : { reason }
    this.#out.push({ type, key: this.#key, since, value, events: events.slice(-20), ...more })
  }
}

/** The value of numbers, in the order of their events. */
function aggregateOf({ kind, p }: Aggregate, numbers: readonly number[]): number | null {
  const ascending = numbers.toSorted((a, b) => a - b)
  const sum = numbers.reduce((before, number) => before + number, 0)
  const all = numbers.length
  if (all === 0) return null
  switch (kind) {
    case 'sum':
      return sum
    case 'avg':
      return sum / all
    case 'min':
      return ascending[0] ?? null
    case 'max':
      return ascending.at(-1) ?? null
    default:
      // The least one that so many percent of them do not exceed.
      return (
        ascending.find((each) => ascending.filter((other) => other <= each).length * 100 >= p * all) ?? null
      )
  }
}
