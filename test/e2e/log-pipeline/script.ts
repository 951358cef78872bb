import * as fc from 'fast-check'
import { anyService, END, rarely, soon, time } from '../pipeline/service-script.ts'
import type { ServiceScript } from '../pipeline/service.ts'
import type { ConsumerScript } from './consumption.ts'
import type { StorageScript } from './disk.ts'
import type { WriteScript } from './process-store.ts'
import type { Interruption, Script } from './simulation.ts'
import type { HandlerScript, Setup } from './world.ts'

const setup: fc.Arbitrary<Setup> = fc.record({
  pollInterval: fc.constantFrom(500, 2_000),
  pause: fc.constantFrom(0, 100),
  tick: fc.constantFrom(Infinity, 3_000),
  retention: rarely<Setup['retention']>(
    undefined,
    fc.constantFrom({ maxAge: 200 }, { maxAge: 2_000 }, { maxBytes: 4_000 }, { maxBytes: 20_000 }),
    3,
  ),
  hasLists: fc.boolean(),
  isApart: fc.boolean(),
  hasStandby: rarely(false, fc.constant(true), 3),
})

const consumer: fc.Arbitrary<ConsumerScript> = fc.record({
  from: rarely(0, time, 3),
  concurrency: fc.integer({ min: 1, max: 4 }),
  highWaterMark: fc.integer({ min: 1, max: 6 }),
  retries: fc.nat(2),
  keyed: fc.boolean(),
  maxUnacknowledged: fc.oneof(fc.constant(1_000), fc.integer({ min: 1, max: 9 })),
  revisions: fc.constantFrom('all', 'all', 'first'),
  drops: fc.constantFrom<ConsumerScript['drops'][]>('nothing', 'types', 'where', 'ofType'),
  between: fc.constantFrom<ConsumerScript['between'][]>('nothing', 'nothing', 'delay', 'batches', 'shuffle'),
  hasDeadLetters: fc.boolean(),
  isJob: fc.boolean(),
})

// A file takes a hundred times as long.
const storage: fc.Arbitrary<StorageScript> = rarely<StorageScript>(
  { kind: 'memory', partitions: 1 },
  fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('memory' as const), partitions: fc.constantFrom(2, 3) }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'sqlite' as const }) },
  ),
  3,
)

/** Kills usually; a graceful stop takes time, which must end before the last event. */
const interruption: fc.Arbitrary<Interruption> = fc
  .record({
    at: time,
    kind: fc.constantFrom<Interruption['kind'][]>(
      'kill',
      'kill',
      'kill',
      'stop',
      'suspend',
      'restart',
      'relist',
      'redeliver',
    ),
    process: fc.nat(2),
    down: soon,
    isLanding: fc.boolean(),
  })
  .filter(({ kind, at }) => kind !== 'stop' || at < END / 2)

const handler: fc.Arbitrary<HandlerScript> = fc.record({
  takes: fc.oneof(fc.constant(undefined), fc.nat(20), fc.nat(1_000)),
  failures: rarely(0, fc.nat(4), 5),
})

const write: fc.Arbitrary<WriteScript> = fc.record({
  does: rarely<WriteScript['does']>('work', fc.constantFrom('fail', 'kill'), 6),
  step: fc.constantFrom('before', 'after'),
})

/** Any script with a verifiable result. */
export const anyScript: fc.Arbitrary<Script> = fc.record({
  service: fc.oneof(anyService, anyService.map(withoutWebhooks)),
  setup,
  storage,
  consumers: fc.array(consumer, { minLength: 1, maxLength: 2 }),
  interruptions: fc.array(interruption, { maxLength: 5 }),
  handlers: fc.array(handler, { maxLength: 20 }),
  writes: fc.array(write, { maxLength: 60, size: 'medium' }),
  latencies: fc.array(fc.oneof(fc.constant(0), fc.nat(20), fc.nat(200)), { maxLength: 6 }),
  // With zeros alone, a client that asks again would do so forever at the same time.
  randoms: fc.array(
    fc.integer({ min: 1, max: 99 }).map((n) => n / 100),
    { maxLength: 5 },
  ),
  turns: fc.array(fc.nat(5), { maxLength: 4 }),
})

function withoutWebhooks(service: ServiceScript): ServiceScript {
  return { ...service, posts: [], singles: [] }
}
