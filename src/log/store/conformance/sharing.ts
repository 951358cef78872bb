import { equal, hasLength, rejects, same } from './checks.ts'
import { LogClosedError, LogInUseError } from '../../errors.ts'
import type { LogStore } from '../contract.ts'
import { change } from './events.ts'
import { append, idsOf } from './fixture.ts'
import type { Area } from './area.ts'

/** The parts of one member, as they change. */
function member(log: LogStore, group = 'group', parts = 8) {
  const leaving = new AbortController()
  const shares = log.sharing.share(group, parts, leaving.signal)[Symbol.asyncIterator]()
  return {
    next: async () => {
      const { value } = await shares.next()
      return value === undefined ? undefined : [...value].toSorted((a, b) => a - b)
    },
    leave: () => leaving.abort(),
  }
}

/** The parts of a member, once they are so. */
async function until(
  { next }: ReturnType<typeof member>,
  isReached: (parts: readonly number[]) => boolean,
): Promise<readonly number[]> {
  for (;;) {
    const parts = await next()
    if (parts === undefined) throw new Error('the member has left')
    if (isReached(parts)) return parts
  }
}

/** Dividing work among open logs. */
export function testSharing({ describe, it, open }: Area): void {
  describe('sharing', () => {
    it('divides sources into partitions, and reads one of them', async () => {
      const { log } = await open()
      const { count, of } = await log.sharing.partitions()
      const fence = await log.claim('stream')
      const events = Array.from({ length: 20 }, (_, n) => ({ ...change(String(n)), source: `/v1/s/${n}` }))
      await append(log, fence, ...events)
      const start = await log.positionAt('start')
      const read = await Promise.all(
        Array.from({ length: count }, async (_, partition) => {
          const page = await log.read(start, { limit: 100, partition })
          same(page.isEnd, true)
          equal(
            page.entries.map(({ source }) => of(source)),
            page.entries.map(() => partition),
          )
          hasLength(page.lengths, page.entries.length)
          return idsOf(page.entries)
        }),
      )
      equal(read.flat().toSorted(), idsOf(events).toSorted())
    })

    it('goes on after the entries of other partitions', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, ...Array.from({ length: 9 }, (_, n) => change(String(n))))
      const start = await log.positionAt('start')
      const { count, of } = await log.sharing.partitions()
      const other = (of(change('1').source) + 1) % count
      const { entries, position, isEnd } = await log.read(start, { limit: 4, partition: other })
      if (count === 1) return
      equal(entries, [])
      same(isEnd, true)
      same(position, await log.positionAt('end'))
    })

    it('gives every part to the only member', async () => {
      const { log } = await open()
      const { next, leave } = member(log)
      equal(await next(), [0, 1, 2, 3, 4, 5, 6, 7])
      const ended = next()
      leave()
      same(await ended, undefined)
    })

    it('gives each part to a member, also after one has left or lost its claims', async () => {
      const { log, connect, loseClaims } = await open()
      const first = member(log)
      await first.next()
      const { count } = await log.sharing.partitions()
      // Where sources are not divided, each member has every part.
      if (count === 1) return
      const [second, third] = [await connect('second'), await connect('third')]
      const [two, three] = [member(second), member(third)]
      await until(two, ({ length }) => length === 4)
      const [a, b, c] = await Promise.all([
        until(first, ({ length }) => length <= 3),
        until(two, ({ length }) => length <= 3),
        until(three, ({ length }) => length >= 2),
      ])
      equal(
        [...a, ...b, ...c].toSorted((x, y) => x - y),
        [0, 1, 2, 3, 4, 5, 6, 7],
      )
      await loseClaims(third)
      const [d, e] = await Promise.all([first, two].map((one) => until(one, ({ length }) => length === 4)))
      equal([...(d ?? []), ...(e ?? [])].toSorted(), [0, 1, 2, 3, 4, 5, 6, 7])
      two.leave()
      hasLength(await until(first, ({ length }) => length > 4), 8)
    })

    it('divides each group by itself', async () => {
      const { log } = await open()
      equal(await member(log, 'one').next(), [0, 1, 2, 3, 4, 5, 6, 7])
      equal(await member(log, 'two', 3).next(), [0, 1, 2])
    })

    it('refuses a second membership, and a closed log', async () => {
      const { log } = await open()
      const one = member(log)
      await one.next()
      await rejects(member(log).next(), LogInUseError)
      const closed = one.next()
      await Promise.all([rejects(closed, LogClosedError), log.close()])
      await rejects(member(log).next(), LogClosedError)
    })
  })
}
