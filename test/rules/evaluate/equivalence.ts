/** The property that the engine gives what the reference gives, for one kind of rule. */
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import type { AlertEvent } from '../../../src/rules/evaluate/in-memory.ts'
import { ruleProgram } from '../../../src/rules/evaluate/program.ts'
import type { RuleProgram, ViewOf } from '../../../src/rules/evaluate/program.ts'
import type { RuleInput } from '../../../src/rules/evaluate/event-time.ts'
import type { RuleState } from '../../../src/rules/evaluate/state.ts'
import type { CompiledRule } from '../../../src/rules/compiled-rule.ts'
import { MemoryProcess } from '../../../src/streams/memory-process.ts'
import { FUNCTION_DEFAULTS } from '../../../src/streams/process-functions.ts'
import { asJson } from '../../../src/streams/representation.ts'
import { tickAt } from '../../support/ticks.ts'
import { AGGREGATES, BASE, compiled, inputOf, viewOf } from './plain-rule.ts'
import type { Condition, Fields, PlainRule, PlainWindow, Sample } from './plain-rule.ts'
import { absenceReference } from './absence-reference.ts'
import { reference } from './reference.ts'
import type { Moment, Transition } from './reference.ts'

/** The kinds of rules, each with a property of its own. */
export const KINDS = [
  'match',
  'count',
  'rate',
  'distinct',
  'spike',
  ...AGGREGATES,
  'several',
  'new',
  'changed',
  'sequence',
  'not_then',
  'absence',
] as const

export type Kind = (typeof KINDS)[number]

/** Evaluates rules, without a log. */
interface Engine {
  arrive(event: RuleInput): readonly AlertEvent[]
  next(entry: RuleInput): readonly AlertEvent[]
  tick(at: number): readonly AlertEvent[]
  /** Goes on as another process would that has only the states. */
  restart?(): void
}

/** Rules whose states are JSON after each call, as those in a log. */
export class RestartedRules
  extends MemoryProcess<RuleState, RuleInput, string, AlertEvent>
  implements Engine
{
  #program: RuleProgram
  readonly #begin: () => RuleProgram

  constructor(rules: readonly CompiledRule[], view: ViewOf) {
    const begin = () => ruleProgram(rules, view)
    super({
      name: 'rules',
      functions: {
        ...FUNCTION_DEFAULTS,
        key: (entry) => this.#program.keys(entry),
        init: (key) => this.#program.init(key),
        event: (state, entry, context) => this.#program.event(state, entry, context),
        timer: (state, due, context, name, data) => this.#program.timer(state, due, context, name, data),
      },
      representation: asJson((event) => ({ output: JSON.parse(JSON.stringify(event)), bytes: 0 })),
      maxKeys: Infinity,
      full: () => {},
      failed: (error) => {
        throw error
      },
    })
    this.#program = begin()
    this.#begin = () => {
      const program = begin()
      for (const { name } of rules) program.resume(JSON.parse(this.states.get(name) ?? '{}'))
      return program
    }
  }

  restart(): void {
    this.#program = this.#begin()
  }
}

/** The last event is at most here, in ms. */
const LENGTH = 80
/** An event of a log is recorded at most so late, since event time waits for it, in ms. */
const BEHIND = 30
/** Everything is over here: windows, waits and what follows from them. */
const END = LENGTH + 250

const condition: fc.Arbitrary<Condition> = fc.record({
  bit: fc.nat(3),
  changed: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.boolean() }),
})
const when = fc.option(condition, { freq: 2 })
const over = fc.integer({ min: 2, max: 25 })
const gte = fc.integer({ min: 1, max: 3 })

const count = fc.record({ kind: fc.constant('count' as const), when, over, gte })
const rate = fc.record({
  kind: fc.constant('rate' as const),
  when,
  over,
  per: fc.integer({ min: 1, max: 30 }),
  gte: fc.constantFrom(0.3, 0.5, 1, 1.7, 2, 3),
})
const distinct = fc.record({ kind: fc.constant('distinct' as const), when, over, gte })
const spike = fc.record({
  kind: fc.constant('spike' as const),
  when,
  over: fc.integer({ min: 1, max: 15 }),
  factor: fc.constantFrom(0.5, 1, 1.5, 2, 3),
  min: fc.integer({ min: 1, max: 3 }),
})
const bound = fc.option(fc.constantFrom(-0.1, -0.05, 0, 0.1, 0.15, 0.2, 0.3, 0.5), { freq: 2 })
const aggregate = (...kinds: readonly (typeof AGGREGATES)[number][]) =>
  fc
    .record({
      kind: fc.constantFrom(...kinds),
      when,
      over,
      gte: bound,
      lte: bound,
      p: fc.constantFrom(0, 7, 25, 50, 75, 99.5, 100),
    })
    .filter(({ gte: least, lte: most }) => least !== null || most !== null)
const sequence = (notThen: fc.Arbitrary<Condition | null>) =>
  fc.record({
    kind: fc.constant('sequence' as const),
    steps: fc.array(condition, { minLength: 1, maxLength: 3 }),
    notThen,
    within: fc.integer({ min: 1, max: 25 }),
  })
const one = <Item>(item: fc.Arbitrary<Item>) => item.map((each): readonly Item[] => [each])

const windows: Readonly<Record<Kind, fc.Arbitrary<readonly PlainWindow[]>>> = {
  match: fc.constant([]),
  count: one(count),
  rate: one(rate),
  distinct: one(distinct),
  spike: one(spike),
  sum: one(aggregate('sum')),
  avg: one(aggregate('avg')),
  min: one(aggregate('min')),
  max: one(aggregate('max')),
  percentile: one(aggregate('percentile')),
  several: fc.array(fc.oneof(count, rate, distinct, spike, aggregate(...AGGREGATES)), {
    minLength: 2,
    maxLength: 4,
  }),
  new: one(fc.record({ kind: fc.constant('new' as const), when, within: over })),
  changed: one(fc.record({ kind: fc.constant('changed' as const), when })),
  sequence: one(sequence(fc.constant(null))),
  not_then: one(sequence(condition)),
  absence: one(
    fc.record({
      kind: fc.constant('absence' as const),
      within: over,
      of: fc.constant(new Set(['/s1', '/s2'])),
    }),
  ),
}

const wait = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 10 }))

function ruleOf(kind: Kind): fc.Arbitrary<PlainRule> {
  return fc
    .record({
      when,
      windows: windows[kind],
      keyedBy: fc.constantFrom('nothing', 'field', 'source', 'source'),
      isPerEvent: fc.oneof(
        { weight: 16, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.boolean() },
      ),
      reads: fc.constantFrom('events', 'events', 'events', 'events', 'events and gaps', 'everything'),
      resolveWhen: fc.option(condition, { freq: 2 }),
      after: fc.integer({ min: 1, max: 25 }),
      for: wait,
      keepFiringFor: wait,
      lateness: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 12 })),
      backfill: fc.constantFrom('ignore', 'place'),
    })
    .filter((rule) => watched(rule) <= 3)
}

function watched({ when: first, resolveWhen }: PlainRule): number {
  return Number(first?.changed === true) + Number(resolveWhen?.changed === true)
}

const fields: fc.Arbitrary<Fields> = fc.record({
  // Most conditions hold for many events.
  bits: fc.tuple(fc.nat(15), fc.nat(15)).map(([some, more]) => some | more),
  // One that looks like a source is none.
  key: fc.constantFrom('a', 'a', 'a', 'b', '/s1', null),
  value: fc.constantFrom(0, 1, 2, 3, null),
  values: fc.array(fc.nat(4), { maxLength: 3 }),
})

/** The times that a gap names. They are dates of events, so they need not be near it. */
const gap = fc.option(
  fc.record({ from: fc.option(fc.integer({ min: -500, max: 500 })), to: fc.option(fc.nat(LENGTH)) }),
  { nil: undefined },
)

/** An event with how late it comes, as a share of the lateness. */
const event = fc.record({
  fields,
  at: fc.nat(LENGTH),
  late: fc.double({ min: 0, max: 1, noNaN: true }),
  id: fc.nat(6),
  source: fc.constantFrom('/s1', '/s2'),
  kind: fc.constantFrom(...Array<'plain'>(6).fill('plain'), 'run', 'run', 'dated', 'undated', 'gap', 'gap'),
  gap,
})

type Drawn = typeof event extends fc.Arbitrary<infer Value> ? Value : never

/** Events in the order of recording, each at most so late. Some are fuller revisions of others. */
function samplesOf(events: readonly Drawn[], lateness: number): readonly Sample[] {
  const revisions = new Map<string, number>()
  return (
    events
      .map(({ fields: own, at, late, id, source, kind, gap: times }, index): Sample => {
        const isRun = kind === 'run'
        const isGap = kind === 'gap'
        const recorded = (kind === 'dated' ? 0 : at) + Math.floor(late * lateness)
        return {
          // A few identities of runs come again and again.
          id: isRun ? `run${id % 3}${source.slice(1)}` : `e${String(index).padStart(2, '0')}`,
          source,
          type: isRun ? 'task_run.state' : isGap ? 'stream.gap' : 'unknown',
          // A gap is known when it is recorded.
          at: isGap ? recorded : kind === 'dated' ? 0 : at,
          recorded,
          ...(times !== undefined && { gap: times }),
          revision: 1,
          backfill: kind === 'dated' || kind === 'undated' ? kind : 'no',
          fields: own,
        }
      })
      .toSorted((a, b) => a.recorded - b.recorded)
      .map((sample) => {
        const identity = `${sample.source} ${sample.id}`
        const revision = (revisions.get(identity) ?? 0) + 1
        revisions.set(identity, revision)
        // A fuller revision is placed where it came.
        return revision > 1 ? later(sample, revision) : sample
      })
      // Events of one time of one identity would have no order.
      .filter(
        (sample, index, all) =>
          all.findIndex(
            (each) => each.id === sample.id && each.source === sample.source && each.at === sample.at,
          ) === index,
      )
  )
}

function later(sample: Sample, revision: number): Sample {
  return { ...sample, revision, at: sample.recorded }
}

/** A tick of a log. Times in ms after the base. */
interface LogTick {
  readonly at: number
  readonly through: number
  readonly complete: boolean
}

/** A rule and the events that it is given. */
export interface Case {
  readonly rule: PlainRule
  readonly samples: readonly Sample[]
  /** Moves of the time between events, in ms after the base. */
  readonly ticks: readonly number[]
  /** In a log: the ticks, which alone move the watermark. */
  readonly logTicks?: readonly LogTick[] | undefined
  /** After how many steps the run is cut, and goes on from its JSON. */
  readonly cuts: readonly number[]
}

/** What happens to a source, and how long nothing happened before. */
const happening = fc.record({
  fields,
  gap,
  pass: fc.oneof({ weight: 40, arbitrary: fc.nat(8) }, { weight: 10, arbitrary: fc.nat(40) }),
  ago: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(6), fc.nat(60)),
  source: fc.constantFrom('/s1', '/s1', '/s1', '/s2', '/s3'),
  type: fc.oneof(
    { weight: 8, arbitrary: fc.constant('unknown' as const) },
    fc.constantFrom('source.live', 'source.lost', 'source.live', 'source.lost'),
    fc.constantFrom('stream.gap', 'log.gap', 'monitor.cancelled'),
  ),
})

/** Ticks of a log, whose recorder may be behind. */
const logTicks = fc
  .array(
    fc.record({
      at: fc.nat(3 * LENGTH),
      behind: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.nat(LENGTH)),
      complete: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.boolean()),
    }),
    { minLength: 2, maxLength: 20, size: 'max' },
  )
  .map((given) =>
    given
      .toSorted((a, b) => a.at - b.at)
      .map(({ at, behind, complete }): LogTick => ({ at, through: Math.max(0, at - behind), complete })),
  )

function happenings(given: readonly (typeof happening extends fc.Arbitrary<infer Value> ? Value : never)[]) {
  let recorded = 0
  return given.map(({ fields: own, gap: times, pass, ago, source, type }, index): Sample => {
    recorded += pass
    const at = type === 'unknown' ? Math.max(recorded - ago, 0) : recorded
    const from = type === 'log.gap' ? '/log' : source
    const place = { id: `e${index}`, source: from, at, recorded } as const
    return {
      ...place,
      type,
      revision: 1,
      backfill: 'no',
      fields: own,
      ...(times !== undefined && { gap: times }),
    }
  })
}

/** Without what a rule about absence does not have. */
function aboutSources(rule: PlainRule): PlainRule {
  const own = rule.when && { bit: rule.when.bit }
  return { ...rule, when: own, keyedBy: 'nothing', isPerEvent: false, reads: 'events', resolveWhen: null }
}

/** The ticks with times that are true: what comes later is later, or late by no more than the rule waits for. */
function trueTicks(
  drawn: readonly LogTick[],
  samples: readonly Sample[],
  lateness: number,
): readonly LogTick[] {
  return drawn.map(({ at, through }) => {
    const coming = samples.flatMap((sample) => (sample.recorded > at ? sample.at : []))
    const latest = Math.min(...coming) + (lateness === 0 ? -1 : lateness)
    return { at, through: Math.min(through, latest), complete: true }
  })
}

/**
 * Without gaps that are recorded between an event that has waited and a deadline 1 ms later: a process sets no timer that is due at once, so
 * the deadline comes 1 ms of the watermark after it.
 */
function withoutTies(given: Case): Case {
  const { rule, samples, logTicks: inLog } = given
  if (rule.lateness === 0 && inLog === undefined) return given
  const applied = new Set(samples.map(({ at }) => at + rule.lateness + 1))
  const tied = new Set<Sample>()
  let watermark = -Infinity
  for (const { recorded, sample, through = watermark } of momentsOf(given)) {
    watermark = Math.max(watermark, Math.min(through, recorded))
    if (sample?.type === 'stream.gap' && applied.has(watermark)) tied.add(sample)
  }
  return { ...given, samples: samples.filter((sample) => !tied.has(sample)) }
}

export function caseOf(kind: Kind): fc.Arbitrary<Case> {
  if (kind === 'absence') {
    return fc.record({
      rule: ruleOf(kind).map(aboutSources),
      samples: fc.array(happening, { minLength: 2, maxLength: 30, size: 'max' }).map(happenings),
      ticks: fc.array(fc.nat(2 * LENGTH), { maxLength: 4 }),
      logTicks: fc.option(logTicks, { nil: undefined }),
      cuts: fc.array(fc.nat(25), { maxLength: 3 }),
    })
  }
  return fc
    .record({
      rule: ruleOf(kind),
      events: fc.array(event, { minLength: 4, maxLength: 30, size: 'max' }),
      ticks: fc.array(fc.nat(LENGTH), { maxLength: 4 }),
      drawn: fc.option(logTicks, { nil: undefined }),
      cuts: fc.array(fc.nat(25), { maxLength: 3 }),
    })
    .map(({ rule, events, ticks, drawn, cuts }) => {
      // A match that does not wait is taken in any order, which the definitions do not have.
      const inLog = kind === 'match' && rule.lateness === 0 ? undefined : drawn
      const samples = samplesOf(events, inLog === undefined ? rule.lateness : BEHIND)
      const times = inLog && trueTicks(inLog, samples, rule.lateness)
      return withoutTies({ rule, samples, ticks, logTicks: times, cuts })
    })
}

/** What the engine emits. It is restarted at the cuts, if it can be. */
export function run(
  EngineClass: new (rules: readonly CompiledRule[], view: ViewOf) => Engine,
  given: Case,
): readonly AlertEvent[] {
  const { rule, samples, ticks, cuts } = given
  const driver = new EngineClass([compiled(rule)], viewOf)
  const output: AlertEvent[] = []
  let steps = 0
  const step = (work: () => readonly AlertEvent[]) => {
    output.push(...work())
    steps++
    if (cuts.includes(steps)) driver.restart?.()
  }
  if (given.logTicks !== undefined) {
    for (const { recorded, sample, through, complete } of momentsOf(given)) {
      const at = BASE + recorded
      const tick = { ...tickAt(at, BASE + (through ?? 0), complete), recorded: at }
      step(() => driver.next(sample === undefined ? tick : inputOf(sample)))
    }
    return output
  }
  const rest = ticks.toSorted((a, b) => a - b)
  for (const sample of samples) {
    for (let [tick] = rest; tick !== undefined && tick < sample.recorded; [tick] = rest) {
      rest.shift()
      step(() => driver.tick(BASE + tick))
    }
    step(() => driver.arrive(inputOf(sample)))
  }
  step(() => driver.tick(BASE + endOf(samples)))
  return output
}

/** Everything is over then. */
function endOf(samples: readonly Sample[]): number {
  return Math.max(END, (samples.at(-1)?.recorded ?? 0) + 250) + 100
}

const TRANSITIONS = {
  'alert.pending': 'pending',
  'alert.firing': 'firing',
  'alert.resolved': 'resolved',
} as const

/** Of events of the engine, what the reference knows. In the order of keys. */
export function transitionsOf(output: readonly AlertEvent[]): readonly Transition[] {
  const transitions = output.flatMap((alert): Transition[] => {
    const { key } = alert.data
    const text = JSON.stringify(key)
    if (alert.type === 'alert.unknown')
      return [
        {
          type: 'unknown',
          key: text,
          since: Date.parse(alert.data.since) - BASE,
          reason: alert.data.reason,
        },
      ]
    if (alert.type === 'alert.late') throw new Error(`an event was late: ${JSON.stringify(alert.data)}`)
    if (alert.type === 'alert.known' || alert.type === 'alert.inactive') return []
    const { since, value, complete, events } = alert.data
    return [
      {
        type: TRANSITIONS[alert.type],
        key: text,
        since: Date.parse(since) - BASE,
        value,
        complete,
        events: events.map(({ id }) => id),
        ...(alert.type === 'alert.resolved' && { reason: alert.data.reason }),
      },
    ]
  })
  return byKey(transitions)
}

/**
 * The same for the reference.
 *
 * @param found What the engine gives. An alert that is pending and ends at the same entry is not among it.
 */
export function expectedOf(given: Case, found: readonly Transition[]): readonly Transition[] {
  let next = 0
  return definedOf(given).filter((each) => {
    const isSaid = each.type !== 'pending' || isDeepStrictEqual(each, found[next])
    if (isSaid) next++
    return isSaid
  })
}

function definedOf(given: Case): readonly Transition[] {
  const { rule } = given
  const [window] = rule.windows
  if (window?.kind === 'absence') return byKey(absenceReference(rule, window, momentsOf(given)))
  const named = (transition: Transition): Transition => {
    const { key, ...rest } = transition
    const values: string[] = JSON.parse(key)
    const shown = {
      ...(rule.keyedBy === 'field' && { key: values.shift() }),
      ...(rule.keyedBy === 'source' && { source: values.shift() }),
      ...(rule.isPerEvent && { event: values.shift(), source: values.shift() }),
    }
    return { key: JSON.stringify(shown), ...rest }
  }
  return byKey(reference(rule, momentsOf(given), END).map(named))
}

/** What is recorded, and how the time moves, in order. */
function momentsOf({ samples, ticks, logTicks: inLog }: Case): readonly Moment[] {
  const events = samples.map((sample): Moment => {
    const { recorded } = sample
    // Without a log, everything has come that there was before.
    return { recorded, sample, ...(inLog === undefined && { through: recorded }) }
  })
  const end = endOf(samples)
  const tick = (at: number): LogTick => ({ at, through: at, complete: true })
  // What is unknown is looked at again a minute later.
  const moves = [
    ...(inLog ?? ticks.map(tick)),
    tick(end),
    ...(inLog === undefined ? [] : [tick(end + 60_500)]),
  ]
  // The time moves after what is recorded at it.
  return [
    ...events,
    ...moves.map(({ at, through, complete }) => ({ recorded: at, through, complete })),
  ].toSorted((a, b) => a.recorded - b.recorded)
}

/** The transitions of a key are in order already. */
function byKey(transitions: readonly Transition[]): readonly Transition[] {
  return transitions.toSorted((a, b) => (a.key === b.key ? 0 : a.key < b.key ? -1 : 1))
}
