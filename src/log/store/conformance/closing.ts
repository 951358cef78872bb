import { any, hasLength, matches, same } from './checks.ts'
import { LogClosedError } from '../../errors.ts'
import { change } from './events.ts'
import { append, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Closing. */
export function testClosing({ describe, it, open }: Area): void {
  describe('closing', () => {
    it('rejects every call after it, and closes again', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const start = await log.positionAt('start')
      await log.close()
      const calls = [
        log.claim('stream'),
        log.claim('stream', { wait: new AbortController().signal }),
        log.release(fence),
        append(log, fence, change('1')),
        log.streamPositions(['stream']),
        log.read(start, { limit: 1 }),
        log.wait(start, new AbortController().signal),
        log.positionAt('end'),
        log.reader('billing'),
        log.commit(fence, { expect: null, cursor: start, acknowledged: [] }),
        log.deadLetters.list('billing', start, 1),
        log.deadLetters.counts(),
        log.deadLetters.redeliver('billing', 'all'),
        log.deadLetters.remove('billing', start),
        log.deadLetters.redeliveries('billing', 0, 1),
        log.inbox.put({ id: 'msg_1', timestamp: 1, payload: {} }, '{}'),
        log.inbox.pending(null, 1),
        log.inbox.wait(null, new AbortController().signal),
      ]
      for (const outcome of await Promise.allSettled(calls)) {
        matches(outcome, { status: 'rejected', reason: any(LogClosedError) })
      }
      await log.close()
    })

    it('leaves other open logs as they are', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await second.claim('stream')
      await log.close()
      await append(second, fence, change('1'))
      hasLength(await readAll(second), 1)
    })

    it('answers nothing before the caller has gone on', async () => {
      const { log } = await open()
      let isAnswered = false
      const answer = () => (isAnswered = true)
      const start = await log.positionAt('start')
      const calls = [log.claim('stream'), log.read(start, { limit: 1 }), log.reader('billing'), log.close()]
      for (const call of calls) call.then(answer, answer)
      same(isAnswered, false)
      await Promise.allSettled(calls)
    })
  })
}
