import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { filter, merge, Observable, VirtualTimeScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import { memoryCheckpointStore, openCheckpoint } from 'rivulet'
import type { Checkpoint, CheckpointStore, ResearchEvent } from 'rivulet'
import { dedupe, deliver } from 'rivulet/operators'
import type { Progress } from 'rivulet/operators'
import { expect, it } from 'vitest'
import { isAtLeastAsComplete, completeness } from '../../src/protocol/event.ts'
import { bareRun, fullRun } from './events.ts'
import { Work } from './handlers.ts'

/** What becomes of a run's events. Times are in ms; `undefined` is done within the call. */
interface Fate {
  readonly takes: number | undefined
  /** How many calls of the handler fail, over all processes. */
  readonly failures: number
}

/** One process. */
interface Settings {
  readonly concurrency: number
  readonly retries: number
  readonly keyed: boolean
  /** Whether there are dead letters. */
  readonly buries: boolean
  readonly drainTimeout: number
  /** How long a save takes, and whether it takes effect at its beginning or at its end. */
  readonly saving: number
  readonly savesEarly: boolean
  /** When it is killed, unless it ends before. */
  readonly killAt: number | undefined
}

/** A copy of an event, and how long after the one before it the stream tells it. */
interface Told {
  readonly event: ResearchEvent
  readonly gap: number
}

const FATES = 8
/** Runs whose events the pipeline filters out. */
const FILTERED = /^r[37]:/

const time = fc.nat(6)
const fate: fc.Arbitrary<Fate> = fc.record({
  takes: fc.option(time, { nil: undefined }),
  failures: fc.oneof(fc.constant(0), fc.nat(4)),
})
const told: fc.Arbitrary<Told> = fc
  .record({ run: fc.nat(FATES - 1), full: fc.boolean(), gap: fc.nat(3) })
  .map(({ run, full, gap }) => ({ event: full ? fullRun(`r${run}`) : bareRun(`r${run}`), gap }))
const anySettings: fc.Arbitrary<Settings> = fc.record({
  concurrency: fc.integer({ min: 1, max: 4 }),
  retries: fc.nat(2),
  keyed: fc.boolean(),
  buries: fc.boolean(),
  drainTimeout: fc.constantFrom(2, 1_000),
  saving: fc.nat(4),
  savesEarly: fc.boolean(),
  killAt: fc.option(fc.nat(40), { nil: undefined }),
})

/** What the service tells, what has become of it, and what must never be. */
class World {
  /** Calls that are still to fail, by run. */
  readonly failures: number[]
  /** What was handled or given up, each time. */
  readonly over: ResearchEvent[] = []
  readonly violations: string[] = []
  readonly #streams: ReadonlyMap<string, readonly Told[]>
  readonly #fates: readonly Fate[]

  constructor(streams: readonly (readonly Told[])[], fates: readonly Fate[]) {
    this.#streams = new Map(streams.map((copies, i) => [`s${i}`, copies]))
    this.#fates = fates
    this.failures = fates.map(({ failures }) => failures)
  }

  get streams(): Iterable<[name: string, copies: readonly Told[]]> {
    return this.#streams
  }

  takes({ id }: ResearchEvent): number | undefined {
    return this.#fates[numberOf(id)]?.takes
  }

  /** Whether this call of the handler fails. */
  fails({ id }: ResearchEvent): boolean {
    const run = numberOf(id)
    const left = this.failures[run] ?? 0
    this.failures[run] = Math.max(0, left - 1)
    return left > 0
  }

  /** Whether the handler is through with all that this copy says. */
  isOver(event: ResearchEvent): boolean {
    if (FILTERED.test(event.id)) return true
    const copies = this.over.filter(({ id }) => id === event.id)
    return (
      copies.length > 0 &&
      isAtLeastAsComplete(
        copies.reduce((all, copy) => all | completeness(copy), 0),
        completeness(event),
      )
    )
  }

  /** Looks at what is about to be saved. */
  check(positions: Iterable<readonly [string, string]>): void {
    for (const [stream, position] of positions) {
      const passed = this.#streams.get(stream)?.slice(0, Number(position)) ?? []
      for (const { event } of passed) {
        if (!this.isOver(event)) this.violations.push(`${stream} is at ${position}, past ${event.id}`)
      }
    }
  }
}

/** Runs one process until it ends or is killed. Returns how it ended. */
async function live(world: World, store: CheckpointStore, settings: Settings, name: string): Promise<string> {
  const scheduler = new VirtualTimeScheduler()
  const process = { isKilled: false }
  const checkpoint = await openCheckpoint({
    load: () => store.load(),
    async save(changes) {
      const { saving, savesEarly } = settings
      world.check(changes.positions)
      if (savesEarly) await store.save(changes)
      await new Promise((resolve) => scheduler.schedule(resolve, saving))
      if (process.isKilled) throw new Error('killed')
      if (!savesEarly) await store.save(changes)
    },
    close: () => store.close(),
  })
  let end: string | undefined
  const handled = pipeline(world, checkpoint, settings, scheduler, name)
  const subscription = handled.subscribe({
    error: (error: unknown) => (end = String(error)),
    complete: () => (end = 'complete'),
  })

  const pass = async (until: () => boolean) => {
    while (!until()) {
      scheduler.maxFrames = scheduler.actions[0]?.delay ?? scheduler.frame
      scheduler.flush()
      if (until()) return
      await nextTurn()
    }
  }
  await pass(() => end !== undefined || scheduler.frame >= (settings.killAt ?? Infinity))
  if (end === undefined) {
    process.isKilled = true
    subscription.unsubscribe()
    await store.close()
    return 'killed'
  }
  let isClosed = false
  const closing = checkpoint.close().finally(() => (isClosed = true))
  await pass(() => isClosed)
  await closing
  if (end !== 'complete') return end
  for (const [stream, copies] of world.streams) {
    if (Number(checkpoint.position(stream) ?? 0) < copies.length) {
      world.violations.push(`${stream} is only at ${checkpoint.position(stream)} at its end`)
    }
  }
  return end
}

/** What `watch` and a user make of a checkpoint. */
function pipeline(
  world: World,
  checkpoint: Checkpoint,
  { concurrency, retries, keyed, buries, drainTimeout }: Settings,
  scheduler: SchedulerLike,
  name: string,
): Observable<ResearchEvent> {
  // Something that is handled in each life: nothing is saved where all seems to be filtered out.
  const first = [{ event: fullRun(name), gap: 0 }]
  const streams = [...world.streams, [name, first] as const].map(([stream, copies]) =>
    reading(checkpoint, stream, copies, scheduler),
  )
  const facts = merge(...streams).pipe(
    dedupe({ known: checkpoint.handledBefore, onDuplicate: (event) => checkpoint.passed(event) }),
  )
  const passing = new Observable<ResearchEvent>((subscriber) => {
    subscriber.add(checkpoint.begin(scheduler))
    subscriber.add(
      facts.subscribe({
        next(event) {
          subscriber.next(event)
          checkpoint.passed(event, subscriber.closed)
        },
        error: (error: unknown) => subscriber.error(error),
        complete: () => subscriber.complete(),
      }),
    )
  })
  const handler = (event: ResearchEvent) => {
    const fails = world.fails(event)
    const takes = world.takes(event)
    if (takes === undefined) {
      if (fails) throw new Error('it failed')
      world.over.push(event)
      return undefined
    }
    if (fails) return new Work(scheduler, takes, { error: new Error('it failed') })
    return new Work(scheduler, takes, { onSettled: () => world.over.push(event) })
  }
  const deadLetters = {
    next: ({ event }: { readonly event: ResearchEvent }) =>
      new Work(scheduler, 1, { onSettled: () => world.over.push(event) }),
  }
  let unsaved = 0
  const progress: Progress<ResearchEvent> = {
    attach: () => checkpoint.attach(),
    received: (event) => checkpoint.received(event),
    async handled(event) {
      unsaved += 1
      if (unsaved > concurrency) world.violations.push(`${unsaved} handled, and none of them saved`)
      await checkpoint.handled(event)
      unsaved -= 1
    },
  }
  return passing.pipe(
    filter(({ id }) => !FILTERED.test(id)),
    deliver(handler, {
      concurrency,
      retries,
      initialDelay: 2,
      maxDelay: 4,
      random: () => 1,
      scheduler,
      checkpoint: progress,
      drainTimeout,
      ...(keyed && { key: ({ id }: ResearchEvent) => String(numberOf(id) % 3) }),
      ...(buries && { deadLetters }),
    }),
  )
}

/** A stream from where the checkpoint has it. */
function reading(
  checkpoint: Checkpoint,
  stream: string,
  copies: readonly Told[],
  scheduler: SchedulerLike,
): Observable<ResearchEvent> {
  return new Observable((subscriber) => {
    let read = Number(checkpoint.position(stream) ?? 0)
    const tell = () => {
      const next = copies[read]
      if (next === undefined) return subscriber.complete()
      const event = { ...next.event }
      read += 1
      checkpoint.entered(stream, String(read), event)
      subscriber.next(event)
      wait()
    }
    const wait = () => subscriber.add(scheduler.schedule(tell, copies[read]?.gap ?? 0))
    wait()
  })
}

function numberOf(id: string): number {
  return Number(/^r(\d)/.exec(id)?.[1] ?? Number.NaN)
}

/** The fact, and how much this copy says of it. */
function saying(event: ResearchEvent): string {
  return `${event.id} ${completeness(event)}`
}

it('a position is saved only past what was handled, whenever the process is killed, and in the end all is handled', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(told, { maxLength: 12 }), { minLength: 1, maxLength: 3 }),
      fc.array(fate, { minLength: FATES, maxLength: FATES }),
      fc.array(anySettings, { maxLength: 5 }),
      anySettings,
      async (streams, fates, lives, last) => {
        const world = new World(streams, fates)
        const store = memoryCheckpointStore()
        let inFlight = 0
        let end = ''
        for (let life = 0; end !== 'complete'; life++) {
          const settings = lives[life] ?? { ...last, killAt: undefined }
          end = await live(world, store, settings, `life${life}`)
          if (end === 'killed' || end.startsWith('DrainTimeoutError')) inFlight += settings.concurrency
        }

        expect(world.violations).toEqual([])
        for (const { event } of streams.flat()) expect(world.isOver(event)).toBe(true)
        const repeated = world.over.length - new Set(world.over.map(saying)).size
        expect(repeated).toBeLessThanOrEqual(inFlight)
      },
    ),
    { numRuns: 200 },
  )
})
