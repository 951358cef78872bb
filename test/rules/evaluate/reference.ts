/**
 * Evaluates a rule over all of its events by the definitions, in the most obvious way: at each ms, from all events before. Shares no code
 * with the engine.
 */
import { AGGREGATES, numberOf } from './plain-rule.ts'
import type { Condition, PlainRule, PlainWindow, Sample } from './plain-rule.ts'

/** What became of an alert. Times in ms after the base. */
export interface Transition {
  readonly type: 'pending' | 'firing' | 'resolved' | 'unknown'
  readonly key: string
  readonly since: number
  readonly reason?: string
  readonly value?: number | string | null
  /** Whether no event of the windows may be missing. */
  readonly complete?: boolean
  readonly events?: readonly string[]
}

/** An event that was recorded, or a move of the time, in ms after the base. */
export interface Moment {
  readonly recorded: number
  readonly sample?: Sample
  /** The time up to which everything has come; absent if this says nothing of it. */
  readonly through?: number
  /** Whether that is true; absent if this says nothing of it. */
  readonly complete?: boolean
}

type Aggregate = PlainWindow & { readonly kind: (typeof AGGREGATES)[number] }

type Sequence = PlainWindow & { readonly kind: 'sequence' }

/** An event where the rule has placed it, with what it is for the rule. */
interface Placed {
  readonly sample: Sample
  readonly t: number
  /** For each window, whether it matches. Null where the rule does not. */
  readonly matches: readonly (boolean | number)[] | null
  readonly resolves: boolean
}

/** An event or a gap of the source, where it counts for the rule. */
interface Step {
  readonly at: number
  readonly sample: Sample
  readonly isGap: boolean
}

/** Before the first event. */
const BEFORE = -1

/** The transitions of each key, in order. `moments` are in the order of recording. `end`: up to here, in ms. */
export function reference(rule: PlainRule, moments: readonly Moment[], end: number): readonly Transition[] {
  const keys = new Map<string, Step[]>()
  const isInLog = moments.some(({ sample, through }) => sample !== undefined && through === undefined)
  // Events are in their order, unless each is the last one when it comes.
  const isOrdered = isInLog || rule.lateness > 0
  let everything = -Infinity
  for (const { recorded, sample, through = everything } of moments) {
    everything = Math.max(everything, Math.min(through, recorded))
    if (sample === undefined) continue
    if (rule.backfill === 'ignore' && sample.backfill !== 'no') continue
    const { key } = sample.fields
    if (rule.keyedBy === 'field' && key === null) continue
    const parts = [
      ...(rule.keyedBy === 'field' ? [key] : rule.keyedBy === 'source' ? [sample.source] : []),
      ...(rule.isPerEvent ? [sample.id, sample.source] : []),
    ]
    const text = JSON.stringify(parts)
    const steps = keys.get(text) ?? []
    keys.set(text, steps)
    const isGap = sample.type === 'stream.gap'
    const isOfSource = rule.keyedBy === 'source' && !rule.isPerEvent
    if (isGap && isOfSource && rule.reads !== 'events and gaps') {
      // It counts at once: for all that is not decided yet.
      const at = isOrdered ? Math.max(everything - rule.lateness, BEFORE) : sample.at
      steps.push({ at, sample, isGap })
    }
    if (!isGap || rule.reads !== 'events') steps.push({ at: sample.at, sample, isGap: false })
  }
  return [...keys].flatMap(([key, steps]) =>
    new OneKey(rule, key, isOrdered ? steps.toSorted(compareSteps) : steps).run(end),
  )
}

/** At the time at which a gap is recorded, the deadlines are over, and the events are still to be applied. */
function compareSteps(a: Step, b: Step): number {
  if (a.at !== b.at) return a.at - b.at
  if (a.isGap || b.isGap) return Number(b.isGap) - Number(a.isGap)
  const [first, second] = [a.sample, b.sample]
  return compareTexts(first.source, second.source) || compareTexts(first.id, second.id)
}

function compareTexts(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

/** One key of a rule without absence. */
class OneKey {
  readonly #rule: PlainRule
  readonly #key: string
  readonly #steps: readonly Step[]
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
        complete: boolean
        quiet?: number
        reason?: string
        from: number
        causes: readonly string[]
        pulsesFrom: number
      }
    | undefined
  /** The last gap that is known: the events before it may be missing. */
  #gap = -Infinity
  /** Since a sequence was given up: whether nothing has been decided that is after the gap. */
  #isUnknown = false
  readonly #out: Transition[] = []

  constructor(rule: PlainRule, key: string, steps: readonly Step[]) {
    this.#rule = rule
    this.#key = key
    this.#steps = steps
    this.#samples = steps.flatMap(({ sample, isGap }) => (isGap ? [] : [sample]))
  }

  run(end: number): readonly Transition[] {
    for (let t = BEFORE; t <= end; t++) {
      this.#judge(t, this.#deadlines(t))
      for (const { at, sample, isGap } of this.#steps) {
        if (at !== t) continue
        if (isGap) this.#gap = Math.max(this.#gap, sample.recorded)
        else this.#judge(t, this.#apply(sample, t))
        if (isGap || t < this.#gap) this.#giveUp()
      }
    }
    return this.#out
  }

  /** The event that `not_then` excludes may be missing. */
  #giveUp(): void {
    if (this.#pending === undefined) return
    this.#pending = undefined
    if (this.#alert?.fired === false) this.#alert = undefined
    if (!this.#isUnknown) this.#out.push({ type: 'unknown', key: this.#key, since: this.#gap, reason: 'gap' })
    this.#isUnknown = true
  }

  /** Returns whether an unknown sequence is looked at again, since something is over then. */
  #deadlines(t: number): boolean {
    const [window] = this.#rule.windows
    if (window?.kind !== 'sequence') return false
    if (this.#pending !== undefined && this.#pending.t + window.within === t) {
      this.#pulse(t, this.#pending.events)
      this.#pending = undefined
      return true
    }
    if (!this.#isUnknown) return false
    if (t === this.#gap + Math.max(this.#reach, this.#rule.for)) return true
    const pulse = this.#pulses.at(-1)
    if (pulse !== undefined && !this.#isResolved(pulse) && t === pulse.t + this.#rule.after) return true
    return window.steps.slice(0, -1).some((_, step) => {
      const begun = this.#applied.findLastIndex((_each, at) => this.#way(window, step, at) !== undefined)
      const [first = NaN] = this.#way(window, step, begun) ?? []
      return (this.#applied[first]?.t ?? NaN) + window.within + 1 === t
    })
  }

  /** How far back the windows look. */
  get #reach(): number {
    const reaches = this.#rule.windows.map((window) => {
      switch (window.kind) {
        case 'spike':
          return window.over + window.over
        case 'sequence':
          return window.within + (window.notThen === null ? 0 : window.within)
        case 'new':
          return window.within
        case 'changed':
        case 'absence':
          return 0
        default:
          return window.over
      }
    })
    return Math.max(0, ...reaches)
  }

  #pulse(t: number, events: readonly string[], value: string | null = null): void {
    this.#pulses.push({ t, events, applied: this.#applied.length, value })
  }

  /** Returns whether the event says anything to the rule. */
  #apply(sample: Sample, t: number): boolean {
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
    const ofSteps = windows.flatMap((window) =>
      window.kind === 'sequence' ? window.steps.concat(window.notThen ?? []) : [],
    )
    const isCompared = [when, resolveWhen, ...ofSteps].some((each) => each?.changed === true)
    return (all !== null && !isNone) || resolves || isCompared
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

  #sequence(window: Sequence, t: number): void {
    if (window.notThen !== null && isStep(this.#applied.at(-1), window.steps.length))
      this.#pending = undefined
    const way = this.#way(window, window.steps.length - 1, this.#applied.length - 1)
    if (way === undefined) return
    this.#completed = this.#applied.length
    const events = way.map((at) => this.#applied[at]?.sample.id ?? '')
    if (window.notThen === null) this.#pulse(t, events)
    else this.#pending ??= { t, events }
  }

  /** The steps up to this one, the last of which is this event, as places of events. */
  #way(window: Sequence, last: number, end: number): readonly number[] | undefined {
    const from = Math.max(this.#completed, this.#resolved)
    /** All ways to an event. */
    const ways = (step: number, at: number): number[][] => {
      if (at < from || !isStep(this.#applied[at], step)) return []
      if (step === 0) return [[at]]
      const all: number[][] = []
      for (let earlier = at - 1; earlier >= from; earlier--)
        for (const way of ways(step - 1, earlier)) all.push([...way, at])
      return all
    }
    const within = ways(last, end).filter(
      ([first = 0]) => (this.#applied[end]?.t ?? 0) - (this.#applied[first]?.t ?? 0) <= window.within,
    )
    // The latest events, beginning with the last step.
    const [best] = within.toSorted((a, b) => {
      for (let step = a.length - 1; step >= 0; step--) {
        const difference = (b[step] ?? 0) - (a[step] ?? 0)
        if (difference !== 0) return difference
      }
      return 0
    })
    return best
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

  /** @param isLookedAt Whether an unknown sequence is looked at again. */
  #judge(now: number, isLookedAt: boolean): void {
    const { windows, after } = this.#rule
    if (isLookedAt && now >= this.#gap) this.#isUnknown = false
    // Its `for` begins when it is known again.
    if (this.#isUnknown && this.#alert === undefined && this.#rule.for > 0) return
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
      const isNew = this.#alert === undefined
      this.#alert ??= {
        since: now,
        fired: false,
        complete: true,
        from: this.#applied.length,
        causes: this.#inWindows(now),
        pulsesFrom: this.#pulses.length - 1,
      }
      delete this.#alert.quiet
      const { since, fired } = this.#alert
      const wait = this.#rule.for
      if (!fired) this.#alert.complete = this.#reach === 0 || this.#gap <= now - this.#reach
      if (!fired && now >= since + wait && (wait === 0 || now >= this.#gap + wait)) {
        this.#alert.fired = true
        this.#say('firing', isHold, value)
      } else if (isNew) this.#say('pending', isHold, value)
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

  #say(
    type: Exclude<Transition['type'], 'unknown'>,
    isHold: boolean,
    value: number | string | null,
    reason?: string,
  ): void {
    if (this.#alert === undefined) return
    const { since, from, causes, pulsesFrom, complete } = this.#alert
    const events = isHold
      ? [
          ...causes,
          ...this.#applied
            .slice(from)
            .flatMap(({ sample, matches }) => (matches === null ? [] : [sample.id])),
        ]
      : this.#pulses.slice(pulsesFrom).flatMap((pulse) => pulse.events)
    const more = reason === undefined ? {} : { reason }
    this.#out.push({ type, key: this.#key, since, value, complete, events: events.slice(-20), ...more })
  }
}

/** Whether the event is a step of a sequence. */
function isStep(event: Placed | undefined, step: number): boolean {
  return Math.floor(Number(event?.matches?.[0] ?? 0) / 2 ** step) % 2 === 1
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
