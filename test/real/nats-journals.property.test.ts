/* oxlint-disable vitest/no-standalone-expect, vitest/expect-expect -- the writer of the test checks */
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FencedError } from '../../src/log/errors.ts'
import { MemoryDeadLetters } from '../../src/log/memory/dead-letters.ts'
import { Processes } from '../../src/log/state/processes.ts'
import type { Fence, Position } from '../../src/log/store/contract.ts'
import type { NewDeadLetter } from '../../src/log/store/dead-letter-store.ts'
import type { ProcessCommit } from '../../src/log/store/process-store.ts'
import { change } from '../operators/events.ts'
import { LogOfJournals } from './nats/opened-journals.ts'
import type { OpenedJournals } from './nats/opened-journals.ts'
import { NatsServer } from './nats/server.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

let server: NatsServer
let logs = 0

beforeAll(async () => {
  server = await NatsServer.start()
})
afterAll(() => server.remove())

const NAME = 'process:p'
const ENTRIES = 8

/** What goes wrong at one of the next messages that the owner publishes. */
type Fault = 'none' | 'killed before' | 'killed after'

const text = fc.constantFrom('a', 'b', 'c', '\ud800', '"', 'long '.repeat(20))
const changes: fc.Arbitrary<Pick<ProcessCommit, 'state' | 'timers' | 'reset'>> = fc.record({
  state: fc.array(fc.record({ key: text, state: fc.option(text.map((each) => JSON.stringify(each))) }), {
    maxLength: 3,
  }),
  timers: fc.array(
    fc.record({
      key: text,
      name: fc.constantFrom('n', 'm'),
      clock: fc.constantFrom('event', 'recorded'),
      due: fc.nat(5),
      cause: text,
      data: fc.oneof(text, fc.constant(null)),
    }),
    { maxLength: 2 },
  ),
  reset: fc.nat(9).map((n) => n === 0),
})
const entry = fc.nat(ENTRIES - 1)
const reader = fc.nat(2)
const anyStep = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      step: fc.constant('commit'),
      changes: fc.option(changes),
      failed: fc.array(entry, { maxLength: 2 }),
      handled: fc.array(entry, { maxLength: 2 }),
      appended: fc.array(fc.nat(30), { maxLength: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ step: fc.constant('redeliver'), by: reader, which: fc.option(entry) }),
  },
  { weight: 1, arbitrary: fc.record({ step: fc.constant('remove'), by: reader, which: fc.option(entry) }) },
  { weight: 3, arbitrary: fc.record({ step: fc.constant('look'), by: reader }) },
  {
    weight: 2,
    arbitrary: fc.record({
      step: fc.constant('take over'),
      fault: fc.constantFrom<Fault[]>('none', 'killed before', 'killed after'),
      at: fc.nat(3),
    }),
  },
)
const steps = fc.array(anyStep, { maxLength: 60, size: 'max' })

type Step = typeof anyStep extends fc.Arbitrary<infer Value> ? Value : never

type CommitStep = Pick<Extract<Step, { step: 'commit' }>, 'changes' | 'failed' | 'handled' | 'appended'>

/** What the log has to be. */
class Model {
  readonly processes: Processes
  readonly letters: MemoryDeadLetters
  cursor: Position | null = null

  constructor(of: LogOfJournals) {
    this.processes = new Processes('the log', of.entries.epoch)
    this.letters = new MemoryDeadLetters(of.entries)
  }
}

/** Everything that an open log knows, without what depends on the numbers of messages. */
async function all({ processes, deadLetters, readers }: OpenedJournals) {
  const range = await processes.range(NAME, { prefix: '', limit: 1_000 })
  const page = await processes.changes(NAME, await processes.start(), { limit: 1_000, present: true })
  const timers = { until: 1e9, limit: 1_000 }
  return {
    checkpoint: (await readers.get(NAME))?.process?.checkpoint,
    states: range.states,
    changes: page.changes.map(({ key, state, position }) => [key, state, changeOf(position)]),
    timers: [
      await processes.timers(NAME, { clock: 'event', ...timers }),
      await processes.timers(NAME, { clock: 'recorded', ...timers }),
    ],
    letters: await deadLetters.list(NAME, null, 1_000),
    marked: (await deadLetters.redeliveries(NAME, 0, 1_000)).deadLetters,
  }
}

function modelled({ processes, letters }: Model): Awaited<ReturnType<typeof all>> {
  const page = processes.changes(NAME, processes.positions.start, { limit: 1_000, present: true })
  const timers = { until: 1e9, limit: 1_000 }
  return {
    checkpoint: processes.process(NAME)?.checkpoint,
    states: processes.range(NAME, { prefix: '', limit: 1_000 }).states,
    changes: page.changes.map(({ key, state, position }) => [key, state, changeOf(position)]),
    timers: [
      processes.timers(NAME, { clock: 'event', ...timers }),
      processes.timers(NAME, { clock: 'recorded', ...timers }),
    ],
    letters: letters.list(NAME, null, 1_000),
    marked: letters.redeliveries(NAME, 0, 1_000).deadLetters,
  }
}

/** The number of a change within its generation. */
const changeOf = (position: Position) => position.slice(position.lastIndexOf('.'))

/** The open log that writes, and those that wrote before it. */
class Writer {
  readonly #of: LogOfJournals
  readonly #positions: readonly Position[]
  readonly #opened: OpenedJournals[]
  readonly model: Model
  log: OpenedJournals
  fence: Fence
  #count = 0

  static async start(of: LogOfJournals, positions: readonly Position[]): Promise<Writer> {
    const log = await of.open('owner')
    return new Writer(of, positions, log, await log.claims.claim(NAME))
  }

  private constructor(of: LogOfJournals, positions: readonly Position[], log: OpenedJournals, fence: Fence) {
    this.#of = of
    this.#positions = positions
    this.#opened = [log]
    this.log = log
    this.fence = fence
    this.model = new Model(of)
  }

  at(n: number): Position {
    return this.#positions[n % ENTRIES] ?? ''
  }

  /** A commit, and what it makes of the model. */
  commit({ changes: given, failed, handled, appended }: CommitStep) {
    const { model } = this
    const number = ++this.#count
    // Another one each time.
    const cursor = this.at(number)
    const deadLetters = failed.map((n): NewDeadLetter => {
      return { position: this.at(n), error: { name: 'Error', message: `${number}` }, attempts: number }
    })
    const redelivered = handled.map((n) => this.at(n))
    const process = given && { checkpoint: `checkpoint ${number}`, ...given }
    const entries = appended.map((n) => newEntry(change(`output ${n}`, 'out')))
    const { instance } = this.log.claims
    const written = this.log.commit(this.fence, {
      expect: model.cursor,
      cursor,
      acknowledged: [],
      deadLetters,
      redelivered,
      entries,
      ...(process !== null && { process }),
    })
    const apply = () => {
      for (const letter of deadLetters) model.letters.put(NAME, letter, this.#of.now)
      for (const position of redelivered) model.letters.remove(NAME, position)
      if (process !== null) model.processes.commit(NAME, process, instance)
      model.cursor = cursor
    }
    return { written, apply }
  }

  /** Another one takes over after a last commit, within which this one may have been killed. */
  async succeed(fault: Fault, at: number): Promise<void> {
    const { log, fence, model } = this
    kill(log, fault, at)
    const { written, apply } = this.commit({
      changes: { state: [{ key: 'last', state: '1' }], timers: [], reset: false },
      failed: [1],
      handled: [],
      appended: [at],
    })
    const [{ status }] = await Promise.allSettled([written])
    await log.connection.leases.delete(log.claims.instance)
    this.log = await this.#of.open(`owner ${this.#opened.length}`)
    this.#opened.push(this.log)
    this.fence = await this.log.claims.claim(NAME)
    // A write that was rejected in its middle is there, or it is not.
    const isThere = (await this.log.readers.get(NAME))?.cursor !== (model.cursor ?? undefined)
    expect(isThere || status === 'rejected').toBe(true)
    if (isThere) apply()
    const late = log.commit(fence, { expect: model.cursor, cursor: this.at(0), acknowledged: [] })
    await expect(late).rejects.toBeInstanceOf(fault === 'none' ? FencedError : Error)
  }

  /** Another open log changes dead letters. */
  async changeLetters(by: OpenedJournals, how: 'redeliver' | 'remove', n: number | null): Promise<void> {
    const { letters } = this.model
    const which = n === null ? 'all' : this.at(n)
    const changed = await by.deadLetters[how](NAME, which)
    expect(changed).toBe(how === 'remove' ? letters.remove(NAME, which) : letters.redeliver(NAME, which))
  }

  async check(log: OpenedJournals): Promise<void> {
    expect(await all(log)).toEqual(modelled(this.model))
  }

  async close(): Promise<void> {
    await Promise.all(this.#opened.map((each) => each.close().catch(() => {})))
  }
}

it('each open log has the same states, timers and dead letters, whichever writes, dies within a write, or makes the journal short', async () => {
  await fc.assert(
    fc.asyncProperty(
      steps,
      fc.constantFrom(3, 10),
      fc.constantFrom(0, 60_000),
      async (play, messages, idle) => {
        const under = new LogOfJournals(server, `log${++logs}`, 600_000, { messages, bytes: 100_000, idle })
        const writer = await Writer.start(
          under,
          under.append(...Array.from({ length: ENTRIES }, (_, n) => `entry ${n}`)),
        )
        const others = await Promise.all(['1', '2', '3'].map((owner) => under.open(owner)))
        const other = (n: number) => others[n] ?? writer.log
        for (const step of play) {
          if (step.step === 'commit') {
            const { written, apply } = writer.commit(step)
            await written
            apply()
          } else if (step.step === 'look') {
            await writer.check(other(step.by))
          } else if (step.step !== 'take over') {
            await writer.changeLetters(other(step.by), step.step, step.which)
          } else {
            await writer.succeed(step.fault, step.at)
          }
        }
        const fresh = await under.open('fresh')
        for (const each of [...others, fresh, writer.log]) await writer.check(each)
        await Promise.all([...others, fresh].map((each) => each.close()))
        await writer.close()
      },
    ),
    { numRuns: 20 },
  )
})

/** At one of the next messages, nothing more is published: before it is stored, or after it. */
function kill({ connection: { publisher } }: OpenedJournals, fault: Fault, at: number): void {
  if (fault === 'none') return
  const publish = publisher.publish.bind(publisher)
  let count = 0
  publisher.publish = async (message) => {
    const isLast = count++ === at
    if (isLast && fault === 'killed after') await publish(message)
    if (count > at) throw new TypeError('the process is killed')
    return publish(message)
  }
}
