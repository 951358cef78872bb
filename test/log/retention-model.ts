/* oxlint-disable vitest/no-standalone-expect -- called within the tests of retention.property.test.ts */
import * as fc from 'fast-check'
import { expect } from 'vitest'
import type { Entry, Position } from '../../src/log/store/contract.ts'
import type { MemoryStore } from '../../src/log/memory/store.ts'
import { change } from '../operators/events.ts'
import { completedRun } from './sqlite/events.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

/** What a write rejects with that crashes before or after its effect. */
export const crash = new Error('crashed')

/** A reader that commits now and then, and that another one without a cursor in the log accompanies. */
interface Reader {
  readonly name: string
  position: Position
  committed: Position | undefined
  readonly seen: Entry[]
}

interface Step {
  readonly step: string
  readonly numbers?: readonly number[]
  readonly isFull?: boolean
  readonly limit?: number
  readonly age?: number
  readonly reader?: number
  readonly commits?: boolean
}

type Steps = readonly Step[]

/** Random steps. */
export const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        step: fc.constant('append'),
        numbers: fc.array(fc.nat(30), { minLength: 1, maxLength: 6 }),
        isFull: fc.boolean(),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        step: fc.constant('trim'),
        limit: fc.integer({ min: 1, max: 9 }),
        age: fc.nat(6),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        step: fc.constant('read'),
        reader: fc.nat(2),
        limit: fc.integer({ min: 1, max: 6 }),
        commits: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('restart'), reader: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('remove'), reader: fc.nat(2) }) },
    { weight: 1, arbitrary: fc.record({ step: fc.constant('forget') }) },
  ),
  { maxLength: 60 },
)

/** Plays steps on a log, each write of which may crash before or after its effect. */
export async function play(store: MemoryStore, script: Steps, tick: () => number) {
  const fence = await store.claim('stream:s')
  const start = await store.positionAt('start')
  const readers: Reader[] = ['consumer:a', 'consumer:b', 'elsewhere'].map((name) => ({
    name,
    position: start,
    committed: undefined,
    seen: [],
  }))
  /** Everything that the log has ever had and not forgotten, as an observer reads it after each append. */
  let all: Entry[] = []
  let observed = start
  const retried = async <Result>(call: () => Promise<Result>): Promise<Result> => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (error !== crash) throw error
      }
    }
  }
  const observe = async () => {
    const page = await store.read(observed, { limit: 1_000 })
    expect(page.gap).toBeUndefined()
    all.push(...page.entries)
    observed = page.position
  }
  for (const step of script) {
    const now = tick()
    const reader = step.reader === undefined ? undefined : readers[step.reader]
    if (step.step === 'append') {
      const events = step.numbers?.map((n) =>
        n % 3 === 0
          ? completedRun(`${n}`, step.isFull === true ? 'text' : undefined)
          : change(`${n}`, `m${n % 4}`),
      )
      await retried(() =>
        store.append([{ fence, expect: null, entries: (events ?? []).map((event) => newEntry(event)) }]),
      )
      await observe()
    } else if (step.step === 'trim') {
      const committed = readers.flatMap(({ committed: cursor }) => (cursor === undefined ? [] : [cursor]))
      await retried(() =>
        store.retention.trim({ limit: step.limit ?? 1, recordedBefore: now - (step.age ?? 0) }),
      )
      for (const cursor of committed) expect((await store.read(cursor, { limit: 1 })).gap).toBeUndefined()
    } else if (step.step === 'forget') {
      const source = '/v1/monitors/m1'
      await retried(() => store.retention.forget(source))
      all = all.filter((entry) => entry.source !== source)
    } else if (reader !== undefined && step.step === 'read') {
      const page = await store.read(reader.position, { limit: step.limit ?? 1 })
      const rest = after(all, reader.position)
      const expected = page.gap === undefined ? rest : after(all, page.gap.to)
      if (page.gap !== undefined) {
        // Only a reader that the log does not know is overtaken, and then there is exactly one entry that says so.
        expect(reader.committed).toBeUndefined()
        expect(page.entries).toMatchObject([{ type: 'log.gap', position: page.gap.to }])
        expect(page.gap.from).toBe(reader.position)
      } else {
        expect(page.entries).toEqual(expected.slice(0, page.entries.length))
        if (page.isEnd) expect(page.entries).toHaveLength(expected.length)
      }
      reader.position = page.position
      if (step.commits === true && reader.name !== 'elsewhere') {
        const own = await store.claim(reader.name)
        const before = reader.committed ?? null
        const { position } = reader
        await retried(async () => {
          // As after a restart: what was written before the crash is there.
          if ((await store.reader(reader.name))?.cursor === position) return
          await store.commit(own, { expect: before, cursor: position, acknowledged: [] })
        })
        reader.committed = position
        await retried(() => store.release(own))
      }
    } else if (reader !== undefined && step.step === 'restart') {
      reader.position = reader.committed ?? (await store.positionAt('start'))
    } else if (reader !== undefined && step.step === 'remove') {
      await retried(() => store.retention.remove(reader.name))
      reader.committed = undefined
    }
    const { entries, bytes } = await store.retention.stats()
    const left = after(all, await store.positionAt('start'))
    expect(entries).toBe(left.length)
    expect(bytes > 0).toBe(left.length > 0)
  }
}

/** The entries after a position, in one partition: positions end with a count. */
function after(entries: readonly Entry[], position: Position): readonly Entry[] {
  const count = (text: Position) => Number(text.slice(text.lastIndexOf(':') + 1))
  return entries.filter((entry) => count(entry.position) > count(position))
}
