import { isDeepStrictEqual } from 'node:util'
import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { LogInUseError, LogPositionError, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { Entry, EventLog, LogJob, NewEntry } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import type { ProcessContext } from 'rivulet/streams'
import { change } from '../../operators/events.ts'
import { readAll } from '../conformance/fixture.ts'
import { tickAt } from '../../support/ticks.ts'
import type { OpenWithFaults } from './faulty-logs.ts'
import { interpret, outputText } from './interpreter.ts'
import type { PlainProcess, Tally } from './interpreter.ts'
import { monitorSource } from '../../../src/protocol/event.ts'
import { behindEvent, caughtUpEvent } from '../../../src/protocol/log-event.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

export const appended = fc.record({
  monitor: fc.nat({ max: 3 }),
  /** How much later than the entry before it is recorded, in ms. */
  delay: fc.oneof(fc.nat({ max: 3 }), fc.nat({ max: 60 })),
  /** By how much its event time is earlier. */
  age: fc.oneof(fc.nat({ max: 2 }), fc.nat({ max: 40 })),
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant('new' as const) },
    { weight: 1, arbitrary: fc.constantFrom('tick' as const, 'duplicate' as const, 'backfill' as const) },
    { weight: 3, arbitrary: fc.constantFrom('tick' as const, 'behind' as const, 'caughtUp' as const) },
  ),
  /** What the process does with it. */
  program: fc.nat({ max: 0xffff }),
})

/** The event of these kinds; undefined for another kind. */
export function timeEvent(
  { monitor, age, kind, program }: typeof appended extends fc.Arbitrary<infer T> ? T : never,
  now: number,
): ResearchEvent | undefined {
  // A source, or what the process may have as a key.
  const source = program % 3 === 0 ? `m${monitor}` : monitorSource(`m${monitor}`)
  const through = now - age
  switch (kind) {
    case 'tick':
      return tickAt(now, through, age % 3 !== 0)
    case 'behind': {
      const times = { through: program % 5 === 0 ? -Infinity : through }
      const until = program % 4 === 0 ? Infinity : now + (program % 60)
      return behindEvent(source, `${now} ${program}`, { ...times, until }, now)
    }
    case 'caughtUp':
      return caughtUpEvent(source, `${now} ${program}`, through, now)
    default:
      return undefined
  }
}

const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('append' as const),
      entries: fc.array(appended, { minLength: 1, maxLength: 12 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ does: fc.constant('wait' as const), turns: fc.integer({ min: 1, max: 12 }) }),
  },
  { weight: 2, arbitrary: fc.constant({ does: 'kill' as const }) },
  { weight: 1, arbitrary: fc.constant({ does: 'stop' as const }) },
  { weight: 1, arbitrary: fc.constant({ does: 'cut follower' as const }) },
)

export const scenario = fc.record({
  lateness: fc.constantFrom(0, 5, 20),
  timeToLive: fc.option(fc.integer({ min: 1, max: 80 }), { nil: undefined }),
  /** Which writes of the store crash. */
  crashes: fc.array(fc.nat({ max: 50 }), { maxLength: 5 }),
  steps: fc.array(step, { maxLength: 30 }),
})

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never

/** A process that does what the bits of its entries and times say. */
export function randomProcess(lateness: number, timeToLive: number | undefined): PlainProcess {
  const act = (state: Tally, bits: number, from: number, context: ProcessContext<Tally>) => {
    const next = { seen: state.seen + 1, trace: (state.trace * 31 + bits) % 65_521 }
    const now = [context.now(), context.now('event'), context.complete]
    if (bits & 1) context.append({ type: 'unknown', data: { ...next, key: context.key, now } })
    if (bits % 7 === 0) context.set(null)
    else if (bits % 5 !== 0) context.set(bits % 3 === 0 ? state : next)
    const clock = bits & 8 ? 'event' : 'recorded'
    const data = bits % 3 === 0 ? { bits } : undefined
    if (bits & 2) context.timer(`t${bits % 4}`, from + 1 + (bits >> 6) / 8, { clock, data })
    if (bits & 4) context.cancel(`t${(bits >> 4) % 4}`)
    if (bits % 11 === 0) context.append({ type: 'unknown', data: 'second', source: `/own/${context.key}` })
  }
  return {
    lateness,
    timeToLive,
    key: (entry) => {
      if (entry.type === 'log.tick') return undefined
      const key = entry.source.slice(-2)
      const bits = programOf(entry)
      // Some entries are of more keys than a commit takes calls.
      if (bits % 97 === 0) return Array.from({ length: 700 }, (_, n) => `${key}${(n * 7) % 700}`)
      return bits % 4 === 0 ? [key, 'm1', `${key}+`, key] : key
    },
    event: (state, entry, context) => act(state, programOf(entry), entry.recorded - 20, context),
    // Ends after some steps: the bits get fewer.
    timer: (state, due, context, name, data) => {
      if (data !== undefined) context.append({ type: 'unknown', data: { key: context.key, name, data } })
      act(state, (state.trace ^ due) & 0x3fff & ~((due % 3) * 2), due, {
        ...bound(context),
        timer: (timerName, at, options) =>
          context.timer(`${name.slice(0, 2)}${timerName.slice(0, 1)}`, at, options),
      })
    },
  }
}

function bound(context: ProcessContext<Tally>): ProcessContext<Tally> {
  return {
    key: context.key,
    complete: context.complete,
    now: (clock) => context.now(clock),
    set: (state) => context.set(state),
    timer: (...args) => context.timer(...args),
    cancel: (name) => context.cancel(name),
    append: (event) => context.append(event),
  }
}

function programOf(entry: Entry): number {
  return entry.type === 'monitor.event_stream' ? Number(entry.id.split(':')[1]) : 1
}

/** Runs a scenario. Returns what is left, and what one plain run over the same entries leaves. */
export async function runScenario(
  { lateness, timeToLive, crashes, steps }: Scenario,
  appendSize: number,
  open: OpenWithFaults,
  /** From which life on it is shared, among several at a time. */
  sharedFrom = Infinity,
): Promise<{ readonly left: unknown; readonly expected: unknown }> {
  let now = 1_000_000
  const underTest = open(() => now)
  let writes = 0
  const crashing = () => crashes.includes((writes += 1))
  const root = underTest.connect(() => false)
  const recorder = await root.claim('stream:test')
  const plain = randomProcess(lateness, timeToLive)
  const options = {
    version: 1,
    init: (): Tally => ({ seen: 0, trace: 0 }),
    ...plain,
    ...(timeToLive === undefined && { timeToLive: undefined }),
  }
  const lives: { readonly log: EventLog; readonly job: LogJob; failure: unknown }[] = []
  const opened: LogStore[] = []

  const live = async (isDue: () => boolean, isShared = lives.length >= sharedFrom) => {
    // Also what was claimed after the death of the one that claimed it.
    for (const store of opened) await underTest.loseClaims(store)
    let isOpen = false
    const store = underTest.connect(() => isOpen && isDue())
    opened.push(store)
    const log = await openLog(store)
    isOpen = true
    const job = log.process('p', { ...options, share: isShared })
    const life = { log, job, failure: undefined as unknown }
    job.done.catch((error: unknown) => (life.failure = error))
    lives.push(life)
    return life
  }

  // A reader that follows the changes, and resumes where it was cut.
  const followed = new Map<string, Tally>()
  let seenAt: string | undefined
  const reader = await openLog(underTest.connect(() => false))
  const follow = () =>
    reader
      .state<Tally>('p')
      .changes(seenAt)
      .subscribe({
        next({ key, state, position }) {
          if (state === null) followed.delete(key)
          else followed.set(key, state)
          seenAt = position
        },
        error(error: unknown) {
          // It was divided: its positions are others.
          if (!(error instanceof LogPositionError) || sharedFrom === Infinity) throw error
          followed.clear()
          seenAt = undefined
          follower = follow()
        },
      })
  let follower = follow()

  try {
    let events = 0
    let last: ResearchEvent | undefined
    let running: Awaited<ReturnType<typeof live>> | undefined
    for (const [index, each] of steps.entries()) {
      running ??= await live(crashing)
      // It joins the one that runs, which may lose its claims.
      if (index % 4 === 3 && lives.length > sharedFrom) await live(crashing)
      const { log, job } = running
      const failed = job.done.then(
        () => false,
        () => true,
      )
      if (each.does === 'append') {
        let made: NewEntry[] = []
        const append = async () => {
          await root.append([{ fence: recorder, expect: null, entries: made }])
          made = []
        }
        for (const given of each.entries) {
          const { monitor, delay, age, kind, program } = given
          now += delay
          const time = new Date(now - age).toISOString()
          const fresh: ResearchEvent = timeEvent(given, now) ?? {
            ...change(`${(events += 1)}:${program}`, `m${monitor}`),
            time,
            received: time,
          }
          const event: ResearchEvent = kind === 'duplicate' && last !== undefined ? last : fresh
          last = event
          made.push(newEntry(event, kind === 'backfill'))
          if (made.length === appendSize) await append()
        }
        await append()
      } else if (each.does === 'wait') for (let n = 0; n < each.turns; n++) await turn()
      else if (each.does === 'cut follower') {
        follower.unsubscribe()
        follower = follow()
      } else {
        // The writes of a killed one that are on their way may still have their effect.
        if (each.does === 'stop') await log.close().catch(() => {})
        running = undefined
      }
      if (running !== undefined && (await Promise.race([failed, turn(false)]))) {
        await log.close().catch(() => {})
        running = undefined
      }
    }
    let final = await live(() => false, sharedFrom < Infinity)
    // Until it has read what it has appended.
    const readers =
      sharedFrom === Infinity ? ['process:p'] : Array.from({ length: 8 }, (_, n) => `process.${n}:p`)
    const isDone = async () => {
      const end = await root.positionAt('end')
      const cursors = await Promise.all(readers.map(async (name) => (await root.reader(name))?.cursor))
      return cursors.every((cursor) => cursor === end)
    }
    for (let turns = 0; !(await isDone()); turns++) {
      if (turns > 100_000) throw new Error('the process does not come to the end')
      // A killed one has claimed the name at the last moment.
      if (final.failure instanceof LogInUseError) final = await live(() => false, sharedFrom < Infinity)
      else if (final.failure !== undefined) throw final.failure
      // Those that died hold what they have claimed at last.
      if (sharedFrom < Infinity) for (const store of opened.slice(0, -1)) await underTest.loseClaims(store)
      await turn()
    }
    const entries = await readAll(root)
    const expected = interpret(entries, 'p', plain)
    const { state, position } = await reader.state<Tally>('p').snapshot()
    const output = entries.filter(({ cause }) => cause?.process === 'p').map(outputText)
    const isFollowed = () =>
      seenAt === position ||
      (state.size === 0 && followed.size === 0) ||
      (sharedFrom < Infinity && isDeepStrictEqual(followed, new Map(state)))
    for (let turns = 0; !isFollowed(); turns++) {
      if (turns > 100_000) throw new Error('the follower does not come to the end')
      await isDone()
      await turn()
    }
    // Order is promised within a source.
    const bySource = (texts: readonly string[]) =>
      sharedFrom < Infinity ? byKey(texts) : Object.groupBy(texts, (text) => String(JSON.parse(text)[0]))
    return {
      left: { state: sharedFrom < Infinity ? sorted(state) : [...state], output: bySource(output), followed },
      expected: {
        state: sharedFrom < Infinity ? sorted(expected.state) : expected.state,
        output: bySource(expected.output),
        followed: new Map(expected.state),
      },
    }
  } finally {
    follower.unsubscribe()
    await Promise.all(lives.map(({ log }) => log.close().catch(() => {})))
    await reader.close()
    await root.close()
    await underTest.remove()
  }
}

/** Outputs by the key that has made them. The keys of a shared process have no order between them. */
function byKey(texts: readonly string[]) {
  return Object.groupBy(texts, (text) => {
    const [source, , , data] = JSON.parse(text)
    return String(data.key ?? source)
  })
}

function sorted(state: Iterable<readonly [string, Tally]>) {
  return [...state].toSorted(([a], [b]) => (a < b ? -1 : 1))
}
