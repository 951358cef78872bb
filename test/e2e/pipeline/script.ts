import * as fc from 'fast-check'
import type { GroupScript } from './group.ts'
import type { HandlerScript, Setup } from './life.ts'
import type { ExecutionScript, MonitorScript } from './monitor.ts'
import { END, LAG } from './play.ts'
import type { Blow, Script } from './play.ts'
import type { PostScript } from './postman.ts'
import type { RunScript } from './run.ts'
import type { SaveScript } from './storage.ts'
import type { Fault, WireScript } from './wire.ts'

const time = fc.nat(END - 1)
const soon = fc.oneof(fc.constant(0), fc.nat(50), fc.nat(LAG / 2))

/** Mostly the first. */
function rarely<T>(usual: T, otherwise: fc.Arbitrary<T>, oneIn: number): fc.Arbitrary<T> {
  return fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: otherwise })
}

const run: fc.Arbitrary<RunScript> = fc.record({
  ends: time,
  status: fc.constantFrom('completed', 'completed', 'failed', 'cancelled'),
  explained: fc.boolean(),
})

const forgets = rarely([], fc.array(fc.record({ at: time, events: fc.nat(6) }), { maxLength: 2 }), 3)

const group: fc.Arbitrary<GroupScript> = fc.record({
  runs: fc.array(run, { maxLength: 8 }),
  remarks: fc.array(fc.record({ at: time, kind: fc.constantFrom('error', 'odd') }), { maxLength: 2 }),
  hour: fc.oneof(fc.constant(Infinity), fc.integer({ min: 200, max: 5_000 })),
  repeats: fc.oneof(fc.constant(0), fc.nat(3)),
  forgets,
  include_input: fc.boolean(),
})

const execution: fc.Arbitrary<ExecutionScript> = fc.record({
  at: time,
  lag: soon,
  spread: fc.constantFrom(0, 0, 30),
  finds: fc.constantFrom<ExecutionScript['finds'][]>(1, 2, 5, 'completion', 'error', 'odd'),
})

const monitor: fc.Arbitrary<MonitorScript> = fc.record({
  // A completion and an error are told from others by their time.
  executions: fc.uniqueArray(execution, { maxLength: 8, selector: ({ at }) => at }),
  cursors: fc.constantFrom('event', 'offset'),
  limit: fc.integer({ min: 1, max: 5 }),
  include_completions: fc.boolean(),
  forgets,
})

const post: fc.Arbitrary<PostScript> = fc.record({
  after: soon,
  lost: rarely(false, fc.constant(true), 5),
  again: rarely([], fc.array(soon, { maxLength: 2 }), 2),
  anew: rarely([], fc.array(soon, { maxLength: 1 }), 2),
})

/** The usual statuses of a service in trouble, and one that ends the pipeline. */
const status = fc.constantFrom(500, 503, 429, 408, 403)
const after = fc.oneof(fc.nat(20), fc.nat(2_000))

const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('none' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refused' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('silent' as const), patience: fc.nat(2_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('status' as const), status }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('status' as const), status, retryAfter: fc.nat(2) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('page' as const) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('cut' as const), after }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('short' as const), after }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('spoilt' as const), event: fc.nat(3) }) },
)

/** What is broken too often in a row is rightly taken for broken for good. */
const MAX_SPOILT = 4

function withFewSpoilt(faults: readonly Fault[]): readonly Fault[] {
  let spoilt = 0
  return faults.filter(({ kind }) => kind !== 'spoilt' || ++spoilt <= MAX_SPOILT)
}

const wire: fc.Arbitrary<WireScript> = fc.record({
  faults: fc.array(fault, { maxLength: 40, size: 'medium' }).map(withFewSpoilt),
  latencies: fc.array(fc.oneof(fc.constant(0), fc.nat(20), fc.nat(500)), { maxLength: 6 }),
  chunks: fc.array(fc.oneof(fc.constant(Infinity), fc.integer({ min: 20, max: 800 })), { maxLength: 4 }),
  pauses: fc.array(fc.oneof(fc.constant(0), fc.nat(30)), { maxLength: 4 }),
})

const setup: fc.Arbitrary<Setup> = fc.record({
  webhooks: fc.constantFrom(true, true, false),
  exactlyOnce: fc.boolean(),
  concurrency: fc.integer({ min: 1, max: 4 }),
  highWaterMark: fc.integer({ min: 1, max: 6 }),
  retries: fc.nat(2),
  keyed: fc.boolean(),
  filtered: fc.boolean(),
  hold: fc.constantFrom(0, 100, 2_000),
  pollInterval: fc.constantFrom(500, 2_000),
  pause: fc.constantFrom(0, 100),
})

const blow: fc.Arbitrary<Blow> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('kill' as const), at: time, down: soon }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resubscribe' as const), at: time, down: soon }) },
  // Whoever is stopped takes some time to end, which has to be over before the last event.
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('stop' as const), at: fc.nat(END / 2), down: soon }),
  },
)

const handler: fc.Arbitrary<HandlerScript> = fc.record({
  takes: fc.oneof(fc.constant(undefined), fc.nat(20), fc.nat(1_000)),
  failures: rarely(0, fc.nat(4), 5),
})

const save: fc.Arbitrary<SaveScript> = fc.record({
  takes: fc.oneof(fc.constant(0), fc.nat(200)),
  early: fc.boolean(),
  fails: rarely(false, fc.constant(true), 9),
})

/** Any script of which something can be said in the end. */
export const anyScript: fc.Arbitrary<Script> = fc
  .record({
    service: fc.record({
      groups: fc.array(group, { maxLength: 2 }),
      monitors: fc.array(monitor, { maxLength: 2 }),
      singles: fc.array(run, { maxLength: 2 }),
      posts: fc.array(post, { maxLength: 30, size: 'medium' }),
      results: fc.boolean(),
      statuses: fc.constantFrom(true, true, false),
      wire,
    }),
    setup,
    storage: fc.constantFrom('memory', 'sqlite'),
    blows: fc.array(blow, { maxLength: 5 }),
    handlers: fc.array(handler, { maxLength: 20 }),
    saves: fc.array(save, { maxLength: 20 }),
    randoms: fc.array(
      fc.nat(99).map((n) => n / 100),
      { maxLength: 5 },
    ),
    turns: fc.array(fc.nat(5), { maxLength: 4 }),
  })
  .map(withLast)
  .map(withoutDeceit)

const NO_MONITOR: MonitorScript = {
  executions: [],
  cursors: 'event',
  limit: 5,
  include_completions: false,
  forgets: [],
}

/**
 * The same with one event more at the end, since a process that has handled nothing saves nothing either. Its number is
 * the first, which no pipeline filters out.
 */
function withLast(script: Script): Script {
  const { service } = script
  const { groups, monitors } = service
  const [group0, ...otherGroups] = groups
  if (monitors.length === 0 && group0 !== undefined) {
    const runs = [{ ends: END, status: 'completed', explained: false } as const, ...group0.runs]
    return { ...script, service: { ...service, groups: [{ ...group0, runs }, ...otherGroups] } }
  }
  const [monitor0 = NO_MONITOR, ...otherMonitors] = monitors
  const executions = [{ at: END, lag: 0, spread: 0, finds: 1 } as const, ...monitor0.executions]
  return { ...script, service: { ...service, monitors: [{ ...monitor0, executions }, ...otherMonitors] } }
}

/**
 * The same without a service that closes a stream in good order, although there is more, where that cannot be told from
 * the stream's end: where it does not show a group's status, and where it repeats so much that nobody can count.
 */
function withoutDeceit(script: Script): Script {
  const { service } = script
  const { statuses, groups } = service
  if (statuses && groups.every(({ repeats }) => repeats < 2)) return script
  const faults = service.wire.faults.filter(({ kind }) => kind !== 'short')
  const honest = { ...service, wire: { ...service.wire, faults } }
  if (statuses) return { ...script, service: honest }
  const patient: GroupScript[] = []
  for (const one of groups) patient.push({ ...one, hour: Infinity })
  return { ...script, service: { ...honest, groups: patient } }
}
