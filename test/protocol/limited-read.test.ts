import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { limitedRead } from '../../src/protocol/limited-read.ts'

describe('limitedRead', () => {
  /** Reads with a limit of 1 s, in virtual time. */
  function reading() {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const reads: PromiseWithResolvers<string>[] = []
    const read = limitedRead(() => {
      const next = Promise.withResolvers<string>()
      reads.push(next)
      return next.promise
    }, 1_000)
    /** Reads over and over for so many seconds. */
    const late = async (seconds: number) => {
      for (let calls = 0; calls < seconds; calls++) {
        const call = read()
        await vi.advanceTimersByTimeAsync(1_000)
        expect(await call).toBeUndefined()
      }
    }
    return { reads, read, late }
  }

  it('resolves with undefined when a read takes longer than its limit, and begins no other one meanwhile', async () => {
    const { reads, read, late } = reading()
    await late(3)
    expect(reads).toHaveLength(1)
    reads[0]?.resolve('late')
    await vi.advanceTimersByTimeAsync(0)
    const next = read()
    reads[1]?.resolve('in time')
    expect(await next).toBe('in time')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('gives up a read that never ends, and reads anew', async () => {
    const { reads, read, late } = reading()
    await late(10)
    expect(reads).toHaveLength(1)
    const next = read()
    expect(reads).toHaveLength(2)
    reads[1]?.resolve('in time')
    expect(await next).toBe('in time')
  })

  it('waits twice as long for the next one each time that it gives up, until one ends', async () => {
    const { reads, read, late } = reading()
    await late(10 + 20 + 40)
    expect(reads).toHaveLength(3)
    // One that was given up changes nothing.
    reads[0]?.resolve('far too late')
    await late(1)
    expect(reads).toHaveLength(4)
    reads[3]?.resolve('late')
    await vi.advanceTimersByTimeAsync(0)
    await late(10)
    void read()
    expect(reads).toHaveLength(6)
  })

  it('rejects as the read does', async () => {
    await expect(limitedRead(() => Promise.reject(new Error('closed')), 1_000)()).rejects.toThrow('closed')
  })
})
