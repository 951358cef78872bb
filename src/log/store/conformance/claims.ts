import { equal, hasLength, matches, ok, rejects, rejectsWith, same } from './checks.ts'
import { getEventListeners } from 'node:events'
import { FencedError, LogClosedError, LogError, LogInUseError } from '../../errors.ts'
import { change } from './events.ts'
import { append, idsOf, isSettled, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Claims, releases and fences. */
export function testClaims({ describe, it, open }: Area): void {
  describe('claims', () => {
    it('refuses a name that another open log holds, and names its owner', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await log.claim('billing')
      const refused = second.claim('billing')
      await rejects(refused, LogInUseError)
      await rejects(refused, LogError)
      await rejects(refused, { claimed: 'billing', owner: 'first', retryable: false })
    })

    it('gives each of two open logs names of its own', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await append(log, await log.claim('a'), change('1'))
      await append(second, await second.claim('b'), change('2'))
      equal(idsOf(await readAll(log)), ['1', '2'])
    })

    it('raises the token when the same open log claims a name again, and voids the earlier fence', async () => {
      const { log } = await open()
      const earlier = await log.claim('billing')
      const later = await log.claim('billing')
      matches(later, { name: 'billing' })
      ok(later.token > earlier.token)
      await rejects(append(log, earlier, change('1')), FencedError)
      await append(log, later, change('2'))
      equal(idsOf(await readAll(log)), ['2'])
    })

    it('raises the token from one open log to the next', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const earlier = await log.claim('billing')
      await log.release(earlier)
      ok((await second.claim('billing')).token > earlier.token)
    })

    it('gives a released name to another, and voids the fence', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('billing')
      await log.release(fence)
      await rejects(append(log, fence, change('1')), FencedError)
      await append(second, await second.claim('billing'), change('2'))
      equal(idsOf(await readAll(log)), ['2'])
    })

    it('ignores the release of a fence that is void', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const earlier = await log.claim('billing')
      const later = await log.claim('billing')
      await log.release(earlier)
      await rejects(second.claim('billing'), LogInUseError)
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
      await rejects(second.claim('billing'), LogInUseError)
      matches(await append(log, fence, change('1')), { entries: 1 })
    })

    it('frees every name when it is closed', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fences = [await log.claim('a'), await log.claim('b')]
      await log.close()
      const taken = [await second.claim('a'), await second.claim('b')]
      for (const [i, { token }] of taken.entries()) ok(token > (fences[i]?.token ?? 0))
    })

    it('waits for a name until its owner releases it', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      same(await isSettled(waiting, log), false)
      await log.release(fence)
      await append(second, await waiting, change('1'))
      await rejects(log.claim('billing'), { owner: 'second' })
    })

    it('waits for a name until its owner is closed', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      same(await isSettled(waiting, log), false)
      await log.close()
      await append(second, await waiting, change('1'))
    })

    it('waits for a name until its owner is killed, and fences the owner if it still writes', async () => {
      const { log, connect, loseClaims } = await open()
      const second = await connect('second')
      const lost = await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      same(await isSettled(waiting, log), false)
      await loseClaims(log)
      const taken = await waiting
      ok(taken.token > lost.token)
      await rejects(append(log, lost, change('1')), FencedError)
      equal(await readAll(second), [])
    })

    it('gives a name to one of those that wait for it', async () => {
      const { log, connect } = await open()
      const fence = await log.claim('billing')
      const others = [await connect('second'), await connect('third')]
      const waiting = others.map((other) => other.claim('billing', { wait: new AbortController().signal }))
      await log.release(fence)
      const taken = await Promise.race(waiting)
      const stillWaiting = await Promise.all(waiting.map(async (claim) => !(await isSettled(claim, log))))
      hasLength(stillWaiting.filter(Boolean), 1)
      const holder = others[stillWaiting.indexOf(false)]
      await holder?.release(taken)
      const all = await Promise.all(waiting)
      same(new Set(all.map(({ token }) => token)).size, 2)
    })

    it('takes a free name at once, also with a signal', async () => {
      const { log } = await open()
      const fence = await log.claim('billing', { wait: new AbortController().signal })
      matches(await append(log, fence, change('1')), { entries: 1 })
    })

    it('rejects with the reason of a signal that is aborted already, also where the name is free', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const reason = new Error('not needed any more')
      await rejectsWith(log.claim('billing', { wait: AbortSignal.abort(reason) }), reason)
      await second.claim('billing')
      await rejectsWith(log.claim('billing', { wait: AbortSignal.abort(reason) }), reason)
    })

    it('rejects a waiting claim with the reason of its signal, and does not take the name later', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const third = await connect('third')
      const fence = await log.claim('billing')
      const abort = new AbortController()
      const waiting = second.claim('billing', { wait: abort.signal })
      same(await isSettled(waiting, log), false)
      const reason = new Error('not needed any more')
      abort.abort(reason)
      await rejectsWith(waiting, reason)
      await rejectsWith(second.claim('billing', { wait: abort.signal }), reason)
      await log.release(fence)
      await third.claim('billing')
    })

    it('rejects a waiting claim when the log that waits is closed, and does not take the name later', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const third = await connect('third')
      const fence = await log.claim('billing')
      const waiting = second.claim('billing', { wait: new AbortController().signal })
      same(await isSettled(waiting, log), false)
      await Promise.all([rejects(waiting, LogClosedError), second.close()])
      await log.release(fence)
      await third.claim('billing')
    })

    it('leaves no listener on its signal', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const { signal } = new AbortController()
      const fence = await log.claim('billing', { wait: signal })
      const waiting = second.claim('billing', { wait: signal })
      same(await isSettled(waiting, log), false)
      await log.release(fence)
      await waiting
      equal(getEventListeners(signal, 'abort'), [])
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
        await rejects(log.claim(claimed), { claimed, owner: 'second' })
      }
    })
  })
}
