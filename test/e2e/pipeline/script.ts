import * as fc from 'fast-check'
import type { HandlerScript, Setup } from './pipeline-process.ts'
import { anyService, END, rarely, soon, time } from './service-script.ts'
import type { Interruption, Script } from './simulation.ts'
import type { SaveScript } from './storage.ts'

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

const interruption: fc.Arbitrary<Interruption> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('kill' as const), at: time, down: soon }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('resubscribe' as const), at: time, down: soon }) },
  // A graceful stop takes time, which must end before the last event.
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

/** Any script with a verifiable result. */
export const anyScript: fc.Arbitrary<Script> = fc.record({
  service: anyService,
  setup,
  storage: fc.constantFrom('memory', 'sqlite'),
  interruptions: fc.array(interruption, { maxLength: 5 }),
  handlers: fc.array(handler, { maxLength: 20 }),
  saves: fc.array(save, { maxLength: 20 }),
  randoms: fc.array(
    fc.nat(99).map((n) => n / 100),
    { maxLength: 5 },
  ),
  turns: fc.array(fc.nat(5), { maxLength: 4 }),
})
