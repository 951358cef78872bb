import * as fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { MAX_APPEND_DONE } from '../../../src/log/store/contract.ts'
import { MAX_PAGE_LENGTH } from '../../../src/log/store/contract.ts'
import type { LogStore } from '../../../src/log/store/contract.ts'
import { FencedError, LogClosedError, LogConflictError, LogValueError } from '../../../src/log/errors.ts'
import type { WebhookDelivery } from '../../../src/protocol/webhook.ts'
import { change } from '../../operators/events.ts'
import { entriesOf, idsOf, isSettled, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

const TIMESTAMP = 1_760_000_000

const delivery = (id: string, payload: unknown = { for: id }): WebhookDelivery => ({
  id,
  timestamp: TIMESTAMP,
  payload,
})

const put = (log: LogStore, id: string, payload: unknown = { for: id }) =>
  log.inbox.put(delivery(id, payload), JSON.stringify(payload))

const putAll = (log: LogStore, ...ids: readonly string[]) => Promise.all(ids.map((id) => put(log, id)))

async function pendingIds(log: LogStore, limit = 100): Promise<readonly string[]> {
  return idsOf(await log.inbox.pending(null, limit))
}

/** Appends nothing but that these are done. */
async function done(log: LogStore, ...ids: readonly string[]): Promise<void> {
  const fence = await log.claim('inbox')
  await log.append([{ fence, expect: null, entries: [] }], ids)
  await log.release(fence)
}

/** Webhooks between their receipt and their recording. */
export function describeInbox(name: string, open: Open): void {
  describe(`${name}: its inbox`, () => {
    it('gives back what was put, in the order of arrival, also to another open log', async () => {
      const { log, connect } = await open(() => 5_000)
      const second = await connect('second')
      const odd = { text: '✓ 漢字 \u{1F980}', deep: [[{ n: 1.5 }], null] }
      expect(await put(log, 'a', odd)).toBe('stored')
      expect(await put(second, 'b')).toBe('stored')
      expect(await put(log, 'c')).toBe('stored')
      const [first, ...others] = await second.inbox.pending(null, 10)
      expect(first).toEqual({
        ...delivery('a', odd),
        received: 5_000,
        length: JSON.stringify(odd).length,
        place: expect.any(String),
      })
      expect(idsOf(others)).toEqual(['b', 'c'])
      expect(await log.inbox.pending(null, 10)).toEqual([first, ...others])
    })

    it('stores the text that a payload was parsed from', async () => {
      const { log } = await open()
      const text = '{ "n": 1.50e+01,\n"n":2, "s":"\\u2713" }'
      await log.inbox.put(delivery('a', JSON.parse(text)), text)
      expect(await log.inbox.pending(null, 1)).toMatchObject([
        { payload: { n: 2, s: '✓' }, length: text.length },
      ])
    })

    it('gives back any JSON object as it was parsed', async () => {
      const { log } = await open()
      const parsed = new Map<string, unknown>()
      // Escaped and not, with lone surrogates, numbers beyond a double, repeated and odd keys.
      const texts = fc.oneof(
        fc
          .dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
          .map((value) => JSON.stringify(value, null, 1)),
        fc.constantFrom(
          '{"n":1e400}',
          '{"n":-0}',
          '{"__proto__":{"a":1}}',
          '{"a":1,"a":2}',
          '{"s":"\u2028\uFFFF"}',
          '{"s":"\uD800"}',
          `{"deep":${'['.repeat(3_000)}${']'.repeat(3_000)}}`,
        ),
      )
      await fc.assert(
        fc.asyncProperty(texts, async (text) => {
          const id = `id-${parsed.size}`
          parsed.set(id, JSON.parse(text))
          expect(await log.inbox.put(delivery(id, JSON.parse(text)), text)).toBe('stored')
        }),
        { numRuns: 40 },
      )
      const stored = await log.inbox.pending(null, 100)
      expect(new Map(stored.map(({ id, payload }) => [id, payload]))).toEqual(parsed)
    })

    it.each(['"', '"a"', 'constructor', '__proto__', 'a.b-c_d'])('takes the id %j', async (id) => {
      const { log } = await open()
      expect(await putAll(log, id, id)).toEqual(['stored', 'duplicate'])
      expect(await pendingIds(log)).toEqual([id])
      await done(log, id)
      expect(await pendingIds(log)).toEqual([])
      expect(await put(log, id)).toBe('duplicate')
    })

    it('stores one of many concurrent duplicates', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const outcomes = await Promise.all([log, second, log, second, log].map((each) => put(each, 'a')))
      expect(outcomes.filter((outcome) => outcome === 'stored')).toHaveLength(1)
      expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(4)
      expect(await pendingIds(log)).toEqual(['a'])
    })

    it('stores a burst, each once', async () => {
      const { log } = await open()
      const ids = Array.from({ length: 700 }, (_, n) => `msg_${n}`)
      expect(new Set(await putAll(log, ...ids))).toEqual(new Set(['stored']))
      expect(await pendingIds(log, 1_000)).toEqual(ids)
    })

    it('reads in pages, each delivery once, whatever is done and stored meanwhile', async () => {
      const { log } = await open()
      await putAll(log, 'a', 'b', 'c', 'd')
      const first = await log.inbox.pending(null, 2)
      await done(log, 'a', 'b', 'c')
      await put(log, 'e')
      const second = await log.inbox.pending(first.at(-1)?.place ?? null, 10)
      expect([idsOf(first), idsOf(second)]).toEqual([
        ['a', 'b'],
        ['d', 'e'],
      ])
      expect(await log.inbox.pending(second.at(-1)?.place ?? null, 10)).toEqual([])
    })

    it('ends a page before large deliveries take much memory', async () => {
      const { log } = await open()
      const large = { text: 'x'.repeat(MAX_PAGE_LENGTH * 0.6) }
      for (const id of ['a', 'b', 'c']) await put(log, id, large)
      expect(await pendingIds(log)).toEqual(['a', 'b'])
    })

    it('has an append and what it makes done in one transaction', async () => {
      const { log, loseClaims, connect } = await open()
      await putAll(log, 'a', 'b', 'c')
      const fence = await log.claim('inbox')
      await log.append([{ fence, expect: null, position: '1', entries: entriesOf(change('1')) }], ['a', 'b'])
      expect(await pendingIds(log)).toEqual(['c'])
      const wrong = log.append([{ fence, expect: 'x', entries: entriesOf(change('2')) }], ['c'])
      await expect(wrong).rejects.toBeInstanceOf(LogConflictError)
      await loseClaims(log)
      const second = await connect('second')
      await second.claim('inbox')
      const fenced = log.append([{ fence, expect: '1', entries: entriesOf(change('2')) }], ['c'])
      await expect(fenced).rejects.toBeInstanceOf(FencedError)
      expect(await pendingIds(second)).toEqual(['c'])
      expect(idsOf(await readAll(second))).toEqual(['1'])
    })

    it('marks as done what belongs to a duplicate that the log skips', async () => {
      const { log } = await open()
      const fence = await log.claim('inbox')
      await log.append([{ fence, expect: null, entries: entriesOf(change('1')) }])
      await put(log, 'a')
      const appended = await log.append([{ fence, expect: null, entries: entriesOf(change('1')) }], ['a'])
      expect(appended).toMatchObject({ entries: 0, duplicates: 1 })
      expect(await pendingIds(log)).toEqual([])
    })

    it('ignores ids that are unknown or done already', async () => {
      const { log } = await open()
      await putAll(log, 'a', 'b')
      await done(log, 'a', 'unknown', 'a')
      await done(log, 'a')
      expect(await pendingIds(log)).toEqual(['b'])
    })

    it('refuses more ids that are done than an append may have, and ids without a fence', async () => {
      const { log } = await open()
      await putAll(log, 'a')
      const ids = ['a', ...Array.from({ length: MAX_APPEND_DONE }, (_, n) => `${n}`)]
      await expect(done(log, ...ids)).rejects.toBeInstanceOf(LogValueError)
      await expect(log.append([], ['a'])).rejects.toBeInstanceOf(LogValueError)
      expect(await pendingIds(log)).toEqual(['a'])
    })

    it('is full at its number of deliveries, knows duplicates then, and has room once one is done', async () => {
      const { log, connect } = await open(undefined, { maxDeliveries: 2 })
      const second = await connect('second')
      expect(await putAll(log, 'a', 'b', 'c', 'a')).toEqual(['stored', 'stored', 'full', 'duplicate'])
      expect(await put(second, 'c')).toBe('full')
      expect([second.inbox.isFull('c'), second.inbox.isFull('a')]).toEqual([true, false])
      await done(log, 'a')
      // What another open log did may not be known at once: it is asked for without waiting.
      await vi.waitFor(() => expect(second.inbox.isFull('c')).toBe(false))
      expect(await put(second, 'c')).toBe('stored')
      expect(await put(second, 'a')).toBe('duplicate')
      expect(await put(second, 'd')).toBe('full')
    })

    it('is full at its size', async () => {
      const { log } = await open(undefined, { maxBytes: 1_000 })
      // Counted in bytes, not in characters.
      const text = '✓'.repeat(170)
      expect([await put(log, 'a', { text }), await put(log, 'b', { text })]).toEqual(['stored', 'stored'])
      expect(await put(log, 'c', {})).toBe('full')
      await done(log, 'b')
      expect(await put(log, 'c', {})).toBe('stored')
    })

    it('is not full before it was used', async () => {
      const { log } = await open(undefined, { maxDeliveries: 1 })
      expect(log.inbox.isFull('a')).toBe(false)
    })

    it('resolves a wait once there is a delivery after the place, from any open log', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const { signal } = new AbortController()
      for (const writer of [log, second]) {
        const place = (await log.inbox.pending(null, 10)).at(-1)?.place ?? null
        const waiting = log.inbox.wait(place, signal)
        expect(await isSettled(waiting, log)).toBe(false)
        await put(writer, writer === log ? 'a' : 'b')
        await waiting
        await log.inbox.wait(place, signal)
        expect(await log.inbox.pending(place, 10)).toHaveLength(1)
      }
    })

    it('rejects a wait with the reason of its signal, and when the log is closed', async () => {
      const { log } = await open()
      const abort = new AbortController()
      const reason = new Error('stopped')
      const aborted = log.inbox.wait(null, abort.signal)
      const closed = log.inbox.wait(null, new AbortController().signal)
      expect(await isSettled(Promise.race([aborted, closed]), log)).toBe(false)
      abort.abort(reason)
      await expect(aborted).rejects.toBe(reason)
      await Promise.all([expect(closed).rejects.toBeInstanceOf(LogClosedError), log.close()])
    })

    it('agrees with a model, whatever is put and done by whom', async () => {
      const ids = fc.integer({ min: 0, max: 12 }).map((n) => `msg_${n}`)
      const steps = fc.array(
        fc.record({ kind: fc.constantFrom('put', 'put', 'done'), ids: fc.array(ids), by: fc.nat(1) }),
        { maxLength: 20 },
      )
      await fc.assert(
        fc.asyncProperty(steps, async (run) => {
          const { log, connect } = await open(undefined, { maxDeliveries: 5 })
          const logs = [log, await connect('second')]
          const known = new Set<string>()
          let pending: string[] = []
          for (const { kind, ids: each, by } of run) {
            const store = logs[by] ?? log
            if (kind === 'done') {
              await done(store, ...each)
              pending = pending.filter((id) => !each.includes(id))
              continue
            }
            const expected = each.map((id) => {
              if (known.has(id)) return 'duplicate'
              if (pending.length >= 5) return 'full'
              known.add(id)
              pending.push(id)
              return 'stored'
            })
            expect(await putAll(store, ...each)).toEqual(expected)
          }
          expect(await pendingIds(logs[1] ?? log)).toEqual(pending)
        }),
        { numRuns: 25 },
      )
    })
  })
}
