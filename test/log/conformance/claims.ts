import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { FencedError, LogClosedError, LogError, LogInUseError } from '../../../src/log/errors.ts'
import { change } from '../../operators/events.ts'
import { append, idsOf, isSettled, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

/** Claims, releases and fences. */
export function describeClaims(name: string, open: Open): void {
  describe(`${name}: claims`, () => {
    it('refuses a name that another open log holds, and names its owner', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await log.claim('billing')
      const refused = second.claim('billing')
      await expect(refused).rejects.toBeInstanceOf(LogInUseError)
      await expect(refused).rejects.toBeInstanceOf(LogError)
      await expect(refused).rejects.toMatchObject({ claimed: 'billing', owner: 'first', retryable: false })
    })

    it('gives each of two open logs names of its own', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await append(log, await log.claim('a'), change('1'))
      await append(second, await second.claim('b'), change('2'))
      expect(idsOf(await readAll(log))).toEqual(['1', '2'])
    })

    it('raises the token when the same open log claims a name again, and voids the earlier fence', async () => {
      const { log } = await open()
      const earlier = await log.claim('billing')
      const later = await log.claim('billing')
      expect(later).toMatchObject({ name: 'billing' })
      expect(later.token).toBeGreaterThan(earlier.token)
      await expect(append(log, earlier, change('1'))).rejects.toBeInstanceOf(FencedError)
      await append(log, later, change('2'))
      expect(idsOf(await readAll(log))).toEqual(['2'])
    })

    it('raises the token from one open log to the next', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const earlier = await log.claim('billing')
      await log.release(earlier)
      expect((await second.claim('billing')).token).toBeGreaterThan(earlier.token)
    })

    it('gives a released name to another, and voids the fence', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('billing')
      await log.release(fence)
      await expect(append(log, fence, change('1'))).rejects.toBeInstanceOf(FencedError)
      await append(second, await second.claim('billing'), change('2'))
      expect(idsOf(await readAll(log))).toEqual(['2'])
    })

    it('ignores the release of a fence that is void', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const earlier = await log.claim('billing')
      const later = await log.claim('billing')
      await log.release(earlier)
      await expect(second.claim('billing')).rejects.toBeInstanceOf(LogInUseError)
      await log.release(later)
      await log.release(later)
      await log.release({ name: 'unknown', token: 1 })
      const taken = await second.claim('billing')
      await log.release(later)
      await append(second, taken, change('1'))
    })

    it('keeps a name that another open log tries to release', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('billing')
      await second.release(fence)
      await expect(second.claim('billing')).rejects.toBeInstanceOf(LogInUseError)
      expect(await append(log, fence, change('1'))).toMatchObject({ entries: 1 })
    })

    it('frees every name when it is closed', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fences = [await log.claim('a'), await log.claim('b')]
      await log.close()
      const taken = [await second.claim('a'), await second.claim('b')]
      for (const [i, { token }] of taken.entries()) expect(token).toBeGreaterThan(fences[i]?.token ?? 0)
    })

    it('waits for a name until its owner releases it', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      expect(await isSettled(waiting, log)).toBe(false)
      await log.release(fence)
      await append(second, await waiting, change('1'))
      await expect(log.claim('billing')).rejects.toMatchObject({ owner: 'second' })
    })

    it('waits for a name until its owner is closed', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      expect(await isSettled(waiting, log)).toBe(false)
      await log.close()
      await append(second, await waiting, change('1'))
    })

    it('waits for a name until its owner is killed, and fences the owner if it still writes', async () => {
      const { log, connect, loseClaims } = await open()
      const second = await connect('second')
      const lost = await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      expect(await isSettled(waiting, log)).toBe(false)
      await loseClaims(log)
      const taken = await waiting
      expect(taken.token).toBeGreaterThan(lost.token)
      await expect(append(log, lost, change('1'))).rejects.toBeInstanceOf(FencedError)
      expect(await readAll(second)).toEqual([])
    })

    it('gives a name to one of those that wait for it', async () => {
      const { log, connect } = await open()
      const fence = await log.claim('billing')
      const others = [await connect('second'), await connect('third')]
      const waiting = others.map((other) => other.claim('billing', { wait: new AbortController().signal }))
      await log.release(fence)
      const taken = await Promise.race(waiting)
      const stillWaiting = await Promise.all(waiting.map(async (claim) => !(await isSettled(claim, log))))
      expect(stillWaiting.filter(Boolean)).toHaveLength(1)
      const holder = others[stillWaiting.indexOf(false)]
      await holder?.release(taken)
      const all = await Promise.all(waiting)
      expect(new Set(all.map(({ token }) => token)).size).toBe(2)
    })

    it('takes a free name at once, also with a signal', async () => {
      const { log } = await open()
      const fence = await log.claim('billing', { wait: new AbortController().signal })
      expect(await append(log, fence, change('1'))).toMatchObject({ entries: 1 })
    })

    it('rejects with the reason of a signal that is aborted already, also where the name is free', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const reason = new Error('not needed any more')
      await expect(log.claim('billing', { wait: AbortSignal.abort(reason) })).rejects.toBe(reason)
      await second.claim('billing')
      await expect(log.claim('billing', { wait: AbortSignal.abort(reason) })).rejects.toBe(reason)
    })

    it('rejects a waiting claim with the reason of its signal, and does not take the name later', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const third = await connect('third')
      const fence = await log.claim('billing')
      const abort = new AbortController()
      const waiting = second.claim('billing', { wait: abort.signal })
      expect(await isSettled(waiting, log)).toBe(false)
      const reason = new Error('not needed any more')
      abort.abort(reason)
      await expect(waiting).rejects.toBe(reason)
      await expect(second.claim('billing', { wait: abort.signal })).rejects.toBe(reason)
      await log.release(fence)
      await third.claim('billing')
    })

    it('rejects a waiting claim when the log that waits is closed, and does not take the name later', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const third = await connect('third')
      const fence = await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      expect(await isSettled(waiting, log)).toBe(false)
      await Promise.all([expect(waiting).rejects.toBeInstanceOf(LogClosedError), second.close()])
      await log.release(fence)
      await third.claim('billing')
    })

    it('leaves no listener on its signal', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const { signal } = new AbortController()
      const fence = await log.claim('billing', { wait: signal })
      const waiting = second.claim('billing', { wait: signal })
      expect(await isSettled(waiting, log)).toBe(false)
      await log.release(fence)
      await waiting
      expect(getEventListeners(signal, 'abort')).toEqual([])
    })

    it('distinguishes names that differ in null bytes and lone surrogates alone', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const names = [
        'n',
        'n\0',
        'n\0a',
        'n\ud800',
        'n\ud801',
        'n\ufffd',
        '__proto__',
        'N',
        'n '.repeat(10_000),
      ]
      await log.claim('n')
      for (const claimed of names.slice(1)) await second.claim(claimed)
      for (const claimed of names.slice(1)) {
        await expect(log.claim(claimed)).rejects.toMatchObject({ claimed, owner: 'second' })
      }
    })
  })
}
