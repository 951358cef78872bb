import { any, containing, equal, hasLength, matches, rejects } from './checks.ts'
import { MAX_APPEND_ENTRIES, MAX_APPEND_LENGTH } from '../contract.ts'
import { FencedError, LogConflictError, LogValueError } from '../../errors.ts'
import { failureEvent } from '../../../protocol/event.ts'
import { change, fullRun } from './events.ts'
import { append, bySource, entriesOf, idsOf, readAll } from './fixture.ts'
import type { Area } from './area.ts'
import { newEntry } from '../new-entry.ts'

/** What streams bring, in one transaction. */
export function testAppending({ describe, it, open }: Area): void {
  describe('appending', () => {
    it('gives back an event as it was appended, with what the log knows of it', async () => {
      const { log } = await open(() => 5_000)
      const event = fullRun('r')
      const fence = await log.claim('stream')
      const appended = await log.append([
        { fence, expect: null, entries: [newEntry(event), newEntry(change('1'), true)] },
      ])
      const [run, detected] = (await readAll(log)).toSorted((a, b) => b.source.localeCompare(a.source))
      equal(run, {
        ...event,
        recorded: 5_000,
        revision: 1,
        backfill: false,
        position: any(String),
      })
      matches(detected, { id: '1', backfill: true })
      equal(appended, { entries: 2, duplicates: 0, ahead: 0, end: await log.positionAt('end') })
    })

    it('keeps the name and the message of the error in a failure', async () => {
      const { log } = await open()
      class TeapotError extends TypeError {
        override readonly name = 'TeapotError'
        readonly cups = 2n
      }
      const error = new TeapotError('no coffee', { cause: new Error('inside') })
      const failures = [error, Object.assign(new Error('refused'), { toJSON: () => ({ status: 418 }) })]
      const events = failures.map((failure) => failureEvent('/v1/monitors/m', { error: failure }, 'poll'))
      await append(log, await log.claim('stream'), ...events)
      equal(
        (await readAll(log)).map(({ data }) => data),
        [{ error: { name: 'TeapotError', message: 'no coffee' } }, { error: { status: 418 } }],
      )
    })

    it('refuses more than an append may have, and writes nothing of it', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const many = Array.from({ length: MAX_APPEND_ENTRIES + 1 }, (_, n) => change(`${n}`))
      const half = 'x'.repeat(MAX_APPEND_LENGTH / 2)
      const long = [change(`1${half}`), change(`2${half}`)]
      await rejects(append(log, fence, ...many), LogValueError)
      await rejects(append(log, fence, ...long), { message: containing('Append them in parts') })
      equal(await readAll(log), [])
      await append(log, fence, ...many.slice(1))
      hasLength(await readAll(log), MAX_APPEND_ENTRIES)
    })

    it('takes a single entry of any length', async () => {
      const { log } = await open()
      await append(log, await log.claim('stream'), change('x'.repeat(MAX_APPEND_LENGTH)))
      hasLength(await readAll(log), 1)
    })

    it('shows entries of one open log to another', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await append(log, await log.claim('stream'), change('1'))
      equal(await readAll(second), await readAll(log))
      await append(log, await log.claim('stream'), change('2'))
      equal(idsOf(await readAll(second)), ['1', '2'])
    })

    it('keeps entries, positions of streams and readers when all are closed and one is opened again', async () => {
      const { log, connect } = await open()
      const fence = await log.claim('stream')
      const { end } = await log.append([
        { fence, expect: null, position: 'p1', entries: entriesOf(change('1'), change('2')) },
      ])
      const entries = await readAll(log)
      await log.commit(await log.claim('billing'), { expect: null, cursor: end, acknowledged: [] })
      await log.close()
      const reopened = await connect('second')
      equal(await readAll(reopened), entries)
      equal(await reopened.streamPositions(['stream']), ['p1'])
      equal(await reopened.reader('billing'), { cursor: end, acknowledged: [] })
      const again = await reopened.append([
        { fence: await reopened.claim('stream'), expect: 'p1', entries: entriesOf(change('2')) },
      ])
      equal(again, { entries: 0, duplicates: 1, ahead: 0, end })
    })

    it('keeps the order within a source', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const ids = Array.from({ length: 30 }, (_, i) => `e${i}`)
      for (let i = 0; i < 30; i += 3) {
        const batch = ids.slice(i, i + 3)
        const events = ['a', 'b', 'c', 'd'].flatMap((monitor) => batch.map((id) => change(id, monitor)))
        await append(log, fence, ...events)
      }
      const read = bySource(await readAll(log, undefined, { limit: 7 }))
      hasLength(Object.keys(read), 4)
      for (const source of Object.values(read)) equal(source, ids)
    })

    it('takes an append without entries, and one without streams', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      equal(await log.append([]), { entries: 0, duplicates: 0, ahead: 0, end })
      const fence = await log.claim('stream')
      equal(await log.append([{ fence, expect: null, position: 'p1', entries: [] }]), {
        entries: 0,
        duplicates: 0,
        ahead: 0,
        end,
      })
      equal(await log.streamPositions(['stream']), ['p1'])
    })

    it('writes nothing for a writer whose name was claimed by another since', async () => {
      const { log, connect, loseClaims } = await open()
      const second = await connect('second')
      const lost = await log.claim('stream')
      await loseClaims(log)
      const taken = await second.claim('stream')
      await second.append([{ fence: taken, expect: null, position: 'p1', entries: entriesOf(change('1')) }])
      for (const expected of [null, 'p1']) {
        const write = log.append([
          { fence: lost, expect: expected, position: 'p2', entries: entriesOf(change('2')) },
        ])
        await rejects(write, FencedError)
        await rejects(write, { claimed: 'stream', retryable: false })
      }
      equal(idsOf(await readAll(second)), ['1'])
      equal(await second.streamPositions(['stream']), ['p1'])
    })

    it('refuses a fence that was never given', async () => {
      const { log } = await open()
      await rejects(append(log, { name: 'stream', token: 1 }, change('1')), FencedError)
      const { token } = await log.claim('stream')
      for (const made of [token + 1, token - 1, token + 0.5, -1, Number.NaN]) {
        await rejects(append(log, { name: 'stream', token: made }, change('1')), FencedError)
      }
      equal(await readAll(log), [])
    })

    it('writes nothing of any stream when one of them does not stand where it was expected', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      const write = log.append([
        { fence: a, expect: null, position: 'a1', entries: entriesOf(change('1')) },
        { fence: b, expect: 'b1', position: 'b2', entries: entriesOf(change('2')) },
      ])
      await rejects(write, LogConflictError)
      await rejects(write, { subject: 'b', retryable: false })
      equal(await readAll(log), [])
      equal(await log.streamPositions(['a', 'b']), [null, null])
      // Nor are their identities known.
      matches(await append(log, a, change('1')), { entries: 1 })
    })

    it('writes nothing of any stream when one of them is fenced', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      await log.claim('b')
      const write = log.append([
        { fence: a, expect: null, position: 'a1', entries: entriesOf(change('1')) },
        { fence: b, expect: null, entries: entriesOf(change('2')) },
      ])
      await rejects(write, { name: 'FencedError', claimed: 'b' })
      equal(await readAll(log), [])
      equal(await log.streamPositions(['a']), [null])
    })

    it('appends what several streams bring, and moves each of them', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      await log.append([
        { fence: a, expect: null, position: 'a1', entries: entriesOf(change('1', 'a')) },
        { fence: b, expect: null, position: 'b1', entries: entriesOf(change('1', 'b'), change('2', 'b')) },
      ])
      equal(bySource(await readAll(log)), {
        '/v1/monitors/a': ['1'],
        '/v1/monitors/b': ['1', '2'],
      })
      equal(await log.streamPositions(['b', 'unknown', 'a']), ['b1', null, 'a1'])
    })

    it('refuses an append that expects no position where the stream has one, or another one', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      for (const expected of [null, 'p2', '']) {
        const write = log.append([
          { fence, expect: expected, position: 'p3', entries: entriesOf(change('1')) },
        ])
        await rejects(write, LogConflictError)
      }
      await log.append([{ fence, expect: 'p1', position: 'p2', entries: entriesOf(change('1')) }])
      equal(await log.streamPositions(['stream']), ['p2'])
    })

    it('appends what one stream brings in several parts, each from where the earlier one ends', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const part = (from: string | null, to: string) => ({
        fence,
        expect: from,
        position: to,
        entries: entriesOf(change(to)),
      })
      await rejects(log.append([part(null, 'p1'), part(null, 'p2')]), LogConflictError)
      equal(await log.streamPositions(['stream']), [null])
      await log.append([part(null, 'p1'), part('p1', 'p2')])
      equal(idsOf(await readAll(log)), ['p1', 'p2'])
      equal(await log.streamPositions(['stream']), ['p2'])
    })

    it('leaves a stream where it is when an append has no position', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      await log.append([{ fence, expect: 'p1', entries: entriesOf(change('1')) }])
      equal(await log.streamPositions(['stream']), ['p1'])
    })

    it('keeps the positions of streams exactly as they are', async () => {
      const { log } = await open()
      const positions = [
        '',
        'a\0b',
        'a\0',
        '\ud800',
        '\udfff',
        '\ufffd',
        '__proto__',
        'x'.repeat(100_000),
        ' 1',
      ]
      const fence = await log.claim('stream')
      let last: string | null = null
      for (const position of positions) {
        await log.append([{ fence, expect: last, position, entries: [] }])
        equal(await log.streamPositions(['stream']), [position])
        last = position
      }
    })

    it('never lets recorded decrease, even if the clock goes back', async () => {
      let now = 5_000
      const { log, connect } = await open(() => now)
      const second = await connect('second')
      await append(log, await log.claim('a'), change('1', 'a'), change('1', 'b'))
      now = 3_000
      await append(second, await second.claim('b'), change('2', 'a'), change('2', 'b'))
      now = 7_000
      await append(log, await log.claim('a'), change('3', 'b'), change('3', 'a'))
      const recorded = (await readAll(log)).map((entry) => entry.recorded)
      equal(recorded, [5_000, 5_000, 5_000, 5_000, 7_000, 7_000])
    })

    it('does not change what is read when the caller changes what it appended or read', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const event = fullRun('r')
      const pending = append(log, fence, event)
      Object.assign(event, { id: 'changed' })
      Object.assign(event.data ?? {}, { output: 'changed' })
      await pending
      const [entry] = await readAll(log)
      matches(entry, { id: 'r:completed', data: { output: { content: 'found by r' } } })
      const intact = structuredClone(entry)
      try {
        Object.assign(entry?.data ?? {}, { output: 'changed' })
      } catch {
        // A frozen one is as good.
      }
      equal(await readAll(log), [intact])
    })
  })
}
