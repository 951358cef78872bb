import { describe, expect, it } from 'vitest'
import { createLimiter } from '../../../src/service/extract/limiter.ts'

const never = new AbortController().signal

describe('the limiter', () => {
  it('runs a bounded number of tasks at once, in order, also after a failure', async () => {
    const limiter = createLimiter(2)
    const started: number[] = []
    const tasks = Array.from({ length: 4 }, () => Promise.withResolvers<number>())
    const running = tasks.map(({ promise }, index) =>
      limiter(() => {
        started.push(index)
        return promise
      }, never).catch((error: unknown) => error),
    )
    await Promise.resolve()

    expect(started).toEqual([0, 1])
    tasks[1]?.reject('failed')
    expect(await running[1]).toBe('failed')
    expect(started).toEqual([0, 1, 2])
    for (const [index, { resolve }] of tasks.entries()) resolve(index)

    expect(await Promise.all(running)).toEqual([0, 'failed', 2, 3])
  })

  it('does not start a task that was aborted while it waited, and keeps its place free', async () => {
    const limiter = createLimiter(1)
    const first = Promise.withResolvers<string>()
    const controller = new AbortController()
    const running = limiter(() => first.promise, never)
    const aborted = limiter(() => Promise.resolve('started'), controller.signal)
    const last = limiter(() => Promise.resolve('last'), never)

    controller.abort('enough')
    await expect(aborted).rejects.toBe('enough')
    first.resolve('first')

    expect(await Promise.all([running, last])).toEqual(['first', 'last'])
  })
})
