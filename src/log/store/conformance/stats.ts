import { any, equal, matches, rejects, same, satisfying } from './checks.ts'
import type { Fence, Position } from '../contract.ts'
import { FencedError } from '../../errors.ts'
import { change } from './events.ts'
import { append, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** The numbers of a log. */
export function testStats({ describe, it, open, isExact }: Area): void {
  // One source has one barrier, while it is not trimmed.
  const orOneMore = (count: number) =>
    isExact ? count : satisfying((entries) => entries === count || entries === count + 1)
  describe('numbers', () => {
    it('are those of an empty log', async () => {
      const { log } = await open()
      equal(await log.retention.stats(), {
        now: 1_000,
        entries: 0,
        bytes: any(Number),
        walBytes: any(Number),
        oldest: null,
        newest: null,
        readers: [],
        streams: [],
        inbox: { pending: 0, bytes: 0 },
        pausedBy: null,
      })
    })

    it('count entries, also after duplicates, revisions and trims', async () => {
      let now = 1_000
      const { log, connect } = await open(() => now)
      const fence = await log.claim('stream:s')
      await append(log, fence, change('1'), change('2'), change('2'))
      now = 2_000
      await append(log, fence, change('2'), change('3'), change('4'))
      matches(await log.retention.stats(), {
        entries: orOneMore(4),
        oldest: 1_000,
        newest: 2_000,
      })
      await log.retention.trim({ limit: 2 })
      const second = await connect('second')
      matches(await second.retention.stats(), { entries: 2, oldest: 2_000, newest: 2_000 })
      await log.retention.trim({ limit: 2 })
      matches(await log.retention.stats(), { entries: 0, oldest: null, newest: null })
    })

    it('have how far each reader is, and who runs it', async () => {
      let now = 1_000
      const { log, connect } = await open(() => now)
      const fence = await log.claim('stream:s')
      for (const id of ['1', '2', '3', '4', '5']) {
        await append(log, fence, change(id))
        now += 1_000
      }
      const positions = (await readAll(log)).map(({ position }) => position)
      const at = (i: number) => positions[i - 1] ?? ''
      const slow = await log.claim('consumer:slow')
      const error = { name: 'Error', message: 'no luck' }
      const deadLetters = [{ position: at(1), error, attempts: 1 }]
      await log.commit(slow, { expect: null, cursor: at(1), acknowledged: [at(3)], deadLetters })
      const done = await log.claim('process:done')
      await log.commit(done, { expect: null, cursor: at(5), acknowledged: [] })
      await log.release(done)
      const second = await connect('second')
      const { readers } = await second.retention.stats()
      equal(
        readers.toSorted((a, b) => a.name.localeCompare(b.name)),
        [
          {
            name: 'consumer:slow',
            cursor: at(1),
            behind: 3,
            oldestUnacknowledged: 2_000,
            acknowledgedAhead: 1,
            deadLetters: 1,
            holdsRetention: true,
            isPaused: false,
            owner: 'first',
          },
          {
            name: 'process:done',
            cursor: at(5),
            behind: 0,
            oldestUnacknowledged: null,
            acknowledgedAhead: 0,
            deadLetters: 0,
            holdsRetention: true,
            isPaused: false,
            owner: null,
          },
        ],
      )
    })

    it('have the position of each stream, and who records it', async () => {
      const { log, connect } = await open()
      const fence = await log.claim('stream:a')
      const second = await connect('second')
      const other = await second.claim('stream:b')
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      await second.append([{ fence: other, expect: null, position: 'p2', entries: [] }])
      await second.release(other)
      for (const each of [log, second]) {
        equal((await each.retention.stats()).streams, [
          { name: 'stream:a', position: 'p1', owner: 'first' },
          { name: 'stream:b', position: 'p2', owner: null },
        ])
      }
    })

    it('have what the inbox holds', async () => {
      const { log } = await open()
      const payload = { type: 'é' }
      await log.inbox.put({ id: 'w', timestamp: 1, payload }, JSON.stringify(payload))
      equal((await log.retention.stats()).inbox, { pending: 1, bytes: 13 })
    })

    it('have the reader that keeps recorders from appending', async () => {
      const { log, connect } = await open()
      await log.retention.setPaused('consumer:\ud800', 5_000)
      const second = await connect('second')
      same((await second.retention.stats()).pausedBy, 'consumer:\ud800')
      await log.retention.setPaused(null, 5_000)
      same((await second.retention.stats()).pausedBy, null)
    })

    it('name a process that waits for room, until it commits, is claimed again or is removed', async () => {
      const { log, connect } = await open()
      const start = await log.positionAt('start')
      const fence = await log.claim('process:p')
      const commit = (by: Fence, from: Position | null) =>
        log.commit(by, {
          expect: from,
          cursor: start,
          acknowledged: [],
          process: { checkpoint: 'm', state: [], timers: [] },
        })
      const second = await connect('second')
      const paused = async () => (await second.retention.stats()).readers.map(({ isPaused }) => isPaused)
      await log.processes.pause(fence)
      await commit(fence, null)
      equal(await paused(), [false])
      await log.processes.pause(fence)
      equal(await paused(), [true])
      await commit(fence, start)
      equal(await paused(), [false])
      await log.processes.pause(fence)
      await log.release(fence)
      equal(await paused(), [false])
      const next = await log.claim('process:p')
      equal(await paused(), [false])
      await rejects(log.processes.pause(fence), FencedError)
      await log.processes.pause(next)
      equal(await paused(), [true])
    })

    it('have the room for processes: the maximum of the last recorder, and the reader that needs the oldest entry', async () => {
      const { log, connect } = await open()
      matches(await log.retention.room(), { maxBytes: null, neededBy: null })
      const start = await log.positionAt('start')
      const slow = await log.claim('consumer:slow')
      await log.commit(slow, { expect: null, cursor: start, acknowledged: [] })
      matches(await log.retention.room(), { neededBy: null })
      await append(log, await log.claim('stream:s'), change('1'))
      await log.retention.setPaused(null, 5_000)
      const second = await connect('second')
      const { bytes } = await log.retention.usage()
      matches(await second.retention.room(), {
        bytes,
        maxBytes: 5_000,
        neededBy: 'consumer:slow',
      })
      await log.commit(slow, { expect: start, cursor: await log.positionAt('end'), acknowledged: [] })
      matches(await second.retention.room(), { neededBy: null })
    })
  })
}
