import * as fc from 'fast-check'
import { defer, Subject, VirtualTimeScheduler } from 'rxjs'
import { deliver } from 'rivulet/operators'
import type { DeadLetter, Gate } from 'rivulet/operators'
import { expect, it } from 'vitest'
import { currentGate } from '../../src/protocol/gate.ts'
import { Work } from './handlers.ts'

/** An event, and what becomes of it. Times are in ms; `undefined` is done within the call. */
interface Script {
  readonly id: number
  readonly key: string
  readonly comes: number
  readonly takes: number | undefined
  readonly saving: number | undefined
  /** How many calls of the handler fail. */
  readonly failures: number
}

interface Settings {
  readonly concurrency: number
  readonly highWaterMark: number
  readonly retries: number
  readonly keyed: boolean
  /** Whether there are dead letters. */
  readonly buries: boolean
  readonly abortAt: number | undefined
}

/** After this time nothing comes. */
const END = 60

const time = fc.option(fc.nat(9), { nil: undefined })
const script = fc.record({
  key: fc.constantFrom('a', 'b', 'c', 'd'),
  comes: fc.nat(END),
  takes: time,
  saving: time,
  failures: fc.oneof(fc.constant(0), fc.nat(3)),
})
const scripts = fc.array(script, { maxLength: 40 }).map((all) =>
  all
    .toSorted((a, b) => a.comes - b.comes)
    .map(({ key, comes, takes, saving, failures }, id): Script => ({
      id,
      key,
      comes,
      takes,
      saving,
      failures,
    })),
)
const anySettings: fc.Arbitrary<Settings> = fc.record({
  concurrency: fc.integer({ min: 1, max: 5 }),
  highWaterMark: fc.integer({ min: 1, max: 10 }),
  retries: fc.nat(3),
  keyed: fc.boolean(),
  buries: fc.boolean(),
  abortAt: fc.option(fc.nat(END), { nil: undefined }),
})

/** Plays the scripts in virtual time and looks at the state of things after each step; returns what was seen. */
function play(events: readonly Script[], settings: Settings) {
  const { concurrency, highWaterMark, retries, keyed, buries, abortAt } = settings
  const scheduler = new VirtualTimeScheduler()
  const source = new Subject<Script>()
  const stopping = new AbortController()
  const received: Script[] = []
  const started: Script[] = []
  const inFlight = new Set<Script>()
  const attempts = new Map<Script, number>()
  const saved: Script[] = []
  const emitted: Script[] = []
  const letters: DeadLetter<Script>[] = []
  const ends: unknown[] = []
  const violations: string[] = []
  let gate: Gate | undefined
  /** Whether nothing may be started any more. */
  let stopped = false

  // Noted rather than thrown, since it would be a failure of the handler.
  const note = (violation: string, holds: boolean) => {
    if (!holds) violations.push(violation)
  }
  const keysInFlight = () => new Set(Array.from(inFlight, ({ key }) => key))

  const handler = (event: Script) => {
    const attempt = (attempts.get(event) ?? 0) + 1
    attempts.set(event, attempt)
    if (attempt === 1) {
      started.push(event)
      note('started after the end', !stopped)
      note('two of a key at once', !keyed || !keysInFlight().has(event.key))
      inFlight.add(event)
      note('too many at once', inFlight.size <= concurrency)
    }
    const fails = attempt <= event.failures
    const onSettled = () => {
      if (fails && attempt > retries && !buries) stopped = true
    }
    const error = `${event.id}, attempt ${attempt}`
    if (event.takes !== undefined) {
      return new Work(scheduler, event.takes, fails ? { error, onSettled } : {})
    }
    onSettled()
    // oxlint-disable-next-line no-throw-literal
    if (fails) throw error
  }

  const checkpoint = {
    received: (event: Script) => void received.push(event),
    handled(event: Script) {
      const onSettled = () => {
        saved.push(event)
        inFlight.delete(event)
      }
      if (event.saving === undefined) return onSettled()
      return new Work(scheduler, event.saving, { onSettled })
    },
  }

  /** What must hold between two steps, while things go on. */
  function lookAround(): void {
    if (stopped || ends.length > 0) return
    const waiting = received.filter((event) => !attempts.has(event))
    const busy = keysInFlight()
    const startable = waiting.filter(({ key }) => !keyed || !busy.has(key))
    note(
      'a slot is free although one could be started',
      inFlight.size === concurrency || startable.length === 0,
    )
    // A source that has ended needs no gate.
    if (scheduler.now() > END) return
    note('full, and the gate open', waiting.length < highWaterMark || gate?.closed === true)
    note('half empty, and the gate closed', waiting.length > highWaterMark / 2 || gate?.closed === false)
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
        checkpoint,
        signal: stopping.signal,
        drainTimeout: Infinity,
        ...(keyed && { key: ({ key }: Script) => key }),
        ...(buries && { deadLetters: { next: (letter: DeadLetter<Script>) => void letters.push(letter) } }),
      }),
    )
    .subscribe({
      next(event) {
        note('emitted before it was saved', saved.includes(event))
        emitted.push(event)
      },
      error: (error: unknown) => ends.push(error),
      complete: () => ends.push('complete'),
    })

  for (const event of events) scheduler.schedule(() => source.next(event), event.comes)
  for (let now = 0.5; now < 10 * END; now++) scheduler.schedule(lookAround, now)
  scheduler.schedule(() => source.complete(), END + 0.25)
  if (abortAt !== undefined) {
    scheduler.schedule(() => {
      stopped = true
      stopping.abort()
    }, abortAt + 0.25)
  }
  scheduler.maxFrames = Infinity
  scheduler.flush()
  return { received, started, attempts, saved, emitted, letters, ends, violations }
}

const ids = (events: readonly Script[]) => events.map(({ id }) => id)
const sorted = (events: readonly Script[]) => ids(events).toSorted((a, b) => a - b)

/** The order in which events have to be started: of each key, or of all. */
function orders(events: readonly Script[], { keyed }: Settings): readonly (readonly number[])[] {
  if (!keyed) return [ids(events)]
  return ['a', 'b', 'c', 'd'].map((wanted) => ids(events.filter(({ key }) => key === wanted)))
}

it('each event is handled or becomes a dead letter, once and in order, and is saved', () => {
  fc.assert(
    fc.property(scripts, anySettings, (events, given) => {
      const chosen = { ...given, buries: true, abortAt: undefined }
      const { retries } = chosen
      const { received, started, attempts, saved, emitted, letters, ends, violations } = play(events, chosen)

      const hopeless = (event: Script) => event.failures > retries
      expect(violations).toEqual([])
      expect(ends).toEqual(['complete'])
      expect(ids(received)).toEqual(ids(events))
      expect(orders(started, chosen)).toEqual(orders(events, chosen))
      expect(sorted(saved)).toEqual(ids(events))
      expect(sorted(emitted)).toEqual(ids(events.filter((event) => !hopeless(event))))
      expect(sorted(letters.map(({ event }) => event))).toEqual(ids(events.filter(hopeless)))
      for (const letter of letters) {
        expect(letter.attempts).toBe(retries + 1)
        expect(letter.error).toBe(`${letter.event.id}, attempt ${retries + 1}`)
      }
      for (const event of events) expect(attempts.get(event)).toBe(Math.min(event.failures, retries) + 1)
    }),
    { numRuns: 300 },
  )
})

it('whatever ends it, what was started is accounted for, and nothing else was touched', () => {
  fc.assert(
    fc.property(scripts, anySettings, (events, given) => {
      const { received, started, saved, emitted, letters, ends, violations } = play(events, given)

      expect(violations).toEqual([])
      expect(ends).toHaveLength(1)
      expect(ids(received)).toEqual(ids(events).slice(0, received.length))
      for (const [index, order] of orders(started, given).entries()) {
        expect(order).toEqual(orders(received, given)[index]?.slice(0, order.length))
      }
      const over = [...emitted, ...letters.map(({ event }) => event)]
      expect(sorted(saved)).toEqual(sorted(over))
      expect(new Set(over).size).toBe(over.length)
      // Only a failure for good lets something that was started go without an end of its own.
      const failed = !given.buries && started.some((event) => event.failures > given.retries)
      expect(ends[0] === 'complete').toBe(!failed)
      expect(sorted(failed ? [] : over)).toEqual(sorted(failed ? [] : started))
      const cutShort = failed || given.abortAt !== undefined
      expect(received.length === events.length || cutShort).toBe(true)
    }),
    { numRuns: 500 },
  )
})
