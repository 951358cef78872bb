/* oxlint-disable vitest/no-standalone-expect -- called within the tests of describeLogModel */
import * as fc from 'fast-check'
import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import type { Entry, Fence, LogStore, Position } from '../../../src/log/store/contract.ts'
import { FencedError } from '../../../src/log/errors.ts'
import { logCompleteness } from '../../../src/log/store/completeness.ts'
import { runEvent } from '../../../src/protocol/event.ts'
import { change, taskRun } from '../../operators/events.ts'
import type { LogUnderTest, OpenFreshLog } from './fixture.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** What the log has to hold of an entry. */
interface ModelEntry {
  readonly id: string
  readonly type: string
  readonly revision: number
  readonly completeness: number
}

/** A log as it should be: the entries of each source, and the upstream position of each stream. */
class Model {
  readonly sources = new Map<string, ModelEntry[]>()
  readonly positions = new Map<string, string>()

  append({ source, id, type }: ResearchEvent, parts: number): void {
    const entries = this.sources.get(source) ?? []
    this.sources.set(source, entries)
    const latest = entries.findLast((entry) => entry.id === id)
    const merged = (latest?.completeness ?? 0) | parts
    if (latest?.completeness === merged) return
    entries.push({ id, type, revision: (latest?.revision ?? 0) + 1, completeness: merged })
  }
}

/** An event with these parts: 1 output, 2 error, 4 input, 8 warnings, 16 group. Monitors' events have none. */
interface Appended {
  readonly of: 'run' | 'monitor'
  readonly number: number
  readonly parts: number
}

function eventOf({ of, number, parts }: Appended): ResearchEvent {
  if (of === 'monitor') return change(`e${number}`, number % 2 === 0 ? 'even' : 'odd')
  const error = parts & 2 ? { ref_id: 'ref', message: 'no luck', detail: null } : null
  return runEvent(
    {
      run: taskRun(`r${number % 4}`, 'completed', {
        error,
        warnings: parts & 8 ? [{ type: 'warning', message: 'careful' }] : null,
        taskgroup_id: parts & 16 ? 'tgrp_1' : null,
      }),
      output: parts & 1 ? { type: 'text', content: 'found', basis: [] } : null,
      input: parts & 4 ? { input: 'ask', processor: 'base' } : null,
    },
    'stream',
  )
}

/** How a name changes hands. */
type Succession = 'killed' | 'closed' | 'released' | 'claimed again'

/** A process that writes under some names. */
class Process {
  log: LogStore
  readonly names: readonly string[]
  readonly #underTest: LogUnderTest
  #fences = new Map<string, Fence>()

  static async start(underTest: LogUnderTest, ...names: string[]): Promise<Process> {
    const started = new Process(underTest, names, await underTest.connect(names.join(' and ')))
    await started.#claim()
    return started
  }

  private constructor(underTest: LogUnderTest, names: readonly string[], log: LogStore) {
    this.#underTest = underTest
    this.names = names
    this.log = log
  }

  fence(name: string): Fence {
    const fence = this.#fences.get(name)
    if (fence === undefined) throw new Error(`${name} is not claimed`)
    return fence
  }

  /** Another process takes over. What this one still writes is refused. */
  async succeed(
    how: Succession,
    lateWrite: (log: LogStore, fence: Fence) => Promise<unknown>,
  ): Promise<void> {
    const { log } = this
    const fences = [...this.#fences.values()]
    if (how === 'killed') await this.#underTest.loseClaims(log)
    if (how === 'closed') await log.close()
    if (how === 'released') for (const fence of fences) await log.release(fence)
    if (how !== 'claimed again') this.log = await this.#underTest.connect(this.names.join(' and '))
    await this.#claim()
    for (const fence of fences) {
      expect(this.fence(fence.name).token).toBeGreaterThan(fence.token)
      if (how !== 'closed') await expect(lateWrite(log, fence)).rejects.toBeInstanceOf(FencedError)
    }
    if (how === 'killed' || how === 'released') await log.close()
  }

  async #claim(): Promise<void> {
    for (const name of this.names) this.#fences.set(name, await this.log.claim(name))
  }
}

/** A reader that commits now and then, and resumes from what it committed. */
class Reader {
  /** Everything that was ever read, in order. What is read again has to be the same. */
  readonly #seen: Entry[] = []
  #read = 0
  #position: Position
  #committed: { readonly cursor: Position; readonly acknowledged: readonly Position[] } | undefined
  readonly #start: Position
  readonly #process: Process
  readonly #name: string
  readonly #types: readonly string[] | undefined

  constructor(process: Process, start: Position, types?: readonly string[]) {
    this.#process = process
    this.#start = start
    this.#position = start
    this.#types = types
    this.#name = process.names.join()
  }

  /** Reads a page. Returns whether it was the last. */
  async read(limit: number): Promise<boolean> {
    const page = await this.#process.log.read(this.#position, { limit, types: this.#types })
    expect(page.entries.length).toBeLessThanOrEqual(limit)
    for (const entry of page.entries) {
      const before = this.#seen[this.#read]
      if (before === undefined) this.#seen.push(entry)
      else expect(entry).toEqual(before)
      this.#read += 1
    }
    this.#position = page.position
    return page.isEnd
  }

  /** Acknowledges all but some of what was read, and every second one of these. */
  async commit(open: number): Promise<void> {
    const until = Math.max(0, this.#read - open)
    const next = {
      cursor: this.#seen[until - 1]?.position ?? this.#start,
      acknowledged: this.#seen
        .slice(until, this.#read)
        .filter((_, i) => i % 2 === 1)
        .map(({ position }) => position),
    }
    const expected = this.#committed?.cursor ?? null
    await this.#process.log.commit(this.#process.fence(this.#name), { expect: expected, ...next })
    this.#committed = next
  }

  /** Another process resumes from what was committed. */
  async restart(how: Succession): Promise<void> {
    const late = { expect: this.#committed?.cursor ?? null, cursor: this.#start, acknowledged: [] }
    await this.#process.succeed(how, (log, fence) => log.commit(fence, late))
    expect(await this.#process.log.reader(this.#name)).toEqual(this.#committed)
    this.#position = this.#committed?.cursor ?? this.#start
    this.#read = this.#seen.findIndex(({ position }) => position === this.#position) + 1
  }

  /** Reads to the end and compares everything with the model. */
  async check(model: Model): Promise<void> {
    while (!(await this.read(3)));
    expect(this.#read).toBe(this.#seen.length)
    const isWanted = ({ type }: ModelEntry) => this.#types === undefined || this.#types.includes(type)
    const wanted = [...model.sources]
      .map(([source, entries]) => [source, entries.filter(isWanted)] as const)
      .filter(([, entries]) => entries.length > 0)
    const read = Map.groupBy(this.#seen, ({ source }) => source)
    expect(read.size).toBe(wanted.length)
    for (const [source, entries] of wanted) {
      const actual = read.get(source)?.map((entry) => ({
        id: entry.id,
        type: entry.type,
        revision: entry.revision,
        completeness: logCompleteness(entry),
      }))
      expect(actual).toEqual(entries)
    }
    const recorded = this.#seen.map((entry) => entry.recorded)
    expect(recorded).toEqual(recorded.toSorted((a, b) => a - b))
    expect(new Set(this.#seen.map(({ position }) => position)).size).toBe(this.#seen.length)
  }
}

/** The first two are of one process. */
const STREAMS = ['stream 1', 'stream 2', 'stream 3'] as const

const appended: fc.Arbitrary<Appended> = fc.record({
  of: fc.constantFrom('run', 'monitor'),
  number: fc.nat(11),
  parts: fc.nat(31),
})
const events = fc.array(appended, { maxLength: 6 })
const stream = fc.constantFrom(...STREAMS)
const reader = fc.constantFrom(0, 1)
const how = fc.constantFrom<Succession[]>('killed', 'closed', 'released', 'claimed again')
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ step: fc.constant('append'), stream, events, moves: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ step: fc.constant('append together'), events, more: events }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('take over'), stream, events, how }) },
    {
      weight: 6,
      arbitrary: fc.record({ step: fc.constant('read'), reader, limit: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 3, arbitrary: fc.record({ step: fc.constant('commit'), reader, open: fc.nat(6) }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('restart'), reader, how }) },
    {
      weight: 1,
      arbitrary: fc.record({ step: fc.constant('time'), by: fc.integer({ min: -50, max: 100 }) }),
    },
  ),
  { maxLength: 40 },
)

/** Random play of a log against a model. */
export function describeLogModel(suite: string, openFresh: OpenFreshLog): void {
  describe(`${suite}: against a model`, () => {
    it('gives each reader exactly the entries of each source in order, whichever open logs write, read and die', async () => {
      await fc.assert(
        fc.asyncProperty(steps, async (play) => {
          let now = 1_000
          const underTest = await openFresh({ clock: () => now })
          try {
            const model = new Model()
            const [first, second, third] = STREAMS
            const recorder = await Process.start(underTest, first, second)
            const other = await Process.start(underTest, third)
            const writerOf = (name: string) => (name === third ? other : recorder)
            const start = await recorder.log.positionAt('start')
            const readers = [
              new Reader(await Process.start(underTest, 'reader 1'), start),
              new Reader(await Process.start(underTest, 'reader 2'), start, ['task_run.state']),
            ]
            let moves = 0

            const streamAppend = (name: string, list: readonly Appended[], isMoved: boolean) => ({
              fence: writerOf(name).fence(name),
              expect: model.positions.get(name) ?? null,
              ...(isMoved && { position: `p${++moves}` }),
              entries: list.map((event) => newEntry(eventOf(event))),
            })
            const append = async (...streams: readonly Parameters<typeof streamAppend>[]) => {
              const appends = streams.map((each) => streamAppend(...each))
              const before = countOf(model)
              for (const { fence, position } of appends) {
                if (position !== undefined) model.positions.set(fence.name, position)
              }
              const given = streams.flatMap(([, list]) => list)
              for (const each of given) model.append(eventOf(each), each.of === 'run' ? each.parts : 0)
              const { entries, duplicates } = await writerOf(streams[0]?.[0] ?? first).log.append(appends)
              expect(entries).toBe(countOf(model) - before)
              expect(duplicates).toBe(given.length - entries)
            }

            for (const step of play) {
              if (step.step === 'append') {
                await append([step.stream, step.events, step.moves])
              } else if (step.step === 'append together') {
                await append([first, step.events, true], [second, step.more, false])
              } else if (step.step === 'take over') {
                await writerOf(step.stream).succeed(step.how, (log, fence) =>
                  log.append([{ ...streamAppend(fence.name, step.events, true), fence }]),
                )
              } else if (step.step === 'read') {
                await readers[step.reader]?.read(step.limit)
              } else if (step.step === 'commit') {
                await readers[step.reader]?.commit(step.open)
              } else if (step.step === 'restart') {
                await readers[step.reader]?.restart(step.how)
              } else {
                now += step.by
              }
            }
            for (const each of readers) await each.check(model)
            expect(await recorder.log.streamPositions(STREAMS)).toEqual(
              STREAMS.map((name) => model.positions.get(name) ?? null),
            )
          } finally {
            await underTest.remove()
          }
        }),
        { numRuns: 60 },
      )
    })
  })
}

function countOf(model: Model): number {
  return [...model.sources.values()].flat().length
}
