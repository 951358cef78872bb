import * as fc from 'fast-check'
import type { GroupScript } from './group.ts'
import type { ExecutionScript, MonitorScript } from './monitor.ts'
import type { RunScript } from './run.ts'
import type { ServiceScript } from './service.ts'
import type { PostScript } from './webhook-sender.ts'
import type { Fault, WireScript } from './wire.ts'

/** The time of the last event, in ms. The script ends there. */
export const END = 10_000
/** The longest delay between an event and its transport, in ms. */
export const LAG = 3_000

/** A moment of the script, in ms. */
export const time = fc.nat(END - 1)
/** A delay, in ms. */
export const soon = fc.oneof(fc.constant(0), fc.nat(50), fc.nat(LAG / 2))

/** Usually the first. */
export function rarely<T>(usual: T, otherwise: fc.Arbitrary<T>, oneIn: number): fc.Arbitrary<T> {
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
  // Completions and errors are identified by their time.
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
  withNewId: rarely([], fc.array(soon, { maxLength: 1 }), 2),
  forgeries: rarely([], fc.array(fc.constantFrom('secret', 'body', 'late'), { maxLength: 2 }), 4),
})

/** Common error statuses, and one that ends the pipeline. */
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
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('malformed' as const), event: fc.nat(3) }) },
)

/** The most malformed events. More in a row are correctly treated as a permanent failure. */
const MAX_MALFORMED = 4

function withFewMalformed(faults: readonly Fault[]): readonly Fault[] {
  let malformed = 0
  return faults.filter(({ kind }) => kind !== 'malformed' || ++malformed <= MAX_MALFORMED)
}

const wire: fc.Arbitrary<WireScript> = fc.record({
  faults: fc.array(fault, { maxLength: 40, size: 'medium' }).map(withFewMalformed),
  latencies: fc.array(fc.oneof(fc.constant(0), fc.nat(20), fc.nat(500)), { maxLength: 6 }),
  chunks: fc.array(fc.oneof(fc.constant(Infinity), fc.integer({ min: 20, max: 800 })), { maxLength: 4 }),
  pauses: fc.array(fc.oneof(fc.constant(0), fc.nat(30)), { maxLength: 4 }),
})

/** Any script of a service with a verifiable result. */
export const anyService: fc.Arbitrary<ServiceScript> = fc
  .record({
    groups: fc.array(group, { maxLength: 2 }),
    monitors: fc.array(monitor, { maxLength: 2 }),
    singles: fc.array(run, { maxLength: 2 }),
    posts: fc.array(post, { maxLength: 30, size: 'medium' }),
    results: fc.boolean(),
    statuses: fc.constantFrom(true, true, false),
    wire,
  })
  .map(withLast)
  .map(withoutUndetectable)

const NO_MONITOR: MonitorScript = {
  executions: [],
  cursors: 'event',
  limit: 5,
  include_completions: false,
  forgets: [],
}

/** Adds one last event, since a process that has handled nothing saves nothing. Its number is the first, which no pipeline filters out. */
function withLast(service: ServiceScript): ServiceScript {
  const { groups, monitors } = service
  const [group0, ...otherGroups] = groups
  if (monitors.length === 0 && group0 !== undefined) {
    const runs = [{ ends: END, status: 'completed', explained: false } as const, ...group0.runs]
    return { ...service, groups: [{ ...group0, runs }, ...otherGroups] }
  }
  const [monitor0 = NO_MONITOR, ...otherMonitors] = monitors
  const executions = [{ at: END, lag: 0, spread: 0, finds: 1 } as const, ...monitor0.executions]
  return { ...service, monitors: [{ ...monitor0, executions }, ...otherMonitors] }
}

/** Removes premature closes where the client cannot detect them: without a group's status, or with so many repeats that it cannot count. */
function withoutUndetectable(service: ServiceScript): ServiceScript {
  const { statuses, groups } = service
  if (statuses && groups.every(({ repeats }) => repeats < 2)) return service
  const faults = service.wire.faults.filter(({ kind }) => kind !== 'short')
  const detectable = { ...service, wire: { ...service.wire, faults } }
  if (statuses) return detectable
  const longLived: GroupScript[] = []
  for (const one of groups) longLived.push({ ...one, hour: Infinity })
  return { ...detectable, groups: longLived }
}
