/** The property that the engine gives what the reference gives, for one kind of rule. */
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
import type { Moment } from './absence-reference.ts'
import { reference } from './reference.ts'
import type { Transition } from './reference.ts'

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

const wait = fc.oneof(
  { weight: 2, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 10 }) },
)

function ruleOf(kind: Kind): fc.Arbitrary<PlainRule> {
  return fc
    .record({
      when,
      windows: windows[kind],
      isKeyed: fc.boolean(),
      isPerEvent: fc.oneof(
        { weight: 16, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.boolean() },
      ),
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
  key: fc.constantFrom('a', 'a', 'a', 'b', null),
  value: fc.constantFrom(0, 1, 2, 3, null),
  values: fc.array(fc.nat(4), { maxLength: 3 }),
})

/** An event with how late it comes, as a share of the lateness. */
const event = fc.record({
  fields,
  at: fc.nat(LENGTH),
  late: fc.double({ min: 0, max: 1, noNaN: true }),
  id: fc.nat(6),
  source: fc.constantFrom('/s1', '/s2'),
  kind: fc.constantFrom(...Array<'plain'>(6).fill('plain'), 'run', 'run', 'dated', 'undated'),
})

type Drawn = typeof event extends fc.Arbitrary<infer Value> ? Value : never

/** Events in the order of recording, each at most so late. Some are fuller revisions of others. */
function samplesOf(events: readonly Drawn[], lateness: number): readonly Sample[] {
  const revisions = new Map<string, number>()
  return (
    events
      .map(({ fields: own, at, late, id, source, kind }, index): Sample => {
        const isRun = kind === 'run'
        const placed = kind === 'dated' ? 0 : at
        return {
          // A few identities of runs come again and again.
          id: isRun ? `run${id % 3}${source.slice(1)}` : `e${String(index).padStart(2, '0')}`,
          source,
          type: isRun ? 'task_run.state' : 'unknown',
          at: placed,
          recorded: placed + Math.floor(late * lateness),
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
  return given.map(({ fields: own, pass, ago, source, type }, index): Sample => {
    recorded += pass
    const at = type === 'unknown' ? Math.max(recorded - ago, 0) : recorded
    const from = type === 'log.gap' ? '/log' : source
    return { id: `e${index}`, source: from, type, at, recorded, revision: 1, backfill: 'no', fields: own }
  })
}

/** Without what a rule about absence does not have. */
function aboutSources(rule: PlainRule): PlainRule {
  const own = rule.when && { bit: rule.when.bit }
  return { ...rule, when: own, isKeyed: false, isPerEvent: false, resolveWhen: null }
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
      cuts: fc.array(fc.nat(25), { maxLength: 3 }),
    })
    .map(({ rule, events, ticks, cuts }) => ({
      rule,
      samples: samplesOf(events, rule.lateness),
      ticks,
      cuts,
    }))
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
    if (alert.type !== 'alert.firing' && alert.type !== 'alert.resolved') return []
    const { since, value, events } = alert.data
    return [
      {
        type: alert.type === 'alert.firing' ? 'firing' : 'resolved',
        key: text,
        since: Date.parse(since) - BASE,
        value,
        events: events.map(({ id }) => id),
        ...(alert.type === 'alert.resolved' && { reason: alert.data.reason }),
      },
    ]
  })
  return byKey(transitions)
}

/** The same for the reference. */
export function expectedOf(given: Case): readonly Transition[] {
  const { rule, samples } = given
  const [window] = rule.windows
  if (window?.kind === 'absence') return byKey(absenceReference(rule, window, momentsOf(given)))
  const named = (transition: Transition): Transition => {
    const { key, ...rest } = transition
    const values: string[] = JSON.parse(key)
    const shown = {
      ...(rule.isKeyed && { key: values.shift() }),
      ...(rule.isPerEvent && { event: values.shift(), source: values.shift() }),
    }
    return { key: JSON.stringify(shown), ...rest }
  }
  return byKey(reference(rule, samples, END).map(named))
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
