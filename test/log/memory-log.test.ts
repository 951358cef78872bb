import { setImmediate as nextTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import type { LogStore } from 'rivulet/log/store'
import { ArgumentError } from 'rivulet'
import { FencedError, LogInUseError, memoryStore } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { change, groupStatus } from '../operators/events.ts'
import { append as appendTo } from './append.ts'
import { describeLogStore } from './conformance.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore, SimulatedStoreOptions, StoreWrite } from '../../src/log/memory/store.ts'

function describeMemoryLog(name: string, { partitions = 1, ...connection }: SimulatedStoreOptions): void {
  describeLogStore(name, async ({ clock, inbox = {} }) => {
    const first = simulatedStore({ partitions, clock, inbox })
    const opened = new Map<LogStore, SimulatedStore>()
    return {
      async connect(owner) {
        const log = first.connect({ ...connection, owner })
        opened.set(log, log)
        return log
      },
      async loseClaims(log) {
        opened.get(log)?.loseClaims()
      },
      async remove() {
        await Promise.all([...opened.values()].map((log) => log.close()))
      },
    }
  })
}

describeMemoryLog('a log in memory', {})
describeMemoryLog('a log in memory of 3 partitions', { partitions: 3 })
describeMemoryLog('a slow log in memory', { latency: () => nextTurn() })
describeMemoryLog('a slow log in memory of 3 partitions', { partitions: 3, latency: () => nextTurn() })

/** The writes of recorders and readers. */
type Write = Exclude<StoreWrite, 'retention'>
const WRITES: readonly Write[] = ['claim', 'release', 'append', 'commit', 'deadLetters', 'put']
const crash = new Error('crashed')

describe('simulatedStore', () => {
  /** A log whose next call of this write throws at this step, and everything that another one sees of it. */
  async function failing(write: Write, step: 'before' | 'after') {
    let isArmed = false
    const steps: string[] = []
    const log = simulatedStore({
      owner: 'failing',
      faults(...point) {
        if (!isArmed) return
        steps.push(point.join(' '))
        if (point[0] === write && point[1] === step) throw crash
      },
    })
    const witness = log.connect({ owner: 'witness' })
    const fence = await log.claim('claimed')
    const start = await log.positionAt('start')
    const reader = await log.claim('reader')
    await log.append([{ fence: reader, expect: null, entries: [newEntry(change('dead'))] }])
    const position = await log.positionAt('end')
    const deadLetters = [{ position, error: { name: 'Error', message: 'no luck' }, attempts: 1 }]
    await log.commit(reader, { expect: null, cursor: position, acknowledged: [], deadLetters })
    const calls: Readonly<Record<Write, () => Promise<unknown>>> = {
      claim: () => log.claim('free'),
      release: () => log.release(fence),
      append: () =>
        log.append([
          { fence, expect: null, position: 'p1', entries: [newEntry(change('1')), newEntry(change('2'))] },
        ]),
      commit: () => log.commit(fence, { expect: null, cursor: start, acknowledged: [] }),
      deadLetters: () => log.deadLetters.remove('reader', 'all'),
      put: () => log.inbox.put({ id: 'msg_1', timestamp: 1, payload: {} }, '{}'),
    }
    const isFree = async (name: string) => {
      const outcome = await witness.claim(name).catch((error: unknown) => error)
      return !(outcome instanceof LogInUseError)
    }
    isArmed = true
    return {
      call: calls[write],
      steps,
      seen: async () => ({
        claim: !(await isFree('free')),
        release: await isFree('claimed'),
        append: [
          (await witness.read(start, { limit: 10 })).entries.length,
          ...(await witness.streamPositions(['claimed'])),
        ],
        commit: (await witness.reader('claimed')) !== undefined,
        deadLetters: (await witness.deadLetters.counts()).size === 0,
        put: (await witness.inbox.pending(null, 10)).length,
      }),
    }
  }
  const untouched = {
    claim: false,
    release: false,
    append: [1, null],
    commit: false,
    deadLetters: false,
    put: 0,
  }
  const written = { claim: true, release: true, append: [3, 'p1'], commit: true, deadLetters: true, put: 1 }

  it.each(WRITES)('writes nothing of a %s that a fault stops before its effect', async (write) => {
    const { call, steps, seen } = await failing(write, 'before')
    await expect(call()).rejects.toBe(crash)
    expect(steps).toEqual([`${write} before`])
    expect(await seen()).toEqual(untouched)
  })

  it.each(WRITES)('writes everything of a %s that a fault stops after its effect', async (write) => {
    const { call, steps, seen } = await failing(write, 'after')
    await expect(call()).rejects.toBe(crash)
    expect(steps).toEqual([`${write} before`, `${write} after`])
    expect(await seen()).toEqual({ ...untouched, [write]: written[write] })
  })

  it.each([
    ['before', false],
    ['after', true],
  ] as const)('trims everything or nothing where a fault stops it %s its effect', async (at, isTrimmed) => {
    const log = simulatedStore({
      faults(write, step) {
        if (write === 'retention' && step === at) throw crash
      },
    })
    const start = await log.positionAt('start')
    await appendTo(log, [change('1')])
    await expect(log.retention.trim({ limit: 1 })).rejects.toBe(crash)
    expect((await log.read(start, { limit: 1 })).gap !== undefined).toBe(isTrimmed)
  })

  it('waits for its latency before and after the effect of each call', async () => {
    const turns: (() => void)[] = []
    const log = simulatedStore({ latency: () => new Promise<void>((resolve) => turns.push(resolve)) })
    const witness = log.connect({ latency: async () => {} })
    const next = async () => {
      await nextTurn()
      turns.shift()?.()
      await nextTurn()
    }
    let isClaimed = false
    const claim = log.claim('stream')
    const claimed = claim.then(() => (isClaimed = true))
    await nextTurn()
    // The name is free until the first wait is over.
    await witness.release(await witness.claim('stream'))
    await next()
    await expect(witness.claim('stream')).rejects.toBeInstanceOf(LogInUseError)
    expect(isClaimed).toBe(false)
    await next()
    await claimed
    expect(turns).toEqual([])
  })

  it('has no effect of a call that is under way when it is closed', async () => {
    const log = simulatedStore()
    const fence = await log.claim('stream')
    const pending = log.append([{ fence, expect: null, entries: [newEntry(change('1'))] }])
    const closed = log.close()
    await expect(pending).rejects.toThrow('the log in memory is closed')
    await closed
    const again = log.connect()
    expect(await again.positionAt('end')).toBe(await again.positionAt('start'))
  })

  it('lets an open log that lost its claims write until another one has them', async () => {
    const log = simulatedStore()
    const fence = await log.claim('stream')
    const append = (id: string) => log.append([{ fence, expect: null, entries: [newEntry(change(id))] }])
    log.loseClaims()
    await append('1')
    await log.connect().claim('stream')
    await expect(append('2')).rejects.toBeInstanceOf(FencedError)
  })

  it('numbers open logs without a name', async () => {
    const first = simulatedStore()
    const second = first.connect()
    await first.claim('a')
    await second.claim('b')
    await expect(second.claim('a')).rejects.toThrow('"a" in the log in memory is held by memory log 1')
    await expect(first.claim('b')).rejects.toThrow('memory log 2')
  })

  it('reads sources of 3 partitions in another order than that of the appends, which stays the same', async () => {
    const log = simulatedStore({ partitions: 3, clock: () => 0 })
    const fence = await log.claim('stream')
    const given: string[] = []
    for (let i = 0; i < 12; i++) {
      const event = change(String(i), `m${i % 4}`)
      given.push(event.id)
      await log.append([{ fence, expect: null, entries: [newEntry(event)] }])
    }
    const start = await log.positionAt('start')
    const ids = async () => (await log.read(start, { limit: 100 })).entries.map(({ id }) => id)
    const read = await ids()
    expect(read).not.toEqual(given)
    expect(read.toSorted()).toEqual(given.toSorted())
    await log.append([{ fence, expect: null, entries: [newEntry(change('later', 'm0'))] }])
    expect(await ids()).toEqual([...read, 'later'])
  })

  it('begins each group of entries with another one of 3 partitions', async () => {
    const log = simulatedStore({ partitions: 3, clock: () => 0 })
    const fence = await log.claim('stream')
    const orders = new Set<string>()
    for (let i = 0; i < 3; i++) {
      const end = await log.positionAt('end')
      const entries = ['a', 'b', 'c'].map((monitor) => newEntry(change(String(i), monitor)))
      await log.append([{ fence, expect: null, entries }])
      orders.add((await log.read(end, { limit: 3 })).entries.map(({ source }) => source).join())
    }
    expect(orders.size).toBe(3)
  })

  it('reads a page of a rare type without looking at more than 10,000 entries', async () => {
    const log = simulatedStore()
    const fence = await log.claim('stream')
    for (let i = 0; i < 101; i++) {
      const entries = Array.from({ length: 100 }, (_, j) => newEntry(change(`${i} ${j}`)))
      await log.append([{ fence, expect: null, entries }])
    }
    await log.append([{ fence, expect: null, entries: [newEntry(groupStatus('rare'))] }])
    const first = await log.read(await log.positionAt('start'), { limit: 1, types: ['task_group.status'] })
    expect(first).toMatchObject({ entries: [], isEnd: false })
    const second = await log.read(first.position, { limit: 1, types: ['task_group.status'] })
    expect(second).toMatchObject({ entries: [{ id: 'rare' }], isEnd: true })
  })

  it.each([
    { partitions: 0 },
    { partitions: 1.5 },
    { owner: '' },
    { clock: 5 },
    { partition: 3 },
    { latency: async () => {} },
    { faults: () => {} },
  ])('refuses the options %o', (options) => {
    expect(() => Reflect.apply(memoryStore, undefined, [options])).toThrow(ArgumentError)
  })
})

describe('a crash at any write', () => {
  it('loses no event and records none twice, whatever a writer and a reader had done', async () => {
    const batch = fc.array(fc.nat(9), { maxLength: 4 })
    // At each step of a write: whether it crashes there.
    const crashes = fc.infiniteStream(fc.nat(5).map((n) => n === 0))
    await fc.assert(
      fc.asyncProperty(
        fc.array(batch, { maxLength: 12 }),
        crashes,
        fc.constantFrom(1, 3),
        async (upstream, crashesHere, partitions) => {
          const shared = simulatedStore({ partitions })
          const handled: string[] = []
          const saved: string[] = []

          /** One life of a process: it records what is upstream from the log's position on, then reads what is not committed. */
          async function live(): Promise<void> {
            const log = shared.connect({
              faults() {
                if (crashesHere.next().value === true) throw crash
              },
            })
            try {
              let fence = await log.claim('stream', { wait: new AbortController().signal })
              for (;;) {
                const [expected = null] = await log.streamPositions(['stream'])
                const at = Number(expected ?? 0)
                const next = upstream[at]
                if (next === undefined) break
                const entries = next.map((n) => newEntry(change(String(n), `m${n % 3}`)))
                await log.append([{ fence, expect: expected, position: String(at + 1), entries }])
              }
              await log.release(fence)
              fence = await log.claim('reader')
              for (;;) {
                const state = await log.reader('reader')
                const cursor = state?.cursor ?? (await log.positionAt('start'))
                const page = await log.read(cursor, { limit: 3 })
                const ids = page.entries.map(({ id }) => id)
                handled.push(...ids)
                await log.commit(fence, {
                  expect: state?.cursor ?? null,
                  cursor: page.position,
                  acknowledged: [],
                })
                saved.push(...ids)
                if (page.isEnd) return
              }
            } finally {
              log.loseClaims()
            }
          }

          for (let lives = 0; lives < 1_000; lives++) {
            const end = await live().catch((error: unknown) => error)
            if (end === undefined) break
            if (end !== crash) throw end
          }
          const given = new Set(upstream.flat().map(String))
          const start = await shared.positionAt('start')
          const { entries } = await shared.read(start, { limit: 1_000 })
          expect(entries.map(({ id }) => id).toSorted()).toEqual([...given].toSorted())
          expect(entries.every(({ revision }) => revision === 1)).toBe(true)
          expect(new Set(handled)).toEqual(given)
          // A commit that took effect is not undone: what was saved is not saved again.
          expect(new Set(saved).size).toBe(saved.length)
        },
      ),
      { numRuns: 200 },
    )
  })
})
