import { getEventListeners } from 'node:events'
import type { ResearchEvent } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { MAX_COMMIT_BYTES } from '../../src/log/contract.ts'
import type { Entry, Fence, LogStore, Position } from '../../src/log/contract.ts'
import {
  FencedError,
  LogClosedError,
  LogConflictError,
  LogError,
  LogInUseError,
  LogPositionError,
  LogValueError,
} from '../../src/log/errors.ts'
import { ArgumentError } from '../../src/protocol/argument-error.ts'
import { runEvent } from '../../src/protocol/event.ts'
import { bareRun, change, fullRun, groupStatus, taskRun } from '../operators/events.ts'
import { describeLogModel } from './model.ts'

/** A fresh log under test. */
export interface LogUnderTest {
  /** Opens the log once more, as another process does. `owner` is the name in the errors of others. */
  connect(owner: string): Promise<LogStore>
  /**
   * Frees the claims of an open log that does not notice: as if its process was killed, or suspended while its locks were
   * lost. The open log may still be called.
   */
  loseClaims(store: LogStore): Promise<void>
  /** Closes what is open, and removes the log. */
  remove(): Promise<void>
}

/** Opens a fresh log. `clock` is the Unix time in ms. */
export type OpenFreshLog = (options: { readonly clock: () => number }) => Promise<LogUnderTest>

/** Anything as an event, as a caller without types may have it. */
function untyped(value: unknown): ResearchEvent {
  const { event }: { event: ResearchEvent } = Object.assign(JSON.parse('{}'), { event: value })
  return event
}

const entriesOf = (...events: ResearchEvent[]) => events.map((event) => ({ event }))

/** Appends to streams that have no upstream position. */
const append = (log: LogStore, fence: Fence, ...events: ResearchEvent[]) =>
  log.append([{ fence, expect: null, entries: entriesOf(...events) }])

/** Reads on to the end. */
async function readAll(
  log: LogStore,
  after?: Position,
  options: { readonly limit?: number; readonly types?: readonly string[] } = {},
): Promise<readonly Entry[]> {
  let position = after ?? (await log.positionAt('start'))
  const entries: Entry[] = []
  for (;;) {
    const page = await log.read(position, { limit: 100, ...options })
    entries.push(...page.entries)
    position = page.position
    if (page.isEnd) return entries
  }
}

const idsOf = (entries: readonly { readonly id: string }[]) => entries.map(({ id }) => id)

/** The ids of each source, in order. The order between sources is not promised. */
function bySource(entries: readonly Entry[]): Readonly<Record<string, readonly string[]>> {
  return Object.fromEntries(
    Object.entries(Object.groupBy(entries, ({ source }) => source)).map(([source, group]) => [
      source,
      idsOf(group ?? []),
    ]),
  )
}

/** Whether a promise is settled, after the log had every opportunity to settle it. */
async function isSettled(promise: Promise<unknown>, log: LogStore): Promise<boolean> {
  let settled = false
  const settle = () => (settled = true)
  promise.then(settle, settle)
  for (let i = 0; i < 5; i++) await log.positionAt('end')
  return settled
}

/** A failed run, with its error and without its output. */
function failedRun(id: string): ResearchEvent {
  const error = { ref_id: 'ref', message: 'no luck', detail: null }
  return runEvent({ run: taskRun(id, 'completed', { error }) }, 'webhook')
}

/** The suite that each store of a log passes. */
export function describeLogStore(name: string, openFresh: OpenFreshLog): void {
  /** A fresh log, opened once. */
  async function open(clock: () => number = () => 1_000) {
    const underTest = await openFresh({ clock })
    onTestFinished(() => underTest.remove())
    const log = await underTest.connect('first')
    return { log, connect: underTest.connect, loseClaims: underTest.loseClaims }
  }

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

    it('refuses a name without text', async () => {
      const { log } = await open()
      await expect(log.claim('')).rejects.toBeInstanceOf(ArgumentError)
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

  describe(`${name}: appending`, () => {
    it('gives back an event as it was appended, with what the log knows of it', async () => {
      const { log } = await open(() => 5_000)
      const event = fullRun('r')
      const fence = await log.claim('stream')
      const appended = await log.append([
        { fence, expect: null, entries: [{ event }, { event: change('1'), backfill: true }] },
      ])
      const [run, detected] = (await readAll(log)).toSorted((a, b) => b.source.localeCompare(a.source))
      expect(run).toEqual({
        ...event,
        recorded: 5_000,
        revision: 1,
        backfill: false,
        position: expect.any(String),
      })
      expect(detected).toMatchObject({ id: '1', backfill: true })
      expect(appended).toEqual({ entries: 2, duplicates: 0, end: await log.positionAt('end') })
    })

    it('shows entries of one open log to another', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await append(log, await log.claim('stream'), change('1'))
      expect(await readAll(second)).toEqual(await readAll(log))
      await append(log, await log.claim('stream'), change('2'))
      expect(idsOf(await readAll(second))).toEqual(['1', '2'])
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
      expect(await readAll(reopened)).toEqual(entries)
      expect(await reopened.streamPositions(['stream'])).toEqual(['p1'])
      expect(await reopened.reader('billing')).toEqual({ cursor: end, acknowledged: [] })
      const again = await reopened.append([
        { fence: await reopened.claim('stream'), expect: 'p1', entries: entriesOf(change('2')) },
      ])
      expect(again).toEqual({ entries: 0, duplicates: 1, end })
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
      expect(Object.keys(read)).toHaveLength(4)
      for (const source of Object.values(read)) expect(source).toEqual(ids)
    })

    it('takes an append without entries, and one without streams', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      expect(await log.append([])).toEqual({ entries: 0, duplicates: 0, end })
      const fence = await log.claim('stream')
      expect(await log.append([{ fence, expect: null, position: 'p1', entries: [] }])).toEqual({
        entries: 0,
        duplicates: 0,
        end,
      })
      expect(await log.streamPositions(['stream'])).toEqual(['p1'])
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
        await expect(write).rejects.toBeInstanceOf(FencedError)
        await expect(write).rejects.toMatchObject({ claimed: 'stream', retryable: false })
      }
      expect(idsOf(await readAll(second))).toEqual(['1'])
      expect(await second.streamPositions(['stream'])).toEqual(['p1'])
    })

    it('refuses a fence that was never given', async () => {
      const { log } = await open()
      await expect(append(log, { name: 'stream', token: 1 }, change('1'))).rejects.toBeInstanceOf(FencedError)
      const { token } = await log.claim('stream')
      for (const made of [token + 1, token - 1, token + 0.5, -1, Number.NaN]) {
        await expect(append(log, { name: 'stream', token: made }, change('1'))).rejects.toBeInstanceOf(
          FencedError,
        )
      }
      expect(await readAll(log)).toEqual([])
    })

    it('writes nothing of any stream when one of them does not stand where it was expected', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      const write = log.append([
        { fence: a, expect: null, position: 'a1', entries: entriesOf(change('1')) },
        { fence: b, expect: 'b1', position: 'b2', entries: entriesOf(change('2')) },
      ])
      await expect(write).rejects.toBeInstanceOf(LogConflictError)
      await expect(write).rejects.toMatchObject({ subject: 'b', retryable: false })
      expect(await readAll(log)).toEqual([])
      expect(await log.streamPositions(['a', 'b'])).toEqual([null, null])
      // Nor are their identities known.
      expect(await append(log, a, change('1'))).toMatchObject({ entries: 1 })
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
      await expect(write).rejects.toMatchObject({ name: 'FencedError', claimed: 'b' })
      expect(await readAll(log)).toEqual([])
      expect(await log.streamPositions(['a'])).toEqual([null])
    })

    it('appends what several streams bring, and moves each of them', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      await log.append([
        { fence: a, expect: null, position: 'a1', entries: entriesOf(change('1', 'a')) },
        { fence: b, expect: null, position: 'b1', entries: entriesOf(change('1', 'b'), change('2', 'b')) },
      ])
      expect(bySource(await readAll(log))).toEqual({
        '/v1/monitors/a': ['1'],
        '/v1/monitors/b': ['1', '2'],
      })
      expect(await log.streamPositions(['b', 'unknown', 'a'])).toEqual(['b1', null, 'a1'])
    })

    it('refuses an append that expects no position where the stream has one, or another one', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      for (const expected of [null, 'p2', '']) {
        const write = log.append([
          { fence, expect: expected, position: 'p3', entries: entriesOf(change('1')) },
        ])
        await expect(write).rejects.toBeInstanceOf(LogConflictError)
      }
      await log.append([{ fence, expect: 'p1', position: 'p2', entries: entriesOf(change('1')) }])
      expect(await log.streamPositions(['stream'])).toEqual(['p2'])
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
      await expect(log.append([part(null, 'p1'), part(null, 'p2')])).rejects.toBeInstanceOf(LogConflictError)
      expect(await log.streamPositions(['stream'])).toEqual([null])
      await log.append([part(null, 'p1'), part('p1', 'p2')])
      expect(idsOf(await readAll(log))).toEqual(['p1', 'p2'])
      expect(await log.streamPositions(['stream'])).toEqual(['p2'])
    })

    it('leaves a stream where it is when an append has no position', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      await log.append([{ fence, expect: 'p1', entries: entriesOf(change('1')) }])
      expect(await log.streamPositions(['stream'])).toEqual(['p1'])
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
        expect(await log.streamPositions(['stream'])).toEqual([position])
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
      expect(recorded).toEqual([5_000, 5_000, 5_000, 5_000, 7_000, 7_000])
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
      expect(entry).toMatchObject({ id: 'r:completed', data: { output: { content: 'found by r' } } })
      const intact = structuredClone(entry)
      try {
        Object.assign(entry?.data ?? {}, { output: 'changed' })
      } catch {
        // A frozen one is as good.
      }
      expect(await readAll(log)).toEqual([intact])
    })
  })

  describe(`${name}: duplicates`, () => {
    it('skips a duplicate within one append, from another append and from another stream', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      const within = await append(log, a, change('1'), change('1'))
      expect(within).toMatchObject({ entries: 1, duplicates: 1 })
      expect(await append(log, a, change('1'))).toMatchObject({ entries: 0, duplicates: 1 })
      expect(await append(log, b, change('1'), change('2'))).toMatchObject({ entries: 1, duplicates: 1 })
      const between = await log.append([
        { fence: a, expect: null, entries: entriesOf(change('3')) },
        { fence: b, expect: null, entries: entriesOf(change('3')) },
      ])
      expect(between).toMatchObject({ entries: 1, duplicates: 1 })
      expect(idsOf(await readAll(log))).toEqual(['1', '2', '3'])
    })

    it('skips a duplicate from another open log', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await append(log, await log.claim('a'), change('1'))
      expect(await append(second, await second.claim('b'), change('1'))).toMatchObject({ duplicates: 1 })
      expect(await readAll(second)).toHaveLength(1)
    })

    it('skips a duplicate that differs in what is not its identity', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, change('1', 'm', 'poll'))
      expect(await append(log, fence, change('1', 'm', 'webhook'))).toMatchObject({ duplicates: 1 })
      expect(await readAll(log)).toMatchObject([{ via: 'poll' }])
    })

    it('moves the position of a stream past duplicates', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      await append(log, a, change('1'))
      const { end } = await log.append([
        { fence: b, expect: null, position: 'b1', entries: entriesOf(change('1')) },
      ])
      expect(await log.streamPositions(['a', 'b'])).toEqual([null, 'b1'])
      expect(end).toBe(await log.positionAt('end'))
      expect(await readAll(log)).toHaveLength(1)
    })

    it('keeps the same id of two sources', async () => {
      const { log } = await open()
      await append(log, await log.claim('stream'), change('1', 'a'), change('1', 'b'))
      expect(await readAll(log)).toHaveLength(2)
    })

    it('skips a less complete duplicate', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      expect(await append(log, fence, fullRun('r'), bareRun('r'))).toMatchObject({ duplicates: 1 })
      expect(await append(log, fence, bareRun('r'))).toMatchObject({ duplicates: 1 })
      expect(await readAll(log)).toMatchObject([{ revision: 1, data: { output: { content: 'found by r' } } }])
    })

    it('appends a more complete duplicate as the next revision', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, bareRun('r'))
      const appended = await log.append([
        { fence, expect: null, entries: [{ event: fullRun('r'), backfill: true }] },
      ])
      expect(appended).toMatchObject({ entries: 1, duplicates: 0 })
      const entries = await readAll(log)
      expect(entries).toMatchObject([
        { id: 'r:completed', revision: 1, backfill: false },
        { id: 'r:completed', revision: 2, backfill: true, data: { output: { content: 'found by r' } } },
      ])
      expect(new Set(entries.map(({ position }) => position)).size).toBe(2)
      expect(await append(log, fence, fullRun('r'), bareRun('r'))).toMatchObject({ duplicates: 2 })
    })

    it('appends a more complete duplicate within the same append', async () => {
      const { log } = await open()
      const appended = await append(log, await log.claim('stream'), bareRun('r'), fullRun('r'), fullRun('r'))
      expect(appended).toMatchObject({ entries: 2, duplicates: 1 })
      expect((await readAll(log)).map(({ revision }) => revision)).toEqual([1, 2])
    })

    it('merges a duplicate that has other parts, so that each revision has all that earlier ones had', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const withInput = runEvent({ run: taskRun('r'), input: { input: 'ask', processor: 'base' } }, 'stream')
      await append(log, fence, failedRun('r'))
      await append(log, fence, fullRun('r'), withInput)
      const output = { content: 'found by r' }
      const error = { message: 'no luck' }
      expect(await readAll(log)).toMatchObject([
        { revision: 1, via: 'webhook', data: { run: { error } } },
        { revision: 2, via: 'stream', data: { run: { error }, output } },
        { revision: 3, via: 'stream', data: { run: { error }, output, input: { input: 'ask' } } },
      ])
      expect(await append(log, fence, failedRun('r'), fullRun('r'), withInput)).toMatchObject({
        duplicates: 3,
      })
    })
  })

  describe(`${name}: hostile events`, () => {
    const hostile = (id: string, data: unknown = null): ResearchEvent => ({
      ...change('x'),
      type: 'unknown',
      id,
      data,
    })

    it('distinguishes ids that differ in one character of any kind', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const long = 'x'.repeat(1_000_000)
      const ids = [
        'a',
        'a\0',
        'a\0b',
        '\ud800',
        '\ud801',
        '\ufffd',
        '',
        '__proto__',
        'constructor',
        `${long}1`,
        `${long}2`,
      ]
      const events = ids.map((id) => hostile(id))
      expect(await append(log, fence, ...events)).toMatchObject({ entries: ids.length, duplicates: 0 })
      expect(await append(log, fence, ...events)).toMatchObject({ entries: 0, duplicates: ids.length })
      expect(idsOf(await readAll(log))).toEqual(ids)
    })

    it('does not mistake the end of a source for the beginning of an id', async () => {
      const { log } = await open()
      const of = (source: string, id: string): ResearchEvent => ({ ...change(id), source })
      const events = [
        of('/a', 'b'),
        of('/ab', ''),
        of('', '/ab'),
        of('/a\0', 'b'),
        of('/a', '\0b'),
        of('["', '"]'),
      ]
      const fence = await log.claim('stream')
      expect(await append(log, fence, ...events)).toMatchObject({ entries: events.length, duplicates: 0 })
    })

    it('gives back every JSON value as it was', async () => {
      const { log } = await open()
      const data: unknown = JSON.parse(
        '{"__proto__":{"polluted":true},"constructor":1,"":null,"a\\u0000b":"\\u0000\\ud800","n":[-0.5,1e300,[]],"deep":{"__proto__":[1]}}',
      )
      await append(log, await log.claim('stream'), hostile('1', data))
      const [entry] = await readAll(log)
      expect(JSON.stringify(entry?.data)).toBe(JSON.stringify(data))
      expect(Object.getPrototypeOf(entry?.data)).toBe(Object.prototype)
      expect(Object.hasOwn({}, 'polluted') || 'polluted' in {}).toBe(false)
    })

    it('overwrites fields of an event that have the names of its own', async () => {
      const { log } = await open()
      const event = { ...change('1'), position: 'p', recorded: 'never', revision: 99, backfill: 'yes' }
      await append(log, await log.claim('stream'), event)
      const [entry] = await readAll(log)
      expect(entry).toMatchObject({ recorded: 1_000, revision: 1, backfill: false })
      expect(await readAll(log, entry?.position)).toEqual([])
    })

    it('takes runs without a run', async () => {
      const { log } = await open()
      const run = fullRun('r')
      const malformed = [null, undefined, [], 'run', { run: null }, { run: [], output: 1 }, {}].map(
        (data, i) => untyped({ ...run, id: `m${i}`, data }),
      )
      const fence = await log.claim('stream')
      await append(log, fence, ...malformed)
      expect(await append(log, fence, ...malformed)).toMatchObject({ duplicates: malformed.length })
      // A sound duplicate is more complete, and there is nothing to merge.
      await append(log, fence, ...malformed.map(({ id }) => ({ ...run, id })))
      expect((await readAll(log)).filter(({ revision }) => revision === 2)).toHaveLength(malformed.length)
    })

    it('writes nothing of an append with an event that is not JSON', async () => {
      const { log } = await open()
      const circle: Record<string, unknown> = {}
      circle['self'] = circle
      const throwing = {
        toJSON() {
          throw new Error('no')
        },
      }
      const event = change('2')
      const bad = [
        hostile('1', circle),
        hostile('1', 1n),
        hostile('1', throwing),
        ...[undefined, null, 'event', [event], { ...event, toJSON: () => undefined }].map(untyped),
        ...[{ id: undefined }, { id: 1 }, { source: null }, { type: {} }].map((change_) =>
          untyped({ ...event, ...change_ }),
        ),
      ]
      const fence = await log.claim('stream')
      for (const value of bad) {
        const write = log.append([
          { fence, expect: null, position: 'p1', entries: entriesOf(change('1'), value) },
        ])
        await expect(write).rejects.toBeInstanceOf(LogValueError)
      }
      expect(await readAll(log)).toEqual([])
      expect(await log.streamPositions(['stream'])).toEqual([null])
      expect(await append(log, fence, change('1'))).toMatchObject({ entries: 1 })
    })

    it('either keeps or refuses an event that is nested deeply', async () => {
      const { log } = await open()
      const depth = 200_000
      const data: unknown = JSON.parse('['.repeat(depth) + ']'.repeat(depth))
      const fence = await log.claim('stream')
      const outcome = await append(log, fence, hostile('1', data)).then(
        () => 'kept',
        (error: unknown) => error instanceof LogValueError && 'refused',
      )
      expect(['kept', 'refused']).toContain(outcome)
      expect(await readAll(log)).toHaveLength(outcome === 'kept' ? 1 : 0)
    })
  })

  describe(`${name}: reading`, () => {
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
      expect(await log.positionAt('end')).toBe(start)
      expect(await log.positionAt({ time: 0 })).toBe(start)
      expect(await log.read(start, { limit: 10 })).toEqual({ entries: [], position: start, isEnd: true })
    })

    it('reads in pages of at most the limit, each entry once', async () => {
      const { log, events } = await filled()
      for (const limit of [1, 7, 59, 60, 61, 1_000]) {
        let position = await log.positionAt('start')
        const ids: string[] = []
        for (let isEnd = false; !isEnd;) {
          const page = await log.read(position, { limit })
          expect(page.entries.length).toBeLessThanOrEqual(limit)
          // Without a filter, nothing was looked at after the last entry.
          expect(page.position).toBe(page.entries.at(-1)?.position ?? position)
          expect(page.isEnd || page.position !== position).toBe(true)
          ids.push(...idsOf(page.entries))
          ;({ position, isEnd } = page)
        }
        expect(ids.toSorted()).toEqual(idsOf(events).toSorted())
        expect(position).toBe(await log.positionAt('end'))
      }
    })

    it('reads on after each entry, with the same entries at the same positions', async () => {
      const { log, connect } = await filled()
      const entries = await readAll(log)
      const second = await connect('second')
      await append(log, await log.claim('stream'), change('later'), groupStatus('later'), fullRun('later'))
      const all = await readAll(second)
      expect(all.slice(0, entries.length)).toEqual(entries)
      for (const [i, { position }] of entries.entries()) {
        expect(await readAll(second, position)).toEqual(all.slice(i + 1))
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
          expect(again.slice(0, reading.length - at)).toEqual(reading.slice(at))
        }
      }
      expect(idsOf(await readAll(log, end))).toHaveLength(8 * (appended - 2))
    })

    it('reads entries of the wanted types alone, at the same positions, and moves past the others', async () => {
      const { log } = await filled()
      const all = await readAll(log)
      const wanted = await readAll(log, undefined, { types: ['task_group.status'], limit: 3 })
      expect(wanted).toEqual(all.filter(({ type }) => type === 'task_group.status'))
      const two = ['task_run.state', 'monitor.event_stream']
      expect(await readAll(log, undefined, { types: two })).toEqual(
        all.filter(({ type }) => two.includes(type)),
      )
      const start = await log.positionAt('start')
      for (const types of [['nothing'], []]) {
        const page = await log.read(start, { limit: 1, types })
        expect(page).toEqual({ entries: [], position: await log.positionAt('end'), isEnd: true })
      }
    })

    it('says that a page is the end once what follows is not of a wanted type and was looked at', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, change('1'), groupStatus('2'))
      const types = ['monitor.event_stream']
      expect(idsOf(await readAll(log, undefined, { types, limit: 1 }))).toEqual(['1'])
      const end = await log.positionAt('end')
      await append(log, fence, groupStatus('3'), change('4'))
      expect(idsOf(await readAll(log, end, { types, limit: 1 }))).toEqual(['4'])
    })

    it('refuses a limit that is not a positive integer', async () => {
      const { log } = await filled()
      const start = await log.positionAt('start')
      for (const limit of [0, -1, 1.5, Number.NaN, Infinity]) {
        await expect(log.read(start, { limit })).rejects.toBeInstanceOf(ArgumentError)
      }
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
      expect(await first(-Infinity)).toBe(4)
      expect(await first(1_000)).toBe(4)
      expect(await first(1_000.5)).toBe(3)
      expect(await first(2_000)).toBe(3)
      expect(await first(2_001)).toBe(1)
      expect(await first(5_000)).toBe(1)
      expect(await first(5_001)).toBe(0)
      expect(await log.positionAt({ time: 5_001 })).toBe(await log.positionAt('end'))
      expect(await log.positionAt({ time: 0 })).toBe(await log.positionAt('start'))
      await expect(log.positionAt({ time: Number.NaN })).rejects.toBeInstanceOf(ArgumentError)
    })

    it('begins at the end with what is appended later', async () => {
      const { log } = await filled()
      const end = await log.positionAt('end')
      await append(log, await log.claim('stream'), change('later'))
      expect(idsOf(await readAll(log, end))).toEqual(['later'])
    })

    it('refuses the position of another log, garbage, and a position beyond the end', async () => {
      const { log } = await filled()
      const other = await filled()
      await append(other.log, await other.log.claim('more'), change('more'))
      const ours = await log.positionAt('end')
      // That a position ends with a count is known to this test alone.
      expect(ours).toMatch(/\d$/)
      const theirs = await other.log.positionAt('end')
      const beyond = ours.replace(/\d+$/, (count) => String(Number(count) + 1))
      const garbage = [
        `${ours}-0`,
        ...['NaN', 'Infinity', '1e1', '1.5', '0x1', '01', ''].map((count) => ours.replace(/\d+$/, count)),
        `${ours}0`,
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
        ours.replace(/\d+$/, '-1'),
      ]
      const fence = await log.claim('reader')
      for (const position of [theirs, beyond, ...garbage, ...hostile]) {
        const { signal } = new AbortController()
        await expect(log.read(position, { limit: 1 })).rejects.toBeInstanceOf(LogPositionError)
        await expect(log.wait(position, signal)).rejects.toBeInstanceOf(LogPositionError)
        for (const state of [
          { cursor: position, acknowledged: [] },
          { cursor: ours, acknowledged: [ours, position] },
        ]) {
          const error = await log.commit(fence, { expect: null, ...state }).catch((reason: unknown) => reason)
          expect(error).toBeInstanceOf(position.length > 100_000 ? LogValueError : LogPositionError)
        }
      }
      expect(await log.reader('reader')).toBeUndefined()
    })
  })

  describe(`${name}: waiting`, () => {
    it('resolves at once where there are entries after the position', async () => {
      const { log } = await open()
      await append(log, await log.claim('stream'), change('1'))
      const waiting = log.wait(await log.positionAt('start'), new AbortController().signal)
      await expect(waiting).resolves.toBeUndefined()
    })

    it('resolves after an append, by itself and by another open log', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      for (const writer of [log, second]) {
        const end = await log.positionAt('end')
        const waiting = [
          log.wait(end, new AbortController().signal),
          log.wait(end, new AbortController().signal),
        ]
        for (const wait of waiting) expect(await isSettled(wait, log)).toBe(false)
        const fence = await writer.claim('stream')
        await append(writer, fence, change((await readAll(log)).length === 0 ? '1' : '2'))
        await writer.release(fence)
        await Promise.all(waiting)
        expect(await readAll(log, end)).toHaveLength(1)
      }
    })

    it('does not miss an append that happens while it begins to wait', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await log.claim('stream')
      for (let i = 0; i < 20; i++) {
        const end = await log.positionAt('end')
        const waiting = second.wait(end, new AbortController().signal)
        await Promise.all([expect(waiting).resolves.toBeUndefined(), append(log, fence, change(String(i)))])
      }
    })

    it('rejects with the reason of its signal', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      const abort = new AbortController()
      const waiting = log.wait(end, abort.signal)
      expect(await isSettled(waiting, log)).toBe(false)
      const reason = new Error('unsubscribed')
      abort.abort(reason)
      await expect(waiting).rejects.toBe(reason)
      await expect(log.wait(end, abort.signal)).rejects.toBe(reason)
      await append(log, await log.claim('stream'), change('1'))
      await expect(log.wait(end, abort.signal)).rejects.toBe(reason)
    })

    it('leaves no listener on its signal', async () => {
      const { log } = await open()
      const end = await log.positionAt('end')
      const { signal } = new AbortController()
      const waiting = log.wait(end, signal)
      expect(await isSettled(waiting, log)).toBe(false)
      await append(log, await log.claim('stream'), change('1'))
      await waiting
      await log.wait(end, signal)
      expect(getEventListeners(signal, 'abort')).toEqual([])
    })

    it('rejects when the log is closed, and not when another one is', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const end = await log.positionAt('end')
      const here = log.wait(end, new AbortController().signal)
      const there = second.wait(end, new AbortController().signal)
      expect(await isSettled(here, log)).toBe(false)
      await Promise.all([expect(here).rejects.toBeInstanceOf(LogClosedError), log.close()])
      expect(await isSettled(there, second)).toBe(false)
      await append(second, await second.claim('stream'), change('1'))
      await there
    })
  })

  describe(`${name}: readers`, () => {
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
        expect(await log.reader(unknown)).toBeUndefined()
      }
    })

    it('creates a reader where none is expected, and moves it from where it stands', async () => {
      const { log, connect, at, fence } = await withReader()
      const second = await connect('second')
      await log.commit(fence, { expect: null, cursor: at(0), acknowledged: [] })
      expect(await second.reader('billing')).toEqual({ cursor: at(0), acknowledged: [] })
      await log.commit(fence, { expect: at(0), cursor: at(2), acknowledged: [] })
      expect(await second.reader('billing')).toEqual({ cursor: at(2), acknowledged: [] })
      await log.commit(fence, { expect: at(2), cursor: at(1), acknowledged: [] })
      expect(await second.reader('billing')).toEqual({ cursor: at(1), acknowledged: [] })
    })

    it('keeps acknowledged positions, as the last commit has them', async () => {
      const { log, at, fence } = await withReader()
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [at(3), at(5)] })
      expect(await log.reader('billing')).toEqual({ cursor: at(1), acknowledged: [at(3), at(5)] })
      await log.commit(fence, { expect: at(1), cursor: at(1), acknowledged: [at(3)] })
      expect(await log.reader('billing')).toEqual({ cursor: at(1), acknowledged: [at(3)] })
      await log.commit(fence, { expect: at(1), cursor: at(5), acknowledged: [] })
      expect(await log.reader('billing')).toEqual({ cursor: at(5), acknowledged: [] })
    })

    it('refuses a commit that expects another cursor, and changes nothing', async () => {
      const { log, at, fence } = await withReader()
      const missing = log.commit(fence, { expect: at(0), cursor: at(1), acknowledged: [] })
      await expect(missing).rejects.toBeInstanceOf(LogConflictError)
      expect(await log.reader('billing')).toBeUndefined()
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [at(3)] })
      for (const expected of [null, at(0), at(2)]) {
        const write = log.commit(fence, { expect: expected, cursor: at(4), acknowledged: [] })
        await expect(write).rejects.toBeInstanceOf(LogConflictError)
        await expect(write).rejects.toMatchObject({ subject: 'billing' })
      }
      expect(await log.reader('billing')).toEqual({ cursor: at(1), acknowledged: [at(3)] })
    })

    it('refuses the commit of a reader whose name was claimed by another since, and changes nothing', async () => {
      const { log, connect, loseClaims, at, fence } = await withReader()
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [] })
      await loseClaims(log)
      const second = await connect('second')
      const taken = await second.claim('billing')
      const write = log.commit(fence, { expect: at(1), cursor: at(2), acknowledged: [] })
      await expect(write).rejects.toBeInstanceOf(FencedError)
      expect(await second.reader('billing')).toEqual({ cursor: at(1), acknowledged: [] })
      await second.commit(taken, { expect: at(1), cursor: at(3), acknowledged: [] })
    })

    it('keeps readers apart from each other, and from streams of the same name', async () => {
      const { log, at, fence } = await withReader()
      const other = await log.claim('ledger')
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged: [] })
      await log.commit(other, { expect: null, cursor: at(2), acknowledged: [at(4)] })
      await log.append([{ fence, expect: null, position: 'p1', entries: [] }])
      expect(await log.reader('billing')).toEqual({ cursor: at(1), acknowledged: [] })
      expect(await log.reader('ledger')).toEqual({ cursor: at(2), acknowledged: [at(4)] })
      expect(await log.streamPositions(['billing', 'ledger'])).toEqual(['p1', null])
    })

    it('takes a commit of up to 10,000 acknowledged positions, and refuses one of more than MAX_COMMIT_BYTES', async () => {
      const { log, at, fence } = await withReader()
      const acknowledged = Array.from({ length: 10_000 }, () => at(3))
      await log.commit(fence, { expect: null, cursor: at(1), acknowledged })
      expect(await log.reader('billing')).toEqual({ cursor: at(1), acknowledged })
      const count = Math.ceil(MAX_COMMIT_BYTES / at(3).length)
      const write = log.commit(fence, {
        expect: at(1),
        cursor: at(2),
        acknowledged: Array.from({ length: count }, () => at(3)),
      })
      await expect(write).rejects.toBeInstanceOf(LogValueError)
      expect((await log.reader('billing'))?.cursor).toBe(at(1))
    })
  })

  describe(`${name}: closing`, () => {
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
      ]
      for (const outcome of await Promise.allSettled(calls)) {
        expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(LogClosedError) })
      }
      await log.close()
    })

    it('leaves other open logs as they are', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const fence = await second.claim('stream')
      await log.close()
      await append(second, fence, change('1'))
      expect(await readAll(second)).toHaveLength(1)
    })

    it('answers nothing before the caller has gone on', async () => {
      const { log } = await open()
      let isAnswered = false
      const answer = () => (isAnswered = true)
      const start = await log.positionAt('start')
      const calls = [log.claim('stream'), log.read(start, { limit: 1 }), log.reader('billing'), log.close()]
      for (const call of calls) call.then(answer, answer)
      expect(isAnswered).toBe(false)
      await Promise.allSettled(calls)
    })
  })

  describeLogModel(name, openFresh)
}
