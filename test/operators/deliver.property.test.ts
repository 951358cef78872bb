import * as fc from 'fast-check'
import { defer, Subject, VirtualTimeScheduler } from 'rxjs'
import { deliver } from 'rivulet/operators'
import type { DeadLetter, Gate } from 'rivulet/operators'
import { expect, it } from 'vitest'
import { currentGate } from '../../src/protocol/gate.ts'
import { ACKNOWLEDGER } from '../../src/protocol/acknowledgement.ts'
import type { Acknowledger } from '../../src/protocol/acknowledgement.ts'
import { Work } from './handlers.ts'

/** An event and how it is handled. Times are in ms; `undefined` is synchronous. */
interface Script {
  readonly id: number
  readonly key: string
  readonly comes: number
  readonly takes: number | undefined
  readonly position: string
  readonly [ACKNOWLEDGER]?: Acknowledger
  /** Number of calls of the handler that fail. */
  readonly failures: number
}

interface Settings {
  readonly concurrency: number
  readonly highWaterMark: number
  readonly retries: number
  readonly keyed: boolean
  /** Whether `deadLetters` is set. */
  readonly deadLetters: boolean
  readonly abortAt: number | undefined
}

/** The time of the last event. */
const END = 60

const time = fc.option(fc.nat(9), { nil: undefined })
const script = fc.record({
  key: fc.constantFrom('a', 'b', 'c', 'd'),
  comes: fc.nat(END),
  takes: time,
  failures: fc.oneof(fc.constant(0), fc.nat(3)),
})
/** Events in the order in which they come. */
const scripts = fc.array(script, { maxLength: 40 }).map((all) =>
  all
    .toSorted((a, b) => a.comes - b.comes)
    .map(({ key, comes, takes, failures }, id): Script => ({
      id,
      position: `${id}`,
      key,
      comes,
      takes,
      failures,
    })),
)
const anySettings: fc.Arbitrary<Settings> = fc.record({
  concurrency: fc.integer({ min: 1, max: 5 }),
  highWaterMark: fc.integer({ min: 1, max: 10 }),
  retries: fc.nat(3),
  keyed: fc.boolean(),
  deadLetters: fc.boolean(),
  abortAt: fc.option(fc.nat(END), { nil: undefined }),
})

/** Plays the scripts in virtual time and checks invariants after each step; returns what was recorded. */
function play(events: readonly Script[], settings: Settings) {
  const { concurrency, highWaterMark, retries, keyed, deadLetters, abortAt } = settings
  const scheduler = new VirtualTimeScheduler()
  const source = new Subject<Script>()
  const stopping = new AbortController()
  const received: Script[] = []
  const started: Script[] = []
  const inFlight = new Set<Script>()
  const attempts = new Map<Script, number>()
  const acknowledged: Script[] = []
  const released: Script[] = []
  const emitted: Script[] = []
  const letters: DeadLetter<Script>[] = []
  const ends: unknown[] = []
  const violations: string[] = []
  let gate: Gate | undefined
  /** Whether no more events may be started. */
  let stopped = false

  // Recorded rather than thrown, since a handler that throws is retried.
  const check = (violation: string, holds: boolean) => {
    if (!holds) violations.push(violation)
  }
  const keysInFlight = () => new Set(Array.from(inFlight, ({ key }) => key))

  const handler = (event: Script) => {
    const attempt = (attempts.get(event) ?? 0) + 1
    attempts.set(event, attempt)
    if (attempt === 1) {
      started.push(event)
      check('started after the end', !stopped)
      check('two of a key at once', !keyed || !keysInFlight().has(event.key))
      inFlight.add(event)
      check('too many at once', inFlight.size <= concurrency)
    }
    const fails = attempt <= event.failures
    const onSettled = () => {
      if (fails && attempt > retries && !deadLetters) stopped = true
    }
    const error = `${event.id}, attempt ${attempt}`
    if (event.takes !== undefined) {
      return new Work(scheduler, event.takes, fails ? { error, onSettled } : {})
    }
    onSettled()
    // oxlint-disable-next-line no-throw-literal
    if (fails) throw error
  }

  const eventAt = (position: string) => {
    const event = playing[Number(position)]
    if (event === undefined) throw new Error(`there is no event ${position}`)
    return event
  }
  const acknowledger: Acknowledger = {
    received: (position) => void received.push(eventAt(position)),
    handedOn: () => {},
    acknowledge(position) {
      acknowledged.push(eventAt(position))
      inFlight.delete(eventAt(position))
    },
    release: (position) => void released.push(eventAt(position)),
    deadLetter: () => {},
  }
  const playing = events.map((event) => ({ ...event, [ACKNOWLEDGER]: acknowledger }))

  /** Checks the invariants between two steps. */
  function checkInvariants(): void {
    if (stopped || ends.length > 0) return
    const waiting = received.filter((event) => !attempts.has(event))
    const busy = keysInFlight()
    const startable = waiting.filter(({ key }) => !keyed || !busy.has(key))
    check(
      'below concurrency although an event could be started',
      inFlight.size === concurrency || startable.length === 0,
    )
    // The gate does not matter once the source has ended.
    if (scheduler.now() > END) return
    check('at the high-water mark with an open gate', waiting.length < highWaterMark || gate?.closed === true)
    check(
      'at half of the high-water mark with a closed gate',
      waiting.length > highWaterMark / 2 || gate?.closed === false,
    )
  }

  defer(() => {
    gate = currentGate()
    return source
  })
    .pipe(
      deliver(handler, {
        concurrency,
        highWaterMark,
        retries,
        initialDelay: 2,
        maxDelay: 4,
        random: () => 1,
        scheduler,
        signal: stopping.signal,
        drainTimeout: Infinity,
        ...(keyed && { key: ({ key }: Script) => key }),
        ...(deadLetters && {
          deadLetters: { next: (letter: DeadLetter<Script>) => void letters.push(letter) },
        }),
      }),
    )
    .subscribe({
      next(event) {
        check('emitted before it was acknowledged', acknowledged.includes(event))
        emitted.push(event)
      },
      error: (error: unknown) => ends.push(error),
      complete: () => ends.push('complete'),
    })

  for (const event of playing) scheduler.schedule(() => source.next(event), event.comes)
  for (let now = 0.5; now < 10 * END; now++) scheduler.schedule(checkInvariants, now)
  scheduler.schedule(() => source.complete(), END + 0.25)
  if (abortAt !== undefined) {
    scheduler.schedule(() => {
      stopped = true
      stopping.abort()
    }, abortAt + 0.25)
  }
  scheduler.maxFrames = Infinity
  scheduler.flush()
  return { received, started, attempts, acknowledged, released, emitted, letters, ends, violations }
}

const ids = (events: readonly Script[]) => events.map(({ id }) => id)
const sorted = (events: readonly Script[]) => ids(events).toSorted((a, b) => a - b)

/** The order in which events have to be started: of each key, or of all. */
function orders(events: readonly Script[], { keyed }: Settings): readonly (readonly number[])[] {
  if (!keyed) return [ids(events)]
  return ['a', 'b', 'c', 'd'].map((wanted) => ids(events.filter(({ key }) => key === wanted)))
}

it('each event is handled or becomes a dead letter, once and in order, and is acknowledged', () => {
  fc.assert(
    fc.property(scripts, anySettings, (events, given) => {
      const chosen = { ...given, deadLetters: true, abortAt: undefined }
      const { retries } = chosen
      const played = play(events, chosen)
      const { received, started, attempts, acknowledged, released, emitted, letters, ends } = played

      const failsForGood = (event: Script) => event.failures > retries
      expect(played.violations).toEqual([])
      expect(ends).toEqual(['complete'])
      expect(ids(received)).toEqual(ids(events))
      expect(orders(started, chosen)).toEqual(orders(events, chosen))
      expect(sorted(acknowledged)).toEqual(ids(events))
      expect(released).toEqual([])
      expect(sorted(emitted)).toEqual(ids(events.filter((event) => !failsForGood(event))))
      expect(sorted(letters.map(({ event }) => event))).toEqual(ids(events.filter(failsForGood)))
      for (const letter of letters) {
        expect(letter.attempts).toBe(retries + 1)
        expect(letter.error).toBe(`${letter.event.id}, attempt ${retries + 1}`)
      }
      for (const event of received) expect(attempts.get(event)).toBe(Math.min(event.failures, retries) + 1)
    }),
    { numRuns: 300 },
  )
})

it('however it ends, each started event is emitted, dead-lettered or failed, and no other is acknowledged', () => {
  fc.assert(
    fc.property(scripts, anySettings, (events, given) => {
      const { received, started, acknowledged, released, emitted, letters, ends, violations } = play(
        events,
        given,
      )

      expect(violations).toEqual([])
      expect(ends).toHaveLength(1)
      expect(ids(received)).toEqual(ids(events).slice(0, received.length))
      for (const [index, order] of orders(started, given).entries()) {
        expect(order).toEqual(orders(received, given)[index]?.slice(0, order.length))
      }
      const ended = [...emitted, ...letters.map(({ event }) => event)]
      expect(sorted(acknowledged)).toEqual(sorted(ended))
      expect(sorted([...acknowledged, ...released])).toEqual(sorted(received))
      expect(new Set(ended).size).toBe(ended.length)
      // Only a failure without dead letters leaves started events without an end of their own.
      const failed = !given.deadLetters && started.some((event) => event.failures > given.retries)
      expect(ends[0] === 'complete').toBe(!failed)
      expect(sorted(failed ? [] : ended)).toEqual(sorted(failed ? [] : started))
      const cutShort = failed || given.abortAt !== undefined
      expect(received.length === events.length || cutShort).toBe(true)
    }),
    { numRuns: 500 },
  )
})
