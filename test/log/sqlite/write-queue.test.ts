import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { isBusy } from '../../../src/log/sqlite/sqlite-error.ts'
import { WriteQueue } from '../../../src/log/sqlite/write-queue.ts'

/** What SQLite throws while another program writes. */
const locked = () => Object.assign(new Error('database is locked'), { errcode: 5 })

describe('a write behind one that waits for another program', () => {
  it('is given up after its own patience, and does not run later', async () => {
    const queue = new WriteQueue()
    let isLocked = true
    let isRun = false
    const first = queue.run(() => {
      if (isLocked) throw locked()
      return 'first'
    }, 60_000)
    const second = queue.run(() => (isRun = true), 1)
    const third = queue.run(() => 'third', 60_000)
    const refused: unknown = await second.catch((error: unknown) => error)
    expect(isBusy(refused)).toBe(true)
    isLocked = false
    expect(await Promise.all([first, third])).toEqual(['first', 'third'])
    await turn()
    expect(isRun).toBe(false)
  })
})
