import { setImmediate as nextTurn } from 'node:timers/promises'
import { ArgumentError } from 'rivulet'
import type { ResearchEvent } from 'rivulet'
import { VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it, vi } from 'vitest'
import { completeness } from '../../src/protocol/event.ts'
import type { CheckpointChanges, CheckpointStore } from '../../src/state/checkpoint-store.ts'
import { openCheckpoint } from '../../src/state/checkpoint.ts'
import type { Checkpoint } from '../../src/state/checkpoint.ts'
import { CheckpointError, CheckpointInUseError } from '../../src/state/errors.ts'
import { memoryCheckpointStore } from '../../src/state/memory-checkpoint-store.ts'
import { bareRun, change, fullRun } from '../operators/events.ts'

const TEN_MINUTES = 10 * 60_000

const [a, b, c, d] = [change('a'), change('b'), change('c'), change('d')]

interface RecordingStore extends CheckpointStore {
  readonly saves: CheckpointChanges[]
  /** Whether each save waits for {@link RecordingStore.commit}. */
  slow: boolean
  failure: Error | undefined
  commit(): void
  closed: number
}

/** A store that remembers how it was used, and that can be slow or broken. */
function recordingStore(): RecordingStore {
  let release = Promise.withResolvers<void>()
  return {
    saves: [],
    slow: false,
    failure: undefined,
    closed: 0,
    load: () => ({ positions: new Map(), handled: [] }),
    async save(changes) {
      this.saves.push(changes)
      if (this.slow) await release.promise
      if (this.failure !== undefined) throw this.failure
    },
    commit() {
      release.resolve()
      release = Promise.withResolvers()
    },
    close() {
      this.closed += 1
    },
  }
}

/** As `watch` and `deliver` do when an event comes by a stream. */
function receive(checkpoint: Checkpoint, ...events: readonly ResearchEvent[]): void {
  for (const event of events) {
    checkpoint.entered('s', event.id, event)
    checkpoint.received(event)
    checkpoint.passed(event)
  }
}

describe('handled', () => {
  it('resolves once the position and the fact are saved', async () => {
    const store = recordingStore()
    store.slow = true
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a)
    const settled = vi.fn<() => void>()

    const handled = checkpoint.handled(a).then(settled)
    await nextTurn()
    await nextTurn()
    const meanwhile = settled.mock.calls.length
    store.commit()
    await handled

    expect(meanwhile).toBe(0)
    expect(store.saves).toEqual([
      expect.objectContaining({
        positions: new Map([['s', 'a']]),
        handled: [{ id: a.id, source: a.source, parts: 0 }],
      }),
    ])
  })

  it('saves together what is handled in one turn, and what is handled during a save in the next', async () => {
    const store = recordingStore()
    store.slow = true
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a, b, c)

    const first = [checkpoint.handled(a), checkpoint.handled(b)]
    await nextTurn()
    const second = checkpoint.handled(c)
    await nextTurn()
    const running = store.saves.length
    store.commit()
    await Promise.all(first)
    await nextTurn()
    store.commit()
    await second

    expect(running).toBe(1)
    expect(store.saves.map(({ handled }) => handled.map(({ id }) => id))).toEqual([['a', 'b'], ['c']])
    expect(store.saves.map(({ positions }) => positions.get('s'))).toEqual(['b', 'c'])
  })

  it('saves out of order as fact, and the position when the gap is closed', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a, b)

    await checkpoint.handled(b)
    await checkpoint.handled(a)

    expect(store.saves.map(({ positions }) => [...positions])).toEqual([[], [['s', 'b']]])
    expect(store.saves.map(({ handled }) => handled.map(({ id }) => id))).toEqual([['b'], ['a']])
  })

  it('rejects where the save fails, and what was lost goes along with the next save', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a, b)
    store.failure = new Error('the disk is full')

    const failed = checkpoint.handled(b)
    await expect(failed).rejects.toBe(store.failure)
    store.failure = undefined
    await checkpoint.handled(a)

    expect(store.saves[1]).toEqual(
      expect.objectContaining({
        positions: new Map([['s', 'b']]),
        handled: [expect.objectContaining({ id: 'b' }), expect.objectContaining({ id: 'a' })],
      }),
    )
  })

  it('keeps no more for the next save than the store would remember, however long saves fail', async () => {
    const store = { ...recordingStore(), maxHandled: 2 }
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a, b, c, d)
    store.failure = new Error('the disk is full')
    for (const event of [a, b, c]) await expect(checkpoint.handled(event)).rejects.toBe(store.failure)
    store.failure = undefined
    await checkpoint.handled(d)

    const { positions, handled } = store.saves.at(-1) ?? {}
    expect([...(positions ?? [])]).toEqual([['s', 'd']])
    expect(handled?.map(({ id }) => id)).toEqual(['b', 'c', 'd'])
  })
})

describe('a webhook', () => {
  it('is done only after the save of what it stood for', async () => {
    const store = recordingStore()
    store.slow = true
    const checkpoint = await openCheckpoint(store)
    const done = vi.fn<() => void>()
    checkpoint.delivered([a], done)
    checkpoint.received(a)
    checkpoint.passed(a)

    const handled = checkpoint.handled(a)
    await nextTurn()
    await nextTurn()
    const meanwhile = [store.saves.length, done.mock.calls.length]
    store.commit()
    await handled

    expect(meanwhile).toEqual([1, 0])
    expect(done).toHaveBeenCalledTimes(1)
  })

  it('is not done where the save fails, but with the save that makes up for it', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    const done = vi.fn<() => void>()
    checkpoint.delivered([a], done)
    checkpoint.received(a)
    checkpoint.passed(a)
    store.failure = new Error('the disk is full')

    await expect(checkpoint.handled(a)).rejects.toBe(store.failure)
    const meanwhile = done.mock.calls.length
    store.failure = undefined
    await checkpoint.close()

    expect(meanwhile).toBe(0)
    expect(done).toHaveBeenCalledTimes(1)
  })

  it('whose inbox fails says so to the handler that waits', async () => {
    const failure = new Error('the inbox is gone')
    const checkpoint = await openCheckpoint(recordingStore())
    checkpoint.delivered([a], () => Promise.reject(failure))
    checkpoint.received(a)
    checkpoint.passed(a)

    await expect(checkpoint.handled(a)).rejects.toBe(failure)
  })
})

describe('what is filtered out', () => {
  it('is saved with what is handled, and by itself once something was received', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a)
    await checkpoint.handled(a)
    checkpoint.entered('s', 'b', b)
    checkpoint.passed(b)
    await nextTurn()

    expect(store.saves.map(({ positions }) => positions.get('s'))).toEqual(['a', 'b'])
    expect(store.saves[1]?.handled).toEqual([])
  })

  it('is not saved before anything was received: an asynchronous operator looks the same', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    checkpoint.entered('s', 'a', a)
    checkpoint.passed(a)
    await nextTurn()

    expect(() => checkpoint.received(a)).toThrow(CheckpointError)
    await checkpoint.close()
    expect(store.saves).toEqual([])
  })
})

describe('where nothing was received yet', () => {
  /** A subscription whose time is the test's. */
  async function subscribed() {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    const time = new VirtualTimeScheduler()
    const end = checkpoint.begin(time)
    return {
      store,
      checkpoint,
      time,
      end,
      /** Lets the time pass until so many ms since the beginning. */
      async until(frame: number) {
        time.maxFrames = frame
        time.flush()
        await nextTurn()
        await nextTurn()
      },
      positions: () => store.saves.map(({ positions }) => positions.get('s')),
    }
  }

  /** As `watch` does with what nobody receives. */
  function pass(checkpoint: Checkpoint, ...events: readonly ResearchEvent[]): void {
    for (const event of events) {
      checkpoint.entered('s', event.id, event)
      checkpoint.passed(event)
    }
  }

  it('what passed is saved after ten minutes at the least, however much of it there is', async () => {
    const { checkpoint, until, positions } = await subscribed()
    pass(checkpoint, ...Array.from({ length: 1_500 }, (_, i) => change(`e${i}`)))
    await until(TEN_MINUTES)
    const early = positions()
    pass(checkpoint, a)
    await until(2 * TEN_MINUTES)
    const later = positions()
    pass(checkpoint, b)
    await until(3 * TEN_MINUTES)

    expect([early, later, positions()]).toEqual([[], ['e1499'], ['e1499', 'a']])
  })

  it('a webhook is done once what it stood for is believed to be filtered out', async () => {
    const { checkpoint, until } = await subscribed()
    const done = vi.fn<() => void>()
    checkpoint.delivered([a], done)
    checkpoint.passed(a)
    await until(TEN_MINUTES)
    const early = done.mock.calls.length
    await until(2 * TEN_MINUTES)

    expect([early, done.mock.calls.length]).toEqual([0, 1])
  })

  it('an event that was held back until just before is an error, and nothing is saved', async () => {
    const { checkpoint, until, positions } = await subscribed()
    pass(checkpoint, a)
    await until(2 * TEN_MINUTES - 1)

    expect(() => checkpoint.received(a)).toThrow(CheckpointError)
    await until(5 * TEN_MINUTES)
    await checkpoint.close()
    expect(positions()).toEqual([])
  })

  it('an event that is received in time has all saved that passed before', async () => {
    const { checkpoint, until, positions, time } = await subscribed()
    pass(checkpoint, a)
    await until(TEN_MINUTES)
    pass(checkpoint, b)
    receive(checkpoint, c)
    await checkpoint.handled(c)

    expect(positions()).toEqual(['c'])
    expect(time.actions).toEqual([])
  })

  it('all is told again to the next subscription but what is believed to be filtered out', async () => {
    const { checkpoint, time, end, until, positions } = await subscribed()
    pass(checkpoint, a)
    await until(TEN_MINUTES)
    pass(checkpoint, b)
    await until(2 * TEN_MINUTES)
    pass(checkpoint, c)
    end()
    const whileEnded = time.actions.length
    await until(9 * TEN_MINUTES)
    checkpoint.begin(time)
    const position = checkpoint.position('s')
    await until(19 * TEN_MINUTES)

    expect(whileEnded).toBe(0)
    expect(position).toBe('a')
    expect(positions()).toEqual(['a'])
  })

  it('closing saves what is believed and could not be saved, and nothing else', async () => {
    const { store, checkpoint, time, until, positions } = await subscribed()
    pass(checkpoint, a)
    await until(TEN_MINUTES)
    pass(checkpoint, b)
    store.failure = new Error('the disk is full')
    await until(2 * TEN_MINUTES)
    store.failure = undefined
    await checkpoint.close()

    expect(positions()).toEqual(['a', 'a'])
    expect(time.actions).toEqual([])
  })
})

describe('a mistake in the pipeline', () => {
  it('stops all saving, since positions may have moved past what was not handled', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a)
    checkpoint.entered('s', 'b', b)
    checkpoint.passed(b)

    expect(() => checkpoint.received(b)).toThrow(CheckpointError)
    await expect(checkpoint.handled(a)).rejects.toThrow(CheckpointError)
    await checkpoint.close()

    expect(store.saves).toEqual([])
    expect(store.closed).toBe(1)
  })
})

describe('what was handled before', () => {
  const known = (checkpoint: Checkpoint) => Array.from(checkpoint.handledBefore, ({ id }) => id)

  it('includes what is not saved yet, what is being saved, and what could not be saved', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    store.slow = true
    receive(checkpoint, a, b)

    const handled = checkpoint.handled(a)
    const before = known(checkpoint)
    await nextTurn()
    const during = known(checkpoint)
    const later = checkpoint.handled(b)
    const both = known(checkpoint)
    store.failure = new Error('the disk is full')
    store.commit()
    await expect(handled).rejects.toBe(store.failure)
    const after = known(checkpoint)
    await nextTurn()
    store.commit()
    await expect(later).rejects.toBe(store.failure)

    expect(store.saves).toHaveLength(2)
    expect([before, during, both, after, known(checkpoint)]).toEqual([
      ['a'],
      ['a'],
      ['a', 'b'],
      ['a', 'b'],
      ['a', 'b'],
    ])
  })

  it('is as much as the store says that it remembers, 100,000 facts where it says nothing', async () => {
    const silent = await openCheckpoint(recordingStore())
    const larger = await openCheckpoint(memoryCheckpointStore({ maxHandled: 250_000 }))

    expect([silent.maxHandled, larger.maxHandled]).toEqual([100_000, 250_000])
    await expect(openCheckpoint({ ...recordingStore(), maxHandled: Infinity })).rejects.toThrow(ArgumentError)
  })
})

describe('a position that cannot be read', () => {
  it('is told by the stream where its store has nothing to say', async () => {
    const checkpoint = await openCheckpoint(recordingStore())

    expect(checkpoint.unreadable('groups/g/runs')).toBeInstanceOf(CheckpointError)
    expect(checkpoint.unreadable('groups/g/runs').message).toMatch(/"groups\/g\/runs".*cannot be read/)
  })
})

describe('close', () => {
  it('saves what is not saved yet, then gives up the store, once', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a)
    const handled = checkpoint.handled(a)

    await Promise.all([checkpoint.close(), checkpoint.close()])
    await handled

    expect(store.saves).toHaveLength(1)
    expect(store.closed).toBe(1)
  })

  it('rejects where the last save fails, and gives up the store', async () => {
    const store = recordingStore()
    const checkpoint = await openCheckpoint(store)
    receive(checkpoint, a)
    store.failure = new Error('the disk is full')
    await expect(checkpoint.handled(a)).rejects.toBe(store.failure)

    await expect(checkpoint.close()).rejects.toBe(store.failure)
    expect(store.closed).toBe(1)
  })

  it('takes nothing more', async () => {
    const checkpoint = await openCheckpoint(recordingStore())
    receive(checkpoint, a)
    await checkpoint.close()

    await expect(checkpoint.handled(a)).rejects.toThrow(/closed/)
    expect(() => checkpoint.received(b)).toThrow(/closed/)
    expect(() => checkpoint.begin()).toThrow(/closed/)
    expect(() => [...checkpoint.handledBefore]).toThrow(/closed/)
  })
})

describe('the store in memory', () => {
  it('gives the next pipeline the positions and the handled facts', async () => {
    const store = memoryCheckpointStore()
    const first = await openCheckpoint(store)
    receive(first, a, b)
    await first.handled(b)
    await first.close()

    const second = await openCheckpoint(store)
    const positionBefore = second.position('s')
    const handledBefore = [...second.handledBefore]
    receive(second, a)
    await second.handled(a)

    expect(positionBefore).toBeUndefined()
    expect(handledBefore).toEqual([{ id: b.id, source: b.source, parts: 0 }])
    expect(second.position('s')).toBe('a')
  })

  it('refuses a second pipeline, until the first has closed it', async () => {
    const store = memoryCheckpointStore()
    const first = await openCheckpoint(store)

    await expect(openCheckpoint(store)).rejects.toThrow(CheckpointInUseError)
    await first.close()
    await expect(openCheckpoint(store)).resolves.toBeDefined()
  })

  it('joins what copies of a fact told', async () => {
    const store = memoryCheckpointStore()
    const checkpoint = await openCheckpoint(store)
    const full = fullRun('r')
    receive(checkpoint, bareRun('r'), full)
    await checkpoint.handled(full)

    expect([...checkpoint.handledBefore]).toEqual([expect.objectContaining({ parts: completeness(full) })])
  })

  it('forgets facts beyond its number and its time', async () => {
    let now = 0
    const store = memoryCheckpointStore({ maxHandled: 2, remember: 1_000, clock: () => now })
    const checkpoint = await openCheckpoint(store)
    const remembered = () => Array.from(checkpoint.handledBefore, ({ id }) => id)
    receive(checkpoint, a, b, c)
    for (const event of [a, b, c]) await checkpoint.handled(event)
    const byNumber = remembered()
    now = 1_000
    receive(checkpoint, d)
    await checkpoint.handled(d)

    expect(byNumber).toEqual(['b', 'c'])
    expect(remembered()).toEqual(['d'])
  })

  it('goes on forgetting for as long as it runs', async () => {
    let now = 0
    const store = memoryCheckpointStore({ maxHandled: 10, remember: 1_000, clock: () => now })
    const { handled } = await store.load()
    const sizes = new Set<number>()
    const ids = Array.from({ length: 5_000 }, (_, n) => `id-${n}`)
    for (const id of ids) {
      await store.save({ positions: new Map(), handled: [{ id, source: 's', parts: 0 }] })
      sizes.add([...handled].length)
    }
    const left = Array.from(handled, ({ id }) => id)
    now = 1_000
    await store.save({ positions: new Map(), handled: [] })

    expect(Math.max(...sizes)).toBe(10)
    expect(left).toEqual(ids.slice(-10))
    expect([...handled]).toEqual([])
  })
})
