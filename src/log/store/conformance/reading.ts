import { equal, hasLength, ok, rejects, same } from './checks.ts'
import type { Entry } from '../contract.ts'
import { LogPositionError, LogValueError } from '../../errors.ts'
import { change, fullRun, groupStatus } from './events.ts'
import { append, idsOf, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Pages and positions. */
export function testReading({ describe, it, open }: Area): void {
  describe('reading', () => {
    /** A log with 20 entries of each of three sources, alternating. */
    async function filled() {
      const opened = await open()
      const { log } = opened
      const events = Array.from({ length: 20 }, (_, i) => [
        change(`c${i}`),
        groupStatus(`g${i}`),
        fullRun(`r${i}`),
      ]).flat()
      await append(log, await log.claim('stream'), ...events)
      return { ...opened, events }
    }

    it('begins with nothing, at an end that is its start', async () => {
      const { log } = await open()
      const start = await log.positionAt('start')
      same(await log.positionAt('end'), start)
      same(await log.positionAt({ time: 0 }), start)
      equal(await log.read(start, { limit: 10 }), {
        entries: [],
        lengths: [],
        position: start,
        isEnd: true,
      })
    })

    it('reads in pages of at most the limit, each entry once', async () => {
      const { log, events } = await filled()
      for (const limit of [1, 7, 59, 60, 61, 1_000]) {
        let position = await log.positionAt('start')
        const ids: string[] = []
        for (let isEnd = false; !isEnd;) {
          const page = await log.read(position, { limit })
          ok(page.entries.length <= limit)
          // Without a filter, nothing was looked at after the last entry.
          same(page.position, page.entries.at(-1)?.position ?? position)
          same(page.isEnd || page.position !== position, true)
          ids.push(...idsOf(page.entries))
          ;({ position, isEnd } = page)
        }
        equal(ids.toSorted(), idsOf(events).toSorted())
        same(position, await log.positionAt('end'))
      }
    })

    it('reads on after each entry, with the same entries at the same positions', async () => {
      const { log, connect } = await filled()
      const entries = await readAll(log)
      const second = await connect('second')
      await append(log, await log.claim('stream'), change('later'), groupStatus('later'), fullRun('later'))
      const all = await readAll(second)
      equal(all.slice(0, entries.length), entries)
      for (const [i, { position }] of entries.entries()) {
        equal(await readAll(second, position), all.slice(i + 1))
      }
    })

    it('reads the same again, wherever the reading began and whatever was appended meanwhile', async () => {
      let now = 1_000
      const { log } = await open(() => now)
      const fence = await log.claim('stream')
      let appended = 0
      const more = async () => {
        const number = appended++
        if (number % 3 === 0) now += 1
        const ids = [number, number + 0.5].map(String)
        return append(
          log,
          fence,
          ...ids.flatMap((id) => ['a', 'b', 'c', 'd'].map((source) => change(id, source))),
        )
      }
      await more()
      const { end } = await more()
      await more()
      const begins = [await log.positionAt('start'), end, await log.positionAt({ time: now })]
      const readings: Entry[][] = begins.map(() => [])
      for (let turn = 0; turn < 30; turn++) {
        if (turn < 10) await more()
        for (const [i, begin] of begins.entries()) {
          const after = readings[i]?.at(-1)?.position ?? begin
          readings[i]?.push(...(await log.read(after, { limit: 1 + (turn % 4) })).entries)
        }
      }
      for (const [i, begin] of begins.entries()) {
        const reading = readings[i] ?? []
        for (const [at, position] of [begin, ...reading.map((entry) => entry.position)].entries()) {
          const again = await readAll(log, position)
          equal(again.slice(0, reading.length - at), reading.slice(at))
        }
      }
      hasLength(idsOf(await readAll(log, end)), 8 * (appended - 2))
    })

    it('reads entries of the wanted types alone, at the same positions, and moves past the others', async () => {
      const { log } = await filled()
      const all = await readAll(log)
      const wanted = await readAll(log, undefined, { types: ['task_group.status'], limit: 3 })
      equal(
        wanted,
        all.filter(({ type }) => type === 'task_group.status'),
      )
      const two = ['task_run.state', 'monitor.event_stream']
      equal(
        await readAll(log, undefined, { types: two }),
        all.filter(({ type }) => two.includes(type)),
      )
      const start = await log.positionAt('start')
      for (const types of [['nothing'], []]) {
        const page = await log.read(start, { limit: 1, types })
        equal(page, { entries: [], lengths: [], position: await log.positionAt('end'), isEnd: true })
      }
    })

    it('says that a page is the end once what follows is not of a wanted type and was looked at', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, change('1'), groupStatus('2'))
      const types = ['monitor.event_stream']
      equal(idsOf(await readAll(log, undefined, { types, limit: 1 })), ['1'])
      const end = await log.positionAt('end')
      await append(log, fence, groupStatus('3'), change('4'))
      equal(idsOf(await readAll(log, end, { types, limit: 1 })), ['4'])
    })

    it('begins at a time with the first entry that was recorded then or later', async () => {
      let now = 1_000
      const { log } = await open(() => now)
      const fence = await log.claim('stream')
      for (const time of [1_000, 2_000, 2_000, 5_000]) {
        now = time
        const id = String((await readAll(log)).length / 2)
        await append(log, fence, change(id, 'a'), change(id, 'b'))
      }
      const first = async (time: number) =>
        (await readAll(log, await log.positionAt({ time }))).filter((e) => e.source.endsWith('a')).length
      same(await first(-1), 4)
      same(await first(1_000), 4)
      same(await first(1_000.5), 3)
      same(await first(2_000), 3)
      same(await first(2_001), 1)
      same(await first(5_000), 1)
      same(await first(5_001), 0)
      same(await log.positionAt({ time: 5_001 }), await log.positionAt('end'))
      same(await log.positionAt({ time: 0 }), await log.positionAt('start'))
    })

    it('begins at the end with what is appended later', async () => {
      const { log } = await filled()
      const end = await log.positionAt('end')
      await append(log, await log.claim('stream'), change('later'))
      equal(idsOf(await readAll(log, end)), ['later'])
    })

    it('refuses the position of another log, garbage, and a position beyond the end', async () => {
      const { log } = await filled()
      const other = await filled()
      await append(other.log, await other.log.claim('more'), change('more'))
      const ours = await log.positionAt('end')
      // That the number in a position is the first one after a separator is known to this test alone.
      const number = /(?<=[.:])\d+/
      ok(number.test(ours))
      const theirs = await other.log.positionAt('end')
      const beyond = ours.replace(number, (count) => String(Number(count) + 1))
      const garbage = [
        `${ours}-0`,
        ...['NaN', 'Infinity', '1e1', '1.5', '0x1', '01', ''].map((count) => ours.replace(number, count)),
        ours.replace(number, '$&0'),
        `${ours} `,
        ` ${ours}`,
        ours.slice(1),
        ours.toUpperCase() + '\0',
      ]
      const hostile = [
        '',
        '0',
        '-1',
        'NaN',
        '__proto__',
        '\0',
        '\ud800',
        'x'.repeat(1_000_000),
        ours.replace(number, '-1'),
      ]
      const fence = await log.claim('reader')
      for (const position of [theirs, beyond, ...garbage, ...hostile]) {
        const { signal } = new AbortController()
        await rejects(log.read(position, { limit: 1 }), LogPositionError)
        await rejects(log.wait(position, signal), LogPositionError)
        for (const state of [
          { cursor: position, acknowledged: [] },
          { cursor: ours, acknowledged: [ours, position] },
        ]) {
          const error = await log.commit(fence, { expect: null, ...state }).catch((reason: unknown) => reason)
          ok(error instanceof (position.length > 100_000 ? LogValueError : LogPositionError))
        }
      }
      same(await log.reader('reader'), undefined)
    })
  })
}
