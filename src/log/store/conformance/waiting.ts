import { equal, hasLength, rejects, rejectsWith, same } from './checks.ts'
import { getEventListeners } from 'node:events'
import { LogClosedError } from '../../errors.ts'
import { change } from './events.ts'
import { append, isSettled, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Waiting for entries. */
export function testWaiting({ describe, it, open }: Area): void {
  describe('waiting', () => {
    it('resolves at once where there are entries after the position', async () => {
      const { log } = await open()
      await append(log, await log.claim('stream'), change('1'))
      const waiting = log.wait(await log.positionAt('start'), new AbortController().signal)
      await waiting
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
        for (const wait of waiting) same(await isSettled(wait, log), false)
        const fence = await writer.claim('stream')
        await append(writer, fence, change((await readAll(log)).length === 0 ? '1' : '2'))
        await writer.release(fence)
        await Promise.all(waiting)
        hasLength(await readAll(log, end), 1)
      }
    })

    it('does not miss an append that happens while it begins to wait', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('stream')
      for (let i = 0; i < 20; i++) {
        const end = await log.positionAt('end')
        const waiting = second.wait(end, new AbortController().signal)
        await Promise.all([waiting, append(log, fence, change(String(i)))])
      }
    })

    it('rejects with the reason of its signal', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      const abort = new AbortController()
      const waiting = log.wait(end, abort.signal)
      same(await isSettled(waiting, log), false)
      const reason = new Error('unsubscribed')
      abort.abort(reason)
      await rejectsWith(waiting, reason)
      await rejectsWith(log.wait(end, abort.signal), reason)
      await append(log, await log.claim('stream'), change('1'))
      await rejectsWith(log.wait(end, abort.signal), reason)
    })

    it('leaves no listener on its signal', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      const { signal } = new AbortController()
      const waiting = log.wait(end, signal)
      same(await isSettled(waiting, log), false)
      await append(log, await log.claim('stream'), change('1'))
      await waiting
      await log.wait(end, signal)
      equal(getEventListeners(signal, 'abort'), [])
    })

    it('rejects when the log is closed, and not when another one is', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const end = await log.positionAt('end')
      const here = log.wait(end, new AbortController().signal)
      const there = second.wait(end, new AbortController().signal)
      same(await isSettled(here, log), false)
      await Promise.all([rejects(here, LogClosedError), log.close()])
      same(await isSettled(there, second), false)
      await append(second, await second.claim('stream'), change('1'))
      await there
    })
  })
}
