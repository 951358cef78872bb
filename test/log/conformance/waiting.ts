import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { LogClosedError } from '../../../src/log/errors.ts'
import { change } from '../../operators/events.ts'
import { append, isSettled, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

/** Waiting for entries. */
export function describeWaiting(name: string, open: Open): void {
  describe(`${name}: waiting`, () => {
    it('resolves at once where there are entries after the position', async () => {
      const { log } = await open()
      await append(log, await log.claim('stream'), change('1'))
      const waiting = log.wait(await log.positionAt('start'), new AbortController().signal)
      await expect(waiting).resolves.toBeUndefined()
    })

    it('resolves after an append, by itself and by another open log', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      for (const writer of [log, second]) {
        const end = await log.positionAt('end')
        const waiting = [
          log.wait(end, new AbortController().signal),
          log.wait(end, new AbortController().signal),
        ]
        for (const wait of waiting) expect(await isSettled(wait, log)).toBe(false)
        const fence = await writer.claim('stream')
        await append(writer, fence, change((await readAll(log)).length === 0 ? '1' : '2'))
        await writer.release(fence)
        await Promise.all(waiting)
        expect(await readAll(log, end)).toHaveLength(1)
      }
    })

    it('does not miss an append that happens while it begins to wait', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('stream')
      for (let i = 0; i < 20; i++) {
        const end = await log.positionAt('end')
        const waiting = second.wait(end, new AbortController().signal)
        await Promise.all([expect(waiting).resolves.toBeUndefined(), append(log, fence, change(String(i)))])
      }
    })

    it('rejects with the reason of its signal', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      const abort = new AbortController()
      const waiting = log.wait(end, abort.signal)
      expect(await isSettled(waiting, log)).toBe(false)
      const reason = new Error('unsubscribed')
      abort.abort(reason)
      await expect(waiting).rejects.toBe(reason)
      await expect(log.wait(end, abort.signal)).rejects.toBe(reason)
      await append(log, await log.claim('stream'), change('1'))
      await expect(log.wait(end, abort.signal)).rejects.toBe(reason)
    })

    it('leaves no listener on its signal', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      const { signal } = new AbortController()
      const waiting = log.wait(end, signal)
      expect(await isSettled(waiting, log)).toBe(false)
      await append(log, await log.claim('stream'), change('1'))
      await waiting
      await log.wait(end, signal)
      expect(getEventListeners(signal, 'abort')).toEqual([])
    })

    it('rejects when the log is closed, and not when another one is', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const end = await log.positionAt('end')
      const here = log.wait(end, new AbortController().signal)
      const there = second.wait(end, new AbortController().signal)
      expect(await isSettled(here, log)).toBe(false)
      await Promise.all([expect(here).rejects.toBeInstanceOf(LogClosedError), log.close()])
      expect(await isSettled(there, second)).toBe(false)
      await append(second, await second.claim('stream'), change('1'))
      await there
    })
  })
}
