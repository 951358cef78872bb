import { equal, rejects, same } from './checks.ts'
import { MAX_COMMIT_BYTES } from '../contract.ts'
import { FencedError, LogConflictError, LogValueError } from '../../errors.ts'
import { change } from './events.ts'
import { append, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Cursors and acknowledged positions. */
export function testReaders({ describe, it, open }: Area): void {
  describe('readers', () => {
    /** A log with entries, and a reader with this name. */
    async function withReader() {
      const opened = await open()
      const { log } = opened
      await append(log, await log.claim('stream'), ...['1', '2', '3', '4', '5'].map((id) => change(id)))
      const positions = (await readAll(log)).map(({ position }) => position)
      const start = await log.positionAt('start')
      const at = (i: number) => positions[i - 1] ?? start
      return { ...opened, at, fence: await log.claim('billing') }
    }

    it('does not know a reader that never committed', async () => {
      const { log } = await withReader()
      for (const unknown of ['billing', '__proto__', 'constructor', '']) {
        same(await log.reader(unknown), undefined)
      }
    })

    it('creates a reader where none is expected, and moves it from where it stands', async () => {
      const { log, connect, at, fence } = await withReader()
      const second = await connect('second')
      await log.commit(fence, { expect: null, cursor: at(0), acknowledged: [] })
      equal(await second.reader('billing'), { cursor: at(0), acknowledged: [] })
      await log.commit(fence, { expect: at(0), cursor: at(2), acknowledged: [] })
      equal(await second.reader('billing'), { cursor: at(2), acknowledged: [] })
      await log.commit(fence, { expect: at(2), cursor: at(1), acknowledged: [] })
      equal(await second.reader('billing'), { cursor: at(1), acknowledged: [] })
    })

    it('keeps acknowledged positions, as the last commit has them', async () => {
      const { log, at, fence } = await withReader()
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [at(3), at(5)] })
      equal(await log.reader('billing'), { cursor: at(1), acknowledged: [at(3), at(5)] })
      await log.commit(fence, { expect: at(1), cursor: at(1), acknowledged: [at(3)] })
      equal(await log.reader('billing'), { cursor: at(1), acknowledged: [at(3)] })
      await log.commit(fence, { expect: at(1), cursor: at(5), acknowledged: [] })
      equal(await log.reader('billing'), { cursor: at(5), acknowledged: [] })
    })

    it('refuses a commit that expects another cursor, and changes nothing', async () => {
      const { log, at, fence } = await withReader()
      const missing = log.commit(fence, { expect: at(0), cursor: at(1), acknowledged: [] })
      await rejects(missing, LogConflictError)
      same(await log.reader('billing'), undefined)
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [at(3)] })
      for (const expected of [null, at(0), at(2)]) {
        const write = log.commit(fence, { expect: expected, cursor: at(4), acknowledged: [] })
        await rejects(write, LogConflictError)
        await rejects(write, { subject: 'billing' })
      }
      equal(await log.reader('billing'), { cursor: at(1), acknowledged: [at(3)] })
    })

    it('refuses the commit of a reader whose name was claimed by another since, and changes nothing', async () => {
      const { log, connect, loseClaims, at, fence } = await withReader()
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [] })
      await loseClaims(log)
      const second = await connect('second')
      const taken = await second.claim('billing')
      const write = log.commit(fence, { expect: at(1), cursor: at(2), acknowledged: [] })
      await rejects(write, FencedError)
      equal(await second.reader('billing'), { cursor: at(1), acknowledged: [] })
      await second.commit(taken, { expect: at(1), cursor: at(3), acknowledged: [] })
    })

    it('keeps readers apart from each other, and from streams of the same name', async () => {
      const { log, at, fence } = await withReader()
      const other = await log.claim('ledger')
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [] })
      await log.commit(other, { expect: null, cursor: at(2), acknowledged: [at(4)] })
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      equal(await log.reader('billing'), { cursor: at(1), acknowledged: [] })
      equal(await log.reader('ledger'), { cursor: at(2), acknowledged: [at(4)] })
      equal(await log.streamPositions(['billing', 'ledger']), ['p1', null])
    })

    it('takes a commit of up to 10,000 acknowledged positions, and refuses one of more than MAX_COMMIT_BYTES', async () => {
      const { log, at, fence } = await withReader()
      const acknowledged = Array.from({ length: 10_000 }, () => at(3))
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged })
      equal(await log.reader('billing'), { cursor: at(1), acknowledged })
      const count = Math.ceil(MAX_COMMIT_BYTES / at(3).length)
      const write = log.commit(fence, {
        expect: at(1),
        cursor: at(2),
        acknowledged: Array.from({ length: count }, () => at(3)),
      })
      await rejects(write, LogValueError)
      same((await log.reader('billing'))?.cursor, at(1))
    })
  })
}
