import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { MAX_APPEND_LENGTH } from '../../src/log/contract.ts'
import { memoryLog } from '../../src/log/memory-log.ts'
import { Recorder } from '../../src/log/recorder.ts'
import { change } from '../operators/events.ts'
import { readAll } from './conformance/fixture.ts'

const at = (position: string) => ({ text: () => position })

function never(error: unknown): void {
  throw error
}

describe('a recorder', () => {
  it('appends a burst in parts, and each part moves the stream as far as it goes', async () => {
    const positions: (string | null | undefined)[] = []
    const store = memoryLog({ latency: () => turn() })
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

  it('appends large events one by one', async () => {
    const store = memoryLog()
    const recorder = new Recorder(store, never)
    const stream = await recorder.open('s')
    for (let n = 0; n < 5; n++) stream.add(change(`${n}${'x'.repeat(MAX_APPEND_LENGTH * 0.6)}`), at(`${n}`))
    await recorder.close()
    expect(await readAll(store)).toHaveLength(5)
    expect(await store.streamPositions(['stream:s'])).toEqual(['4'])
  })

  it('closes its gate while the log is behind, and opens it when it has caught up', async () => {
    const store = memoryLog({ latency: () => turn() })
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
    const recorder = new Recorder(memoryLog({ faults }), (error) => failures.push(error))
    const stream = await recorder.open('s')
    for (let n = 0; n < 1_200; n++) stream.add(change(`${n}`))
    await recorder.flushed()
    stream.add(change('later'))
    await recorder.close()
    expect(failures).toEqual([new Error('full')])
    expect(recorder.gate.closed).toBe(false)
  })
})
