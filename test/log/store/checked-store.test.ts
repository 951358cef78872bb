import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { checkedStore } from '../../../src/log/store/checked-store.ts'
import { MAX_APPEND_DONE, MAX_APPEND_ENTRIES, MAX_COMMIT_BYTES } from '../../../src/log/store/contract.ts'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { change } from '../../operators/events.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'
import { simulatedStore } from '../../../src/log/memory/store.ts'

const COUNTS = [0, -1, 1.5, Number.NaN, Infinity]
const { signal } = new AbortController()
const noSignal = {} as AbortSignal
const delivery = { id: 'msg_1', timestamp: 1, payload: {} }

/** Calls that cannot be right, by the argument that is refused. */
const REFUSED: Readonly<Record<string, readonly ((log: LogStore) => Promise<unknown>)[]>> = {
  name: ['', ' ', 5 as never].map((name) => (log) => log.claim(name)),
  wait: [(log) => log.claim('stream', { wait: noSignal })],
  limit: COUNTS.flatMap((limit): ((log: LogStore) => Promise<unknown>)[] => [
    (log) => log.read('', { limit }),
    (log) => log.deadLetters.list('c', null, limit),
    (log) => log.deadLetters.redeliveries('c', 0, limit),
    (log) => log.inbox.pending(null, limit),
    (log) => log.processes.changes('p', '', { limit }),
    (log) => log.processes.range('p', { prefix: '', limit }),
    (log) => log.retention.trim({ limit }),
  ]),
  start: ['', 'now', 5, null, {}, ...[Number.NaN, Infinity, -Infinity, '1'].map((time) => ({ time }))].map(
    (start) => (log) => log.positionAt(start as never),
  ),
  signal: [
    (log) => log.wait('', noSignal),
    (log) => log.inbox.wait(null, noSignal),
    (log) => log.processes.wait('p', '', noSignal),
  ],
  'delivery.id': [(log) => log.inbox.put({ ...delivery, id: '' }, '{}')],
  'delivery.timestamp': [-1, 1.5, Number.NaN].map(
    (timestamp) => (log) => log.inbox.put({ ...delivery, timestamp }, '{}'),
  ),
  'delivery.payload': [null, undefined, 5, ['a']].map(
    (payload) => (log) => log.inbox.put({ ...delivery, payload }, '{}'),
  ),
  json: [(log) => log.inbox.put(delivery, '')],
}

describe('a checked store', () => {
  it.each(Object.entries(REFUSED))(
    'refuses each wrong %s, and the store gets no call',
    async (argument, calls) => {
      let reached = 0
      const log = checkedStore(simulatedStore({ latency: async () => (reached += 1) }))
      for (const call of calls) {
        await expect(call(log)).rejects.toMatchObject({ name: 'ArgumentError', argument })
      }
      expect(reached).toBe(0)
    },
  )

  it('refuses an append and a commit over the limits, and the store gets no call', async () => {
    const store = simulatedStore()
    const fence = await store.claim('stream')
    const cursor = await store.positionAt('start')
    let reached = 0
    const log = checkedStore(store.connect({ latency: async () => (reached += 1) }))
    const many = Array.from({ length: MAX_APPEND_ENTRIES + 1 }, (_, n) => newEntry(change(String(n))))
    const done = Array.from({ length: MAX_APPEND_DONE + 1 }, String)
    const process = { checkpoint: 'é'.repeat(MAX_COMMIT_BYTES / 2 + 1), state: [], timers: [] }
    const commit = { expect: null, cursor, acknowledged: [] }
    const refused = { name: 'LogValueError', message: expect.stringContaining('the log in memory') }
    for (const call of [
      log.append([{ fence, expect: null, entries: many }]),
      log.append([{ fence, expect: null, entries: [] }], done),
      log.append([], ['msg_1']),
      log.commit(fence, { ...commit, process }),
      log.commit(fence, { ...commit, entries: many }),
    ]) {
      await expect(call).rejects.toMatchObject(refused)
    }
    expect(reached).toBe(0)
  })

  it('refuses a partition that the log does not have', async () => {
    const log = checkedStore(simulatedStore({ partitions: 3 }))
    const start = await log.positionAt('start')
    for (const partition of [3, -1, 0.5, Number.NaN]) {
      const refused = { name: 'ArgumentError', argument: 'partition' }
      await expect(log.read(start, { limit: 1, partition })).rejects.toMatchObject(refused)
      await expect(log.wait(start, signal, undefined, partition)).rejects.toMatchObject(refused)
    }
    await expect(log.read(start, { limit: 1, partition: 2 })).resolves.toMatchObject({ isEnd: true })
  })

  it('rejects a wait whose signal is aborted while the answer is on its way', async () => {
    const turns: (() => void)[] = []
    const store = simulatedStore()
    const far = checkedStore(
      store.connect({ latency: () => new Promise<void>((resolve) => turns.push(resolve)) }),
    )
    const fence = await store.claim('stream')
    const start = await store.positionAt('start')
    await store.append([{ fence, expect: null, entries: [newEntry(change('1'))] }])
    const abort = new AbortController()
    const waiting = far.wait(start, abort.signal)
    await nextTurn()
    turns.shift()?.()
    await nextTurn()
    const reason = new Error('unsubscribed')
    abort.abort(reason)
    turns.shift()?.()

    await expect(waiting).rejects.toBe(reason)
  })

  it('leaves turns of the event loop to other work between pages', async () => {
    const log = checkedStore(simulatedStore())
    const start = await log.positionAt('start')
    const processStart = await log.processes.start()
    let turns = 0
    const counting = (async () => {
      for (; turns < 60; turns++) await nextTurn()
    })()
    for (let page = 0; page < 20; page++) {
      await log.read(start, { limit: 1 })
      await log.processes.changes('p', processStart, { limit: 1 })
      await log.processes.range('p', { prefix: '', limit: 1 })
    }

    expect(turns).toBeGreaterThanOrEqual(58)
    await counting
  })
})
