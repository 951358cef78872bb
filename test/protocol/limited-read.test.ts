import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { limitedRead } from '../../src/protocol/limited-read.ts'

describe('limitedRead', () => {
  it('resolves with undefined when a read takes longer than its limit, and begins no other one meanwhile', async () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const reads: PromiseWithResolvers<string>[] = []
    const read = limitedRead(() => {
      const next = Promise.withResolvers<string>()
      reads.push(next)
      return next.promise
    }, 1_000)
    for (let calls = 0; calls < 3; calls++) {
      const call = read()
      await vi.advanceTimersByTimeAsync(1_000)
      expect(await call).toBeUndefined()
    }
    expect(reads).toHaveLength(1)
    reads[0]?.resolve('late')
    await vi.advanceTimersByTimeAsync(0)
    const next = read()
    reads[1]?.resolve('in time')
    expect(await next).toBe('in time')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('rejects as the read does', async () => {
    await expect(limitedRead(() => Promise.reject(new Error('closed')), 1_000)()).rejects.toThrow('closed')
  })
})
