import { containing, equal, hasLength, matches, rejects, same } from './checks.ts'
import type { Commit, Fence, LogStore, Position } from '../contract.ts'
import type { NewDeadLetter } from '../dead-letter-store.ts'
import { FencedError, LogConflictError, LogPositionError, LogValueError } from '../../errors.ts'
import { change } from './events.ts'
import { append, isSettled, readAll } from './fixture.ts'
import type { Area } from './area.ts'

const error = { name: 'TypeError', message: 'no coffee' }

const idsOf = (letters: readonly { readonly entry: { readonly id: string } }[]) =>
  letters.map(({ entry }) => entry.id)

/** Entries that readers could not handle. */
export function testDeadLetters({ describe, it, open }: Area): void {
  describe('dead letters', () => {
    /** A log with five entries, and readers that stand at the start. */
    async function withReader() {
      let now = 5_000
      const opened = await open(() => now)
      const { log } = opened
      await append(log, await log.claim('stream'), ...['1', '2', '3', '4', '5'].map((id) => change(id)))
      const entries = await readAll(log)
      const start = await log.positionAt('start')
      const at = (i: number) => entries[i - 1]?.position ?? start
      const letterAt = (i: number, rest: Partial<NewDeadLetter> = {}): NewDeadLetter => ({
        position: at(i),
        error,
        attempts: 5,
        ...rest,
      })
      const claimed = async (reader: string) => {
        const fence = await log.claim(reader)
        await log.commit(fence, { expect: null, cursor: start, acknowledged: [] })
        return fence
      }
      /** A commit that moves no cursor. */
      const put = (fence: Fence, ...deadLetters: NewDeadLetter[]) =>
        log.commit(fence, { expect: start, cursor: start, acknowledged: [], deadLetters })
      const handled = (fence: Fence, ...redelivered: Position[]) =>
        log.commit(fence, { expect: start, cursor: start, acknowledged: [], redelivered })
      const list = (reader = 'billing', after: Position | null = null, limit = 100, store: LogStore = log) =>
        store.deadLetters.list(reader, after, limit)
      const fence = await claimed('billing')
      const setNow = (time: number) => (now = time)
      return { ...opened, start, entries, at, letterAt, claimed, put, handled, list, fence, setNow }
    }

    it('are stored with their entries by the commit that acknowledges these', async () => {
      const { log, connect, start, entries, at, letterAt, fence, list, setNow } = await withReader()
      setNow(9_000)
      await log.commit(fence, {
        expect: start,
        cursor: at(2),
        acknowledged: [at(4)],
        deadLetters: [letterAt(4)],
      })
      const stored = { entry: entries[3], error, attempts: 5, failed: 9_000, isRedelivered: false }
      equal(await list(), [stored])
      equal(await list('billing', start, 100, await connect('second')), [stored])
      equal(await log.reader('billing'), { cursor: at(2), acknowledged: [at(4)] })
    })

    it('are listed in the order of the log, in parts', async () => {
      const { letterAt, put, list, fence, at } = await withReader()
      for (const i of [3, 1, 5]) await put(fence, letterAt(i))
      equal(idsOf(await list()), ['1', '3', '5'])
      equal(idsOf(await list('billing', at(1), 1)), ['3'])
      equal(idsOf(await list('billing', at(5))), [])
    })

    it('are listed from the first one on, also where the log has deleted their entries', async () => {
      const { log, entries, letterAt, fence, start, at } = await withReader()
      const deadLetters = [letterAt(1), letterAt(4)]
      await log.commit(fence, { expect: start, cursor: at(5), acknowledged: [], deadLetters })
      await log.retention.trim({ limit: 3 })
      same(await log.positionAt('start'), at(3))
      const letters = await log.deadLetters.list('billing', null, 9)
      equal(
        letters.map(({ entry }) => entry),
        [entries[0], entries[3]],
      )
    })

    it('keep any text of an error', async () => {
      const { letterAt, put, list, fence } = await withReader()
      const odd = { name: '"', message: 'a\0b\n\u{1f600} \ud800' }
      await put(fence, letterAt(1, { error: odd }))
      matches(await list(), [{ error: odd }])
    })

    it('are listed when their entries are deleted from the log', async () => {
      const { log, letterAt, list, start, at, fence } = await withReader()
      await log.commit(fence, {
        expect: start,
        cursor: at(4),
        acknowledged: [],
        deadLetters: [letterAt(1), letterAt(2)],
      })
      await log.retention.trim({ limit: 3 })
      equal(idsOf(await list()), ['1', '2'])
      equal(idsOf(await list('billing', at(1))), ['2'])
    })

    it('keep the entry of a gap, which the log does not have', async () => {
      const { log, at, letterAt, list, start } = await withReader()
      await log.commit(await log.claim('billing'), { expect: start, cursor: at(3), acknowledged: [] })
      await log.retention.trim({ limit: 2 })
      const [entry] = (await log.read(start, { limit: 10 })).entries
      if (entry === undefined) throw new Error('there is a gap')
      same(entry.type, 'log.gap')
      const letter = letterAt(0, { position: entry.position, entry })
      const own = await log.claim('billing')
      const commit = (rest: Partial<Commit>) =>
        log.commit(own, { expect: at(3), cursor: at(3), acknowledged: [], ...rest })
      await commit({ deadLetters: [letter] })
      matches(await list(), [{ entry, error, attempts: 5 }])
      await log.deadLetters.redeliver('billing', entry.position)
      const { deadLetters, last: redelivery } = await log.deadLetters.redeliveries('billing', 0, 10)
      matches(deadLetters, [{ entry }])
      await commit({ deadLetters: [{ ...letter, attempts: 6, redelivery }] })
      matches(await list(), [{ entry, attempts: 6 }])
      await commit({ redelivered: [entry.position] })
      equal(await list(), [])
      await commit({ deadLetters: [{ ...letter, redelivery }] })
      equal(await list(), [])
    })

    it('belong to one reader, and are counted', async () => {
      const { log, letterAt, put, list, fence, claimed, at } = await withReader()
      const other = await claimed('ledger')
      await put(fence, letterAt(1), letterAt(2))
      await put(other, letterAt(2))
      equal(idsOf(await list('ledger')), ['2'])
      equal(
        await log.deadLetters.counts(),
        new Map([
          ['billing', 2],
          ['ledger', 1],
        ]),
      )
      same(await log.deadLetters.remove('ledger', at(2)), 1)
      equal(await log.deadLetters.counts(), new Map([['billing', 2]]))
      equal(idsOf(await list()), ['1', '2'])
    })

    it('are not stored by a commit that is refused', async () => {
      const { log, connect, loseClaims, start, at, letterAt, fence, list } = await withReader()
      const commit = (from: Position, ...deadLetters: NewDeadLetter[]) =>
        log.commit(fence, { expect: from, cursor: at(2), acknowledged: [], deadLetters })
      await rejects(commit(at(3), letterAt(1)), LogConflictError)
      await rejects(commit(start, letterAt(1), letterAt(2, { position: 'elsewhere' })), LogPositionError)
      const long = { name: 'Error', message: 'x'.repeat(1_000) }
      const many = Array.from({ length: 600 }, () => letterAt(1, { error: long }))
      await rejects(commit(start, ...many), LogValueError)
      await loseClaims(log)
      const second = await connect('second')
      await second.claim('billing')
      await rejects(commit(start, letterAt(1)), FencedError)
      equal(await list(), [])
      same((await log.reader('billing'))?.cursor, start)
    })

    it('are handed out again one by one, in the order in which that was asked for, each once', async () => {
      const { log, letterAt, put, fence, at, start, entries } = await withReader()
      const { deadLetters } = log
      await put(fence, letterAt(1), letterAt(2), letterAt(4))
      equal(await deadLetters.redeliveries('billing', 0, 10), { deadLetters: [], last: 0 })
      same(await deadLetters.redeliver('billing', at(4)), 1)
      same(await deadLetters.redeliver('billing', at(4)), 0)
      same(await deadLetters.redeliver('billing', at(1)), 1)
      const first = await deadLetters.redeliveries('billing', 0, 1)
      matches(first.deadLetters, [{ entry: entries[3], attempts: 5, isRedelivered: true }])
      const rest = await deadLetters.redeliveries('billing', first.last, 10)
      equal(idsOf(rest.deadLetters), ['1'])
      equal(await deadLetters.redeliveries('billing', rest.last, 10), {
        deadLetters: [],
        last: rest.last,
      })
      equal(
        (await deadLetters.list('billing', start, 9)).map(({ isRedelivered }) => isRedelivered),
        [true, false, true],
      )
    })

    it('are handed out again all at once, in the order of the log', async () => {
      const { log, letterAt, put, fence, claimed } = await withReader()
      await put(await claimed('ledger'), letterAt(5))
      for (const i of [4, 2, 3]) await put(fence, letterAt(i))
      same(await log.deadLetters.redeliver('billing', 'all'), 3)
      const { deadLetters } = await log.deadLetters.redeliveries('billing', 0, 10)
      equal(idsOf(deadLetters), ['2', '3', '4'])
      same(await log.deadLetters.redeliver('unknown', 'all'), 0)
    })

    it('that are stored a second time, as after a crash, are still handed out again', async () => {
      const { log, letterAt, put, list, fence } = await withReader()
      await put(fence, letterAt(2))
      same(await log.deadLetters.redeliver('billing', 'all'), 1)
      await put(fence, letterAt(2))
      matches(await list(), [{ entry: { id: '2' }, isRedelivered: true }])
      hasLength((await log.deadLetters.redeliveries('billing', 0, 9)).deadLetters, 1)
    })

    it('are gone once they were handled', async () => {
      const { log, letterAt, put, handled, fence, at, list } = await withReader()
      await put(fence, letterAt(1), letterAt(2))
      await log.deadLetters.redeliver('billing', 'all')
      await handled(fence, at(1))
      equal(idsOf(await list()), ['2'])
      equal(idsOf((await log.deadLetters.redeliveries('billing', 0, 10)).deadLetters), ['2'])
    })

    it('stay when they fail again, with the new error, and are not handed out until that is asked for again', async () => {
      const { log, letterAt, put, fence, at, list, setNow } = await withReader()
      await put(fence, letterAt(1))
      await log.deadLetters.redeliver('billing', 'all')
      const { last } = await log.deadLetters.redeliveries('billing', 0, 10)
      setNow(20_000)
      const again = { name: 'Error', message: 'still none' }
      await put(fence, letterAt(1, { error: again, attempts: 10, redelivery: last }))
      matches(await list(), [{ error: again, attempts: 10, failed: 20_000, isRedelivered: false }])
      equal((await log.deadLetters.redeliveries('billing', 0, 10)).deadLetters, [])
      await log.deadLetters.redeliver('billing', at(1))
      equal(idsOf((await log.deadLetters.redeliveries('billing', last, 10)).deadLetters), ['1'])
    })

    it('that fail again and are stored a second time, as after a crash, keep the redelivery number that they were given meanwhile', async () => {
      const { log, letterAt, put, fence, at, list } = await withReader()
      await put(fence, letterAt(1), letterAt(2))
      await log.deadLetters.redeliver('billing', 'all')
      const { deadLetters } = await log.deadLetters.redeliveries('billing', 0, 10)
      const [first, second] = deadLetters.map(({ number }) => number)
      const again = letterAt(1, { attempts: 10, redelivery: first ?? 0 })
      await put(fence, again)
      same(await log.deadLetters.redeliver('billing', at(1)), 1)
      await put(fence, again)
      matches(await list(), [
        { entry: { id: '1' }, attempts: 10, isRedelivered: true },
        { entry: { id: '2' }, attempts: 5, isRedelivered: true },
      ])
      const next = await log.deadLetters.redeliveries('billing', second ?? 0, 10)
      matches(next.deadLetters, [{ entry: { id: '1' }, number: next.last }])
      await put(fence, letterAt(1, { attempts: 15, redelivery: next.last }))
      matches((await log.deadLetters.redeliveries('billing', 0, 10)).deadLetters, [{ number: second }])
    })

    it('never give a redelivery number twice', async () => {
      const { log, letterAt, put, handled, fence, at } = await withReader()
      await put(fence, letterAt(1))
      await log.deadLetters.redeliver('billing', 'all')
      const { last } = await log.deadLetters.redeliveries('billing', 0, 10)
      await handled(fence, at(1))
      await put(fence, letterAt(2))
      await log.deadLetters.redeliver('billing', 'all')
      equal(idsOf((await log.deadLetters.redeliveries('billing', last, 10)).deadLetters), ['2'])
    })

    it('that were removed do not come back when their last delivery fails', async () => {
      const { log, letterAt, put, fence, list } = await withReader()
      await put(fence, letterAt(1), letterAt(2))
      await log.deadLetters.redeliver('billing', 'all')
      const { deadLetters } = await log.deadLetters.redeliveries('billing', 0, 10)
      same(await log.deadLetters.remove('billing', 'all'), 2)
      await put(fence, letterAt(1, { redelivery: deadLetters[0]?.number ?? 0, attempts: 10 }))
      equal(await list(), [])
      equal((await log.deadLetters.redeliveries('billing', 0, 10)).deadLetters, [])
      same(await log.deadLetters.remove('billing', 'all'), 0)
    })

    it('are removed or handed out one at a time, and the next one is left alone where there is none', async () => {
      const { log, letterAt, put, fence, at, list } = await withReader()
      await put(fence, letterAt(2))
      same(await log.deadLetters.remove('billing', at(1)), 0)
      same(await log.deadLetters.redeliver('billing', at(1)), 0)
      matches(await list(), [{ isRedelivered: false }])
      for (const call of ['remove', 'redeliver'] as const) {
        await rejects(log.deadLetters[call]('billing', 'elsewhere'), LogPositionError)
      }
      await rejects(list('billing', 'elsewhere'), LogPositionError)
    })

    it('survive their reader, and a restart', async () => {
      const { log, connect, letterAt, put, fence, list, start } = await withReader()
      await put(fence, letterAt(1), letterAt(2))
      await log.deadLetters.redeliver('billing', 'all')
      await log.close()
      const second = await connect('second')
      equal(idsOf(await list('billing', start, 9, second)), ['1', '2'])
      equal(idsOf((await second.deadLetters.redeliveries('billing', 0, 10)).deadLetters), ['1', '2'])
    })

    it('in any number are handed out and removed', async () => {
      const { log, fence, start, list } = await withReader()
      const ids = Array.from({ length: 600 }, (_, n) => `more ${n}`)
      for (let n = 0; n < ids.length; n += 200) {
        await append(log, await log.claim('stream'), ...ids.slice(n, n + 200).map((id) => change(id)))
      }
      const all = await readAll(log)
      for (let n = 0; n < all.length; n += 200) {
        const deadLetters = all.slice(n, n + 200).map(({ position }) => ({ position, error, attempts: 1 }))
        await log.commit(fence, { expect: start, cursor: start, acknowledged: [], deadLetters })
      }
      same(await log.deadLetters.redeliver('billing', 'all'), 605)
      const { deadLetters } = await log.deadLetters.redeliveries('billing', 0, 1_000)
      equal(
        idsOf(deadLetters),
        all.map(({ id }) => id),
      )
      same(await log.deadLetters.remove('billing', 'all'), 605)
      equal(await list(), [])
    })

    it('wake the reader that waits, also in another process, and not for a redelivery that it knows', async () => {
      const { log, connect, letterAt, put, fence, at } = await withReader()
      const second = await connect('second')
      await put(fence, letterAt(1))
      const end = await log.positionAt('end')
      const ending = new AbortController()
      const waitFor = (after: number) => log.wait(end, ending.signal, { reader: 'billing', after })
      const first = waitFor(0)
      same(await isSettled(first, log), false)
      await second.deadLetters.redeliver('billing', at(1))
      await first
      await waitFor(0)
      const { last } = await log.deadLetters.redeliveries('billing', 0, 10)
      const next = waitFor(last)
      same(await isSettled(next, log), false)
      ending.abort()
      await rejects(next, { message: containing('aborted') })
    })
  })
}
