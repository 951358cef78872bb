import { describe, expect, it, vi } from 'vitest'
import { ProcessorSlots } from '../../../src/service/processor/slots.ts'

const never = new AbortController().signal

describe('the slots of the processor', () => {
  it('pass a released slot to the request that waited first, and say that one is free only after the last', async () => {
    const slots = new ProcessorSlots(1)
    const free = vi.fn<() => void>()
    slots.onFree(free)
    const order: number[] = []
    await slots.wait(never)
    const first = slots.wait(never).then(() => order.push(1))
    const second = slots.wait(never).then(() => order.push(2))
    slots.release()
    await first
    slots.release()
    await second
    const calls = free.mock.calls.length
    slots.release()

    expect(order).toEqual([1, 2])
    expect([calls, free.mock.calls.length, slots.isFree]).toEqual([0, 1, true])
  })

  it('forget a request that is aborted while it waits', async () => {
    const slots = new ProcessorSlots(1)
    const client = new AbortController()
    slots.take()
    const waiting = slots.wait(client.signal)
    const before = slots.waiting
    client.abort(new Error('gone'))

    await expect(waiting).rejects.toThrow('gone')
    expect([before, slots.waiting]).toEqual([1, 0])
    slots.release()
    expect(slots.isFree).toBe(true)
  })

  it('refuse to be taken when none is free', () => {
    const slots = new ProcessorSlots(1)
    slots.take()
    expect(() => slots.take()).toThrow('no free slot')
  })
})
