import { equal, hasLength, matches, ok, rejects, rejectsWith, same } from './checks.ts'
import { MAX_COMMIT_BYTES } from '../contract.ts'
import type { Commit, LogStore, Position } from '../contract.ts'
import {
  FencedError,
  LogClosedError,
  LogConflictError,
  LogPositionError,
  LogValueError,
} from '../../errors.ts'
import { MAX_TOMBSTONES } from '../process-store.ts'
import type { ProcessCommit } from '../process-store.ts'
import type { Timer } from '../../../streams/timers.ts'
import { progressEvent, tickEvent } from '../../../protocol/log-event.ts'
import { change } from './events.ts'
import { append, entriesOf, idsOf, isSettled, readAll } from './fixture.ts'
import type { Area } from './area.ts'

const NAME = 'process:p'
/** Texts that a store could confuse or lose. */
const HOSTILE = [
  '',
  '__proto__',
  '"quoted"',
  '"',
  'a\0b',
  '\ud800',
  '\udfff',
  '\ue000',
  '😀',
  'é',
  'e\u0301',
  ' ',
]

const timer = (key: string, due: number, more: Partial<Timer> = {}): Timer => ({
  key,
  name: 'n',
  clock: 'recorded',
  due,
  cause: 'c',
  data: null,
  ...more,
})

/** State, timers and output of processes. */
export function testProcesses({ describe, it, open }: Area): void {
  describe('processes', () => {
    /** A log, and what commits to a process in it. */
    async function withProcess() {
      const opened = await open()
      const { log } = opened
      const fence = await log.claim(NAME)
      const cursor = await log.positionAt('start')
      let expected: Position | null = null
      const commit = async (process: Partial<ProcessCommit>, more: Partial<Commit> = {}, at = fence) => {
        const whole: ProcessCommit = { checkpoint: 'm', state: [], timers: [], ...process }
        await log.commit(at, { expect: expected, cursor, acknowledged: [], process: whole, ...more })
        expected = cursor
      }
      const set = (...states: readonly (readonly [string, string | null])[]) =>
        commit({ state: states.map(([key, state]) => ({ key, state })) })
      return { ...opened, fence, commit, set }
    }

    /** The changes after a position, in pages of this size. */
    async function changesAfter(log: LogStore, after?: Position, limit = 100) {
      const changes = []
      let position = after ?? (await log.processes.start())
      for (;;) {
        const page = await log.processes.changes(NAME, position, { limit })
        changes.push(...page.changes)
        position = page.position
        if (page.isEnd) return { changes, position }
      }
    }
    const pairs = ({ changes }: Awaited<ReturnType<typeof changesAfter>>) =>
      changes.map(({ key, state }) => [key, state])

    it('does not know a process that never committed, and reads nothing of it', async () => {
      const { log } = await open()
      for (const unknown of [NAME, ...HOSTILE]) {
        same((await log.reader(unknown))?.process?.checkpoint, undefined)
        equal(await log.processes.states(unknown, ['a', 'b']), [null, null])
        const due = { clock: 'event', until: 1e12, limit: 10 } as const
        equal(await log.processes.timers(unknown, due), [])
        const start = await log.processes.start()
        const page = await log.processes.changes(unknown, start, { limit: 10 })
        equal(page, { changes: [], position: start, isEnd: true })
      }
    })

    it('stores the checkpoint and the states of a commit, which every open log reads', async () => {
      const { log, connect, commit } = await withProcess()
      const second = await connect('second')
      await commit({ checkpoint: 'first', state: [{ key: 'a', state: '1' }] })
      await commit({
        checkpoint: 'next',
        state: [
          { key: 'a', state: '{"n":2}' },
          { key: 'b', state: '3' },
        ],
      })
      for (const each of [log, second]) {
        same((await each.reader(NAME))?.process?.checkpoint, 'next')
        equal(await each.processes.states(NAME, ['b', 'x', 'a']), ['3', null, '{"n":2}'])
        same((await each.reader(NAME))?.cursor, await log.positionAt('start'))
      }
    })

    it('keeps keys apart, whatever text they are, and processes apart from each other', async () => {
      const { log, set } = await withProcess()
      await set(...HOSTILE.map((key, n) => [key, String(n)] as const))
      equal(
        await log.processes.states(NAME, HOSTILE),
        HOSTILE.map((_, n) => String(n)),
      )
      equal(
        pairs(await changesAfter(log)),
        HOSTILE.map((key, n) => [key, String(n)]),
      )
      equal(
        await log.processes.states('process:q', HOSTILE),
        HOSTILE.map(() => null),
      )
    })

    it('reads the latest change of each key, in order and in pages of any size', async () => {
      const { log, set } = await withProcess()
      await set(['a', '1'], ['b', '1'], ['c', '1'])
      await set(['b', null], ['d', '1'])
      await set(['a', '2'])
      const expected = [
        ['c', '1'],
        ['b', null],
        ['d', '1'],
        ['a', '2'],
      ]
      for (const limit of [1, 2, 3, 4, 100]) {
        equal(pairs(await changesAfter(log, undefined, limit)), expected)
      }
    })

    it('resumes after each change, also of one commit', async () => {
      const { log, set } = await withProcess()
      await set(['a', '1'], ['b', '1'], ['c', '1'])
      const { changes, position } = await changesAfter(log)
      same(changes.at(-1)?.position, position)
      for (const [n, each] of changes.entries()) {
        equal((await changesAfter(log, each.position)).changes, changes.slice(n + 1))
      }
      await set(['b', '2'])
      const [, second] = changes
      equal(pairs(await changesAfter(log, second?.position)), [
        ['c', '1'],
        ['b', '2'],
      ])
    })

    it('reads only the changes up to a position', async () => {
      const { log, set } = await withProcess()
      await set(['a', '1'], ['b', '1'])
      const { position: until } = await changesAfter(log)
      await set(['a', '2'], ['c', '1'])
      const start = await log.processes.start()
      const page = await log.processes.changes(NAME, start, { limit: 10, until })
      equal(
        page.changes.map(({ key }) => key),
        ['b'],
      )
      matches(page, { position: until, isEnd: true })
    })

    it('reads up to the end where the last position is beyond it, and refuses one of another generation', async () => {
      const { log, set, commit } = await withProcess()
      await set(['a', '1'], ['b', '1'], ['c', '1'])
      const { position: earlier } = await changesAfter(log)
      const start = await log.processes.start()
      const page = await log.processes.changes(NAME, start, { limit: 10, until: `${earlier}0` })
      matches(page, { position: earlier, isEnd: true })
      await commit({ reset: true, state: [{ key: 'a', state: '1' }] })
      const read = log.processes.changes(NAME, start, { limit: 10, until: earlier })
      await rejects(read, { name: 'LogPositionError', position: earlier })
    })

    /** The keys with a prefix, in pages of this size, after a key. */
    async function keysWith(log: LogStore, prefix: string, limit: number, first?: string) {
      const found: (readonly [string, string])[] = []
      for (let after = first; ;) {
        const page = await log.processes.range(NAME, { prefix, after, limit })
        ok(page.states.length <= limit)
        found.push(...page.states.map(({ key, state }) => [key, state] as const))
        if (page.isEnd) return found
        after = page.states.at(-1)?.key
      }
    }

    it('reads the states of keys with a prefix, in the order of their code points, in pages of any size', async () => {
      const { log, set } = await withProcess()
      await set(
        ...['a/2', 'a/1', 'a', 'a0', 'a-', 'b/1', 'A/1', '/', 'a/😀', 'a/\ue000', 'a/\ud800'].map(
          (key) => [key, JSON.stringify(key)] as const,
        ),
      )
      await set(['a/gone', '1'], ['a/1', '2'], ['a/gone', null])
      for (const limit of [1, 2, 3, 100]) {
        // The last one is stored as a JSON string, since UTF-8 has no lone surrogates.
        equal(await keysWith(log, 'a/', limit), [
          ['a/\ud800', '"a/\\ud800"'],
          ['a/1', '2'],
          ['a/2', '"a/2"'],
          ['a/\ue000', '"a/\ue000"'],
          ['a/😀', '"a/😀"'],
        ])
        equal(
          (await keysWith(log, 'a/', limit, 'a/1')).map(([key]) => key),
          ['a/2', 'a/\ue000', 'a/😀'],
        )
        equal(await keysWith(log, 'a/1x', limit), [])
      }
    })

    it('reads the same keys by a prefix as a filter of all keys does', async () => {
      const { log, set } = await withProcess()
      const parts = ['a', 'b', '/', '"', '\0', '\ud7ff', '\ue000', '😀', '\u{10ffff}', '\ud800', '%']
      const keys = ['', ...parts, ...parts.flatMap((first) => parts.map((second) => first + second))]
      await set(...keys.map((key) => [key, '1'] as const))
      for (const prefix of new Set(keys.map((key) => key.toWellFormed()))) {
        const found = (await keysWith(log, prefix, 40)).map(([key]) => key)
        equal(found.toSorted(), keys.filter((key) => key.startsWith(prefix)).toSorted())
      }
    })

    it('gives the position of the same moment with each page, from which changes go on', async () => {
      const { log, set } = await withProcess()
      equal(await log.processes.range(NAME, { prefix: '', limit: 1 }), {
        states: [],
        position: await log.processes.start(),
        isEnd: true,
      })
      await set(['a', '1'], ['b', '1'])
      const { position, states, isEnd } = await log.processes.range(NAME, { prefix: '', limit: 1 })
      equal([states, isEnd], [[{ key: 'a', state: '1' }], false])
      same(position, await log.processes.end(NAME))
      await set(['c', '1'], ['a', null])
      const rest = { prefix: '', after: 'a', since: position, limit: 10 }
      equal(
        (await log.processes.range(NAME, rest)).states.map(({ key }) => key),
        ['b', 'c'],
      )
      equal(pairs(await changesAfter(log, position)), [
        ['c', '1'],
        ['a', null],
      ])
    })

    it('ends pages by the length of their states too', async () => {
      const { log, set } = await withProcess()
      const state = JSON.stringify('x'.repeat(98))
      await set(...['a', 'b', 'c', 'd', 'e'].map((key) => [key, state] as const))
      const range = await log.processes.range(NAME, { prefix: '', limit: 10, maxLength: 150 })
      equal([range.states.length, range.isEnd], [2, false])
      const start = await log.processes.start()
      const first = await log.processes.changes(NAME, start, { limit: 10, maxLength: 150 })
      equal([first.changes.length, first.isEnd], [2, false])
      const second = await log.processes.changes(NAME, first.position, { limit: 10, maxLength: 301 })
      equal([second.changes.map(({ key }) => key), second.isEnd], [['c', 'd', 'e'], true])
    })

    it('refuses a page by prefix once the state was built again', async () => {
      const { log, commit, set } = await withProcess()
      await set(['a', '1'])
      const { position } = await log.processes.range(NAME, { prefix: '', limit: 1 })
      await commit({ reset: true, state: [{ key: 'a', state: '2' }] })
      const page = log.processes.range(NAME, { prefix: '', since: position, limit: 1 })
      await rejects(page, { name: 'LogPositionError', reason: 'rebuilt' })
    })

    it('says why it refuses a position', async () => {
      const { log, set, commit } = await withProcess()
      await set(['a', '1'])
      const { position } = await changesAfter(log)
      const reasonOf = async (after: Position) => {
        const read = log.processes.changes(NAME, after, { limit: 1 })
        return read.then(
          () => 'none',
          (error: unknown) => (error instanceof LogPositionError ? error.reason : 'other'),
        )
      }
      same(await reasonOf('nonsense'), 'unknown')
      same(await reasonOf(position.replace(/\/(\d+)\.\d+/, '/$1.2')), 'beyond')
      const many = Array.from({ length: MAX_TOMBSTONES + 1 }, (_, n) => String(n))
      for (let at = 0; at < many.length; at += 5_000) {
        await set(...many.slice(at, at + 5_000).map((key) => [key, null] as const))
      }
      same(await reasonOf(position), 'forgotten')
      await commit({ reset: true })
      same(await reasonOf(position), 'rebuilt')
    })

    it('refuses positions of another log, beyond the end, and of the log itself', async () => {
      const { log, set } = await withProcess()
      await set(['a', '1'])
      const { position } = await changesAfter(log)
      const other = await open()
      await append(log, await log.claim('stream'), change('1'))
      const wrong = [await log.positionAt('end'), '', 'nonsense', `${position}0`, `${position}.1`]
      for (const each of wrong) {
        const read = log.processes.changes(NAME, each, { limit: 10 })
        await rejects(read, LogPositionError)
      }
      const read = other.log.processes.changes(NAME, position, { limit: 10 })
      await rejects(read, LogPositionError)
    })

    it('reads timers by clock in the order of due time, key and name, in pages of any size', async () => {
      const { log, commit } = await withProcess()
      const keys = ['\ue000', '😀', 'b', 'a', '"a"', 'Z']
      await commit({
        timers: [
          ...keys.map((key) => timer(key, 5)),
          timer('a', 5, { name: 'm' }),
          timer('a', 4, { name: 'z' }),
          timer('b', 6, { name: 'z' }),
          timer('e', 1, { clock: 'event' }),
          timer('late', 7),
        ],
      })
      const order = ['4 a z', '5 "a" n', '5 Z n', '5 a m', '5 a n', '5 b n', '5 \ue000 n', '5 😀 n', '6 b z']
      for (const limit of [1, 2, 5, 100]) {
        const found: Timer[] = []
        for (;;) {
          const options = { clock: 'recorded', until: 6, after: found.at(-1), limit } as const
          const page = await log.processes.timers(NAME, options)
          found.push(...page)
          if (page.length < limit) break
        }
        equal(
          found.map(({ due, key, name: n }) => `${due} ${key} ${n}`),
          order,
        )
      }
      equal(await log.processes.timers(NAME, { clock: 'event', until: 1, limit: 10 }), [
        timer('e', 1, { clock: 'event' }),
      ])
    })

    it('reads timers of a key by a range of their names, in the order of names', async () => {
      const { log, commit } = await withProcess()
      const names = ['b', 'a', 'a 10', 'a 2', 'c', '\ue000', '😀', '"q"']
      await commit({
        timers: [
          ...names.map((name, n) =>
            timer('k', 9 - n, { name, clock: n % 2 === 0 ? 'event' : 'recorded', data: `${n}` }),
          ),
          timer('other', 1, { name: 'a 3' }),
        ],
      })
      const read = async (from: string, to: string, limit = 10) =>
        (await log.processes.keyTimers(NAME, 'k', { from, to }, limit)).map(
          ({ name, data }) => `${name}:${data}`,
        )
      equal(await read('a', 'c'), ['a:1', 'a 10:2', 'a 2:3', 'b:0'])
      equal(await read('a ', 'b'), ['a 10:2', 'a 2:3'])
      equal(await read('a', 'c', 2), ['a:1', 'a 10:2'])
      equal(await read('c', '\u{10ffff}'), ['c:4', '\ue000:5', '😀:6'])
      equal(await read('x', 'a'), [])
      equal(await log.processes.keyTimers(NAME, 'unknown', { from: 'a', to: 'c' }, 10), [])
      equal(await log.processes.keyTimers('process:unknown', 'k', { from: 'a', to: 'c' }, 10), [])
      const [first] = await log.processes.keyTimers(NAME, 'k', { from: 'a', to: 'b' }, 1)
      equal(first, timer('k', 8, { name: 'a', clock: 'recorded', data: '1' }))
      await commit({ timers: [{ key: 'k', name: 'a 10', due: null }, timer('k', 3, { name: 'a 2' })] })
      equal(await read('a', 'b'), ['a:1', 'a 2:null'])
    })

    it('replaces a timer of the same key and name, and removes one without a due time', async () => {
      const { log, commit } = await withProcess()
      const all = async () => [
        ...(await log.processes.timers(NAME, { clock: 'event', until: 100, limit: 10 })),
        ...(await log.processes.timers(NAME, { clock: 'recorded', until: 100, limit: 10 })),
      ]
      await commit({ timers: [timer('a', 1), timer('a', 1, { name: 'other' })] })
      const moved = timer('a', 9, { clock: 'event', cause: 'later' })
      await commit({ timers: [moved, { key: 'a', name: 'unknown', due: null }] })
      equal(await all(), [moved, timer('a', 1, { name: 'other' })])
      await commit({ timers: [{ key: 'a', name: 'n', due: null }] })
      equal(await all(), [timer('a', 1, { name: 'other' })])
      await commit({ timers: [{ key: 'a', name: 'other', due: null }, timer('a', 2, { name: 'other' })] })
      equal(await all(), [timer('a', 2, { name: 'other' })])
    })

    it('keeps the data of a timer as it is, until the timer is replaced or removed', async () => {
      const { log, connect, commit } = await withProcess()
      const second = await connect('second')
      const large = JSON.stringify('é'.repeat(32 * 1024 - 1))
      const data = ['null', '""', '{"a":"\\u0000"}', '"\\ud800"', '"😀"', large, null]
      const timers = data.map((each, n) => timer('a', 9 - n, { name: `n${n}`, data: each }))
      await commit({ timers })
      const all = (from: LogStore) => from.processes.timers(NAME, { clock: 'recorded', until: 9, limit: 10 })
      for (const each of [log, second]) equal(await all(each), timers.toReversed())
      const [first, , ...rest] = timers
      const replaced = [
        { ...timers[5], ...timer('a', 4, { name: 'n5' }) },
        timer('a', 3, { name: 'n6', data: '{"b":1}' }),
      ]
      await commit({ timers: [...replaced, { key: 'a', name: 'n1', due: null }] })
      for (const each of [log, second]) {
        equal(await all(each), [...replaced.toReversed(), ...rest.slice(0, 3).toReversed(), first])
      }
    })

    it('appends the entries of a commit, but those that the log has, and wakes who waits for entries', async () => {
      const { log, commit } = await withProcess()
      await append(log, await log.claim('stream'), change('1'))
      const end = await log.positionAt('end')
      const waiting = log.wait(end, new AbortController().signal)
      await commit({}, { entries: entriesOf(change('1'), change('2'), change('3')) })
      await waiting
      equal(idsOf(await readAll(log, end)), ['2', '3'])
    })

    it('has an entry that moves event time after all that its append or its commit has before it', async () => {
      const { log, commit } = await withProcess()
      const all = (of: string) => Array.from({ length: 20 }, (_, n) => change(`${of}${n}`, `m${n}`))
      const tick = tickEvent(1, 0, { through: 0, complete: true })
      const progress = { process: 'p', part: undefined, through: 0, complete: true }
      await append(log, await log.claim('stream'), ...all('a'), tick)
      const moved = progressEvent(progress, '1', { time: null, received: tick.received })
      await commit({}, { entries: entriesOf(...all('b'), moved) })
      const entries = await readAll(log)
      hasLength(entries, 42)
      const ids = entries.map(({ id }) => id)
      ok(ids.indexOf(tick.id) > ids.findLastIndex((id) => id.startsWith('a')))
      ok(ids.indexOf(moved.id) > ids.findLastIndex((id) => id.startsWith('b')))
    })

    it('changes nothing by a commit that it refuses', async () => {
      const { log, fence, connect, loseClaims, commit, set } = await withProcess()
      await set(['a', '1'])
      const before = await changesAfter(log)
      const wanted = {
        checkpoint: 'refused',
        state: [{ key: 'a', state: '2' }],
        timers: [timer('a', 1)],
        reset: true,
      }
      const more = { entries: entriesOf(change('1')) }
      const expected = await log.positionAt('start')
      await rejects(commit(wanted, { ...more, expect: null }), LogConflictError)
      await rejects(commit(wanted, { ...more, cursor: 'nonsense' }), LogPositionError)
      const big = { ...wanted, state: [{ key: 'a', state: `"${'é'.repeat(MAX_COMMIT_BYTES / 2)}"` }] }
      await rejects(commit(big, more), LogValueError)
      await loseClaims(log)
      const second = await connect('second')
      await second.claim(NAME)
      await rejects(commit(wanted, { ...more, expect: expected }, fence), FencedError)

      same((await log.reader(NAME))?.process?.checkpoint, 'm')
      equal(await changesAfter(log), before)
      equal(await log.processes.timers(NAME, { clock: 'recorded', until: 9, limit: 9 }), [])
      equal(await readAll(log), [])
    })

    it('drops state and timers by a reset, and refuses positions of the earlier generation', async () => {
      const { log, commit, set } = await withProcess()
      await set(['a', '1'], ['b', '1'])
      await commit({ timers: [timer('a', 1)] })
      const { position } = await changesAfter(log)
      await commit({ reset: true, checkpoint: 'again', state: [{ key: 'b', state: '2' }] })
      same((await log.reader(NAME))?.process?.checkpoint, 'again')
      equal(await log.processes.states(NAME, ['a', 'b']), [null, '2'])
      equal(await log.processes.timers(NAME, { clock: 'recorded', until: 9, limit: 9 }), [])
      equal(pairs(await changesAfter(log)), [['b', '2']])
      await rejects(changesAfter(log, position), LogPositionError)
      const waiting = log.processes.wait(NAME, position, new AbortController().signal)
      await rejects(waiting, LogPositionError)
    })

    it('cleans up in steps what earlier generations have left, and nothing else', async () => {
      const { log, commit, set } = await withProcess()
      const keys = Array.from({ length: 2_500 }, (_, n) => String(n))
      for (let at = 0; at < keys.length; at += 500) {
        await commit({
          state: keys.slice(at, at + 500).map((key) => ({ key, state: '1' })),
          timers: keys.slice(at, at + 500).map((key) => timer(key, 1)),
        })
      }
      await commit({ reset: true })
      await set(['7', '2'])
      await commit({ timers: [timer('7', 3)] })
      let steps = 0
      while (await log.retention.clean()) steps += 1
      ok(steps < 10)
      same(await log.retention.clean(), false)
      equal(pairs(await changesAfter(log)), [['7', '2']])
      equal(await log.processes.timers(NAME, { clock: 'recorded', until: 9, limit: 9 }), [timer('7', 3)])
    })

    it('forgets the oldest removed keys, and refuses positions from which they would be missed', async () => {
      const { log, commit, set } = await withProcess()
      await set(['kept', '1'])
      const { position: old } = await changesAfter(log)
      const keys = Array.from({ length: MAX_TOMBSTONES + 2 }, (_, n) => String(n))
      for (let at = 0; at < keys.length; at += 3_000) {
        await commit({ state: keys.slice(at, at + 3_000).map((key) => ({ key, state: null })) })
      }
      const { changes, position } = await changesAfter(log, undefined, 1_000)
      hasLength(changes, MAX_TOMBSTONES + 1)
      matches(changes.slice(0, 2), [
        { key: 'kept', state: '1' },
        { key: '2', state: null },
      ])
      await rejects(changesAfter(log, old), LogPositionError)
      hasLength((await changesAfter(log, changes.at(1)?.position, 1_000)).changes, MAX_TOMBSTONES - 1)
      equal((await changesAfter(log, position)).changes, [])
    })

    it('reads states by prefix in their order also where removed keys between them are forgotten', async () => {
      const { log, commit, set } = await withProcess()
      const read = async () => {
        const { states } = await log.processes.range(NAME, { prefix: '', limit: 100 })
        return states.map(({ key }) => key)
      }
      await set(['5000z', '1'], ['0', '1'], ['\u{1f600}', '1'], ['\ue000', '1'])
      equal(await read(), ['0', '5000z', '\ue000', '\u{1f600}'])
      const keys = Array.from({ length: MAX_TOMBSTONES + 6 }, (_, n) => `${n}x`)
      for (let at = 0; at < keys.length; at += 3_000) {
        await commit({ state: keys.slice(at, at + 3_000).map((key) => ({ key, state: null })) })
      }
      equal(await read(), ['0', '5000z', '\ue000', '\u{1f600}'])

      await set(['2x', '1'], ['0x', '1'], ['9000x', '1'], ['5000z', null])

      equal(await read(), ['0', '0x', '2x', '9000x', '\ue000', '\u{1f600}'])
    })

    it('wakes who waits for a change of this process, by every open log', async () => {
      const { log, connect, set } = await withProcess()
      const second = await connect('second')
      const start = await log.processes.start()
      const { signal } = new AbortController()
      const waiting = [log, second].map((each) => each.processes.wait(NAME, start, signal))
      const other = second.processes.wait('process:q', start, signal)
      for (const wait of waiting) same(await isSettled(wait, log), false)
      await set(['a', '1'])
      await Promise.all(waiting)
      await second.processes.wait(NAME, start, signal)
      same(await isSettled(other, log), false)
      await Promise.all([rejects(other, LogClosedError), second.close()])
    })

    it('rejects a wait for changes with the reason of its signal', async () => {
      const { log } = await withProcess()
      const start = await log.processes.start()
      const abort = new AbortController()
      const waiting = log.processes.wait(NAME, start, abort.signal)
      same(await isSettled(waiting, log), false)
      const reason = new Error('unsubscribed')
      abort.abort(reason)
      await rejectsWith(waiting, reason)
      await rejectsWith(log.processes.wait(NAME, start, abort.signal), reason)
    })
  })

  describe('reading up to a position', () => {
    it('ends there as at the end of the log', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const ids = ['1', '2', '3', '4', '5', '6']
      await append(log, fence, ...ids.map((id) => change(id, `m${Number(id) % 3}`)))
      const all = await readAll(log)
      const start = await log.positionAt('start')
      for (const [n, { position: until }] of all.entries()) {
        const page = await log.read(start, { limit: 100, until })
        matches(page, { entries: all.slice(0, n + 1), position: until, isEnd: true })
        const first = await log.read(start, { limit: 1, until })
        same(first.isEnd, n === 0)
        const rest = await log.read(until, { limit: 100, until })
        matches(rest, { entries: [], position: until, isEnd: true })
      }
      const none = await log.read(start, { limit: 100, until: start })
      matches(none, { entries: [], position: start, isEnd: true })
    })
  })
}
