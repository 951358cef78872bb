import { setImmediate as turn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_APPEND_LENGTH } from '../../src/log/store/contract.ts'
import { Recorder } from '../../src/log/record/recorder.ts'
import { change } from '../operators/events.ts'
import { readAll } from './conformance/fixture.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

const at = (position: string) => ({ text: () => position })

function never(error: unknown): void {
  throw error
}

describe('a recorder', () => {
  it('appends a burst in parts, and each part moves the stream as far as it goes', async () => {
    const positions: (string | null | undefined)[] = []
    const store = simulatedStore({ latency: () => turn() })
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    for (let n = 1; n <= 3_000; n++) stream.add(change(`${n}`), at(`${n}`))
    const watching = (async () => {
      for (let turns = 0; turns < 400; turns++) positions.push(...(await store.streamPositions(['stream:s'])))
    })()
    await recorder.close()
    await watching
    const entries = await readAll(store)
    expect(entries.map(({ id }) => Number(id))).toEqual(Array.from({ length: 3_000 }, (_, n) => n + 1))
    expect(new Set(positions).size).toBeGreaterThan(5)
    expect(positions.at(-1)).toBe('3000')
  })

  it.each([
    ['refuses the append', false],
    ['has moved the other stream nevertheless', true],
  ])(
    'goes on without a stream that another recorder has claimed since, where the log %s',
    async (_, hasMovedOthers) => {
      const store = simulatedStore()
      const append = store.append.bind(store)
      store.append = async (appends, done) => {
        const others = appends.filter(({ fence }) => fence.name !== 'stream:lost')
        if (hasMovedOthers && others.length < appends.length) await append(others, done)
        return append(appends, done)
      }
      const recorder = new Recorder(store, never)
      const fenced: unknown[] = []
      const onFenced = (error: unknown) => void fenced.push(error)
      const lost = await recorder.open('lost', { onFenced })
      const own = await recorder.open('own', { onFenced })
      // Another claim of the same open log makes the first one void.
      const other = await store.claim('stream:lost')
      for (let n = 1; n <= 3; n++) {
        lost.add(change(`${n}`, 'lost'), at(`${n}`))
        own.add(change(`${n}`), at(`${n}`))
      }
      await recorder.flushed()
      expect(fenced).toMatchObject([{ name: 'FencedError', claimed: 'stream:lost' }])
      lost.add(change('4', 'lost'), at('4'))
      own.add(change('4'), at('4'))
      await recorder.close()
      const entries = await readAll(store)
      expect(entries.map(({ source, id }) => [source, id])).toEqual(
        ['1', '2', '3', '4'].map((id) => [change('1').source, id]),
      )
      expect(await store.streamPositions(['stream:lost', 'stream:own'])).toEqual([null, '4'])
      await store.release(other)
    },
  )

  it('appends what is added during an append, each once and in order', async () => {
    const appended = Promise.withResolvers<void>()
    let latency = Promise.resolve()
    const store = simulatedStore({ latency: () => latency })
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    latency = appended.promise
    stream.add(change('1'), at('1'))
    // Now it is being appended.
    await turn()
    for (let n = 2; n <= 600; n++) stream.add(change(`${n}`), at(`${n}`))
    appended.resolve()
    await recorder.close()
    const entries = await readAll(store)
    expect(entries.map(({ id }) => Number(id))).toEqual(Array.from({ length: 600 }, (_, n) => n + 1))
  })

  it('keeps the order of a source that several streams bring, and moves each stream as far as it goes', async () => {
    const arrivals = fc.array(fc.tuple(fc.nat(2), fc.constantFrom('x', 'y')), { maxLength: 40 })
    await fc.assert(
      fc.asyncProperty(arrivals, async (script) => {
        const store = simulatedStore()
        const recorder = new Recorder(store, never)
        const streams = await Promise.all(['a', 'b', 'c'].map((name) => recorder.open(name)))
        const last = new Map<number, string>()
        for (const [n, [stream, source]] of script.entries()) {
          streams[stream]?.add(change(`${n}`, source), at(`${n}`))
          last.set(stream, `${n}`)
        }
        await recorder.close()
        const entries = await readAll(store)
        for (const source of ['x', 'y']) {
          const arrived = script.flatMap(([, of], n) => (of === source ? [`${n}`] : []))
          const recorded = entries.filter((entry) => entry.source === change('', source).source)
          expect(recorded.map(({ id }) => id)).toEqual(arrived)
        }
        const positions = await store.streamPositions(['stream:a', 'stream:b', 'stream:c'])
        expect(positions).toEqual([0, 1, 2].map((stream) => last.get(stream) ?? null))
      }),
    )
  })

  it('appends what two streams bring of different sources as one part for each', async () => {
    const parts: number[] = []
    const store = simulatedStore()
    const append = store.append.bind(store)
    store.append = (appends, done) => {
      parts.push(appends.length)
      return append(appends, done)
    }
    const recorder = new Recorder(store, never)
    const [a, b] = [await recorder.open('a'), await recorder.open('b')]
    for (let n = 0; n < 100; n++) {
      a.add(change(`${n}`, 'x'), at(`${n}`))
      b.add(change(`${n}`, 'y'), at(`${n}`))
    }
    await recorder.close()
    expect(parts).toEqual([2])
  })

  it('appends large events one by one', async () => {
    const store = simulatedStore()
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    for (let n = 0; n < 5; n++) stream.add(change(`${n}${'x'.repeat(MAX_APPEND_LENGTH * 0.6)}`), at(`${n}`))
    await recorder.close()
    expect(await readAll(store)).toHaveLength(5)
    expect(await store.streamPositions(['stream:s'])).toEqual(['4'])
  })

  it('closes its gate while the log is behind, and opens it when it has caught up', async () => {
    const store = simulatedStore({ latency: () => turn() })
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    const gate: boolean[] = []
    recorder.gate.onChange((closed) => gate.push(closed))
    for (let n = 0; n < 1_200; n++) stream.add(change(`${n}`))
    await recorder.flushed()
    expect(gate).toEqual([true, false])
  })

  it('fails once with what the log refuses, and keeps its gate open', async () => {
    const faults = (write: string) => {
      if (write === 'append') throw new Error('full')
    }
    const failures: unknown[] = []
    const recorder = new Recorder(simulatedStore({ faults }), (error) => failures.push(error))
    const stream = await recorder.open('s')
    for (let n = 0; n < 1_200; n++) stream.add(change(`${n}`))
    await recorder.flushed()
    stream.add(change('later'))
    await recorder.close()
    expect(failures).toEqual([new Error('full')])
    expect(recorder.gate.closed).toBe(false)
  })

  it('opens a stream again once its earlier writer is closed, and continues after it', async () => {
    const store = simulatedStore({ latency: () => turn() })
    const recorder = new Recorder(store, never)
    const first = await recorder.open('s')
    for (let n = 1; n <= 400; n++) first.add(change(`${n}`), at(`${n}`))
    void first.close()
    const second = await recorder.open('s')
    expect(second.position).toBe('400')
    second.add(change('401'), at('401'))
    await second.close()
    expect(await readAll(store)).toHaveLength(401)
    expect(await store.streamPositions(['stream:s'])).toEqual(['401'])
  })

  it('closes a stream while others go on adding', async () => {
    const store = simulatedStore({ latency: () => turn() })
    const recorder = new Recorder(store, never)
    const [busy, quiet] = [await recorder.open('busy'), await recorder.open('quiet')]
    quiet.add(change('last'), at('last'))
    const closing = quiet.close()
    const adding = new AbortController()
    void closing.then(() => adding.abort())
    let added = 0
    for (; added < 5_000 && !adding.signal.aborted; added++) {
      busy.add(change(`${added}`))
      await turn()
    }
    await closing
    expect(added).toBeLessThan(5_000)
    expect(await store.streamPositions(['stream:quiet'])).toEqual(['last'])
    await recorder.close()
  })

  it('gives up a stream that is left while it is opened', async () => {
    const root = simulatedStore()
    const recorder = new Recorder(root.connect({ latency: () => turn() }), never)
    const leaving = new AbortController()
    const opening = recorder.open('s', { signal: leaving.signal })
    leaving.abort(new Error('left'))
    await expect(opening).rejects.toThrow('left')
    await root.connect().claim('stream:s')
  })

  it('opens a stream that was left while it was opened', async () => {
    const recorder = new Recorder(simulatedStore({ latency: () => turn() }), never)
    const leaving = new AbortController()
    const left = recorder.open('s', { signal: leaving.signal })
    leaving.abort()
    const stream = await recorder.open('s')
    await expect(left).rejects.toThrow('abort')
    stream.add(change('1'), at('1'))
    await stream.close()
  })

  it('closes a stream that is left', async () => {
    const root = simulatedStore()
    const recorder = new Recorder(root, never)
    const leaving = new AbortController()
    const stream = await recorder.open('s', { signal: leaving.signal })
    stream.add(change('1'), at('1'))
    leaving.abort()
    const again = await recorder.open('s')
    expect(again.position).toBe('1')
    await recorder.close()
    await root.connect().claim('stream:s')
  })

  it('gives up what is opened while it is closed, and opens nothing afterwards', async () => {
    const root = simulatedStore()
    const recorder = new Recorder(root.connect({ latency: () => turn() }), never)
    const opening = recorder.open('s')
    const closing = recorder.close()
    await expect(opening).rejects.toThrow('closed')
    await closing
    await root.connect().claim('stream:s')
    await expect(recorder.open('t')).rejects.toThrow('closed')
    await root.connect().claim('stream:t')
  })

  it('is closed when what was added is appended and every stream released', async () => {
    const root = simulatedStore()
    const store = root.connect({ latency: () => turn() })
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    stream.add(change('1'), at('1'))
    const steps: string[] = []
    const [append, release] = [store.append.bind(store), store.release.bind(store)]
    store.append = (appends) => append(appends).finally(() => steps.push('appended'))
    store.release = (fence) => release(fence).finally(() => steps.push('released'))
    const closed = recorder.closed.then(() => steps.push('closed'))
    recorder.ending.addEventListener('abort', () => steps.push('ending'))
    await recorder.close()
    await closed
    expect(steps).toEqual(['ending', 'appended', 'released', 'closed'])
  })

  it('gives up a stream whose position cannot be read', async () => {
    const root = simulatedStore()
    const store = root.connect()
    store.streamPositions = async () => Promise.reject(new Error('unreadable'))
    await expect(new Recorder(store, never).open('s')).rejects.toThrow('unreadable')
    await root.connect().claim('stream:s')
  })

  it('waits for a name until its signal is aborted, or the recorder is closed', async () => {
    const root = simulatedStore()
    const fence = await root.claim('stream:s')
    const recorder = new Recorder(root.connect(), never)
    const wait = new AbortController()
    const first = recorder.open('s', { wait: wait.signal })
    wait.abort(new Error('long enough'))
    await expect(first).rejects.toThrow('long enough')
    const second = recorder.open('s', { wait: new AbortController().signal })
    await root.release(fence)
    await second
    await root.claim('stream:t')
    const third = recorder.open('t', { wait: new AbortController().signal })
    const closing = recorder.close()
    await expect(third).rejects.toThrow('closed')
    await closing
  })

  it('makes the JSON of an event once, and no append is refused for its size', async () => {
    let [made, refused] = [0, 0]
    const store = simulatedStore()
    const append = store.append.bind(store)
    store.append = (appends) =>
      append(appends).catch((error: unknown) => {
        refused += 1
        throw error
      })
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    const text = 'x'.repeat(100_000)
    for (let n = 0; n < 300; n++) {
      const data = { toJSON: () => ((made += 1), text) }
      stream.add({ ...change(`${n}`), data } as never, at(`${n}`))
    }
    await recorder.close()
    expect(await readAll(store)).toHaveLength(300)
    expect([made, refused]).toEqual([300, 0])
  })

  it('closes its gate while it has too many characters to append', async () => {
    const recorder = new Recorder(simulatedStore({ latency: () => turn() }), never)
    const stream = await recorder.open('s')
    const gate: boolean[] = []
    recorder.gate.onChange((closed) => gate.push(closed))
    for (let n = 0; n < 5; n++) stream.add(change(`${n}${'x'.repeat(MAX_APPEND_LENGTH * 0.6)}`))
    expect(gate).toEqual([true])
    await recorder.close()
    expect(gate).toEqual([true, false])
  })

  it('appends an event that is nested too deeply as an unknown one of the same identity, and goes on', async () => {
    const store = simulatedStore()
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    const data: unknown = JSON.parse(`${'['.repeat(100_000)}${']'.repeat(100_000)}`)
    stream.add({ ...change('1'), data } as never, at('1'))
    stream.add(change('2'), at('2'))
    await recorder.close()
    const { source, time, via } = change('1')
    const problem = 'nested too deeply to be stored'
    expect(await readAll(store)).toMatchObject([
      { id: '1', type: 'unknown', source, time, via, data: { type: 'monitor.event_stream', problem } },
      { id: '2', type: 'monitor.event_stream' },
    ])
    expect(await store.streamPositions(['stream:s'])).toEqual(['2'])
  })

  it('appends what comes before an event that is not JSON, and fails with the error of the log', async () => {
    const store = simulatedStore()
    const failures: unknown[] = []
    const recorder = new Recorder(store, (error) => failures.push(error))
    const stream = await recorder.open('s')
    stream.add(change('1'), at('1'))
    stream.add({ ...change('2'), data: { n: 1n } } as never, at('2'))
    await recorder.close()
    expect(await store.streamPositions(['stream:s'])).toEqual(['1'])
    expect(failures).toEqual([expect.objectContaining({ name: 'LogValueError' })])
    expect(String(failures[0])).toContain('the log in memory')
  })
})
