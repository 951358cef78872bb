import { setTimeout } from 'node:timers/promises'
import { any, equal, hasLength, matches, rejects, rejectsWith, same } from './checks.ts'
import { MAX_APPEND_DONE } from '../contract.ts'
import { MAX_PAGE_LENGTH } from '../contract.ts'
import type { LogStore } from '../contract.ts'
import { FencedError, LogClosedError, LogConflictError, LogValueError } from '../../errors.ts'
import type { WebhookDelivery } from '../../../protocol/webhook.ts'
import { change } from './events.ts'
import { entriesOf, idsOf, isSettled, readAll } from './fixture.ts'
import type { Area } from './area.ts'

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
export function testInbox({ describe, it, open }: Area): void {
  describe('its inbox', () => {
    it('gives back what was put, in the order of arrival, also to another open log', async () => {
      const { log, connect } = await open(() => 5_000)
      const second = await connect('second')
      const odd = { text: '✓ 漢字 \u{1F980}', deep: [[{ n: 1.5 }], null] }
      same(await put(log, 'a', odd), 'stored')
      same(await put(second, 'b'), 'stored')
      same(await put(log, 'c'), 'stored')
      const [first, ...others] = await second.inbox.pending(null, 10)
      equal(first, {
        ...delivery('a', odd),
        received: 5_000,
        length: JSON.stringify(odd).length,
        place: any(String),
      })
      equal(idsOf(others), ['b', 'c'])
      equal(await log.inbox.pending(null, 10), [first, ...others])
    })

    it('stores the text that a payload was parsed from', async () => {
      const { log } = await open()
      const text = '{ "n": 1.50e+01,\n"n":2, "s":"\\u2713" }'
      await log.inbox.put(delivery('a', JSON.parse(text)), text)
      matches(await log.inbox.pending(null, 1), [{ payload: { n: 2, s: '✓' }, length: text.length }])
    })

    it('gives back any JSON object as it was parsed', async () => {
      const { log } = await open()
      // Escaped and not, with lone surrogates, numbers beyond a double, repeated and odd keys.
      const texts = [
        '{"n":1e400}',
        '{"n":-0}',
        '{"__proto__":{"a":1}}',
        '{"a":1,"a":2}',
        '{"s":"\u2028\uFFFF"}',
        '{"s":"\uD800"}',
        '{"\\u0000":"\\u0000"}',
        '{ "a" : [ 1,\n { "b" : null } ] }',
        `{"deep":${'['.repeat(3_000)}${']'.repeat(3_000)}}`,
      ]
      for (const [n, text] of texts.entries()) {
        same(await log.inbox.put(delivery(`id-${n}`, JSON.parse(text)), text), 'stored')
      }
      const stored = await log.inbox.pending(null, 100)
      // As text, since one of them is too deep to be compared otherwise.
      equal(
        stored.map(({ payload }) => JSON.stringify(payload)),
        texts.map((text) => JSON.stringify(JSON.parse(text))),
      )
    })

    for (const id of ['"', '"a"', 'constructor', '__proto__', 'a.b-c_d']) {
      it(`takes the id ${id}`, async () => {
        const { log } = await open()
        equal(await putAll(log, id, id), ['stored', 'duplicate'])
        equal(await pendingIds(log), [id])
        await done(log, id)
        equal(await pendingIds(log), [])
        same(await put(log, id), 'duplicate')
      })
    }

    it('stores one of many concurrent duplicates', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const outcomes = await Promise.all([log, second, log, second, log].map((each) => put(each, 'a')))
      hasLength(
        outcomes.filter((outcome) => outcome === 'stored'),
        1,
      )
      hasLength(
        outcomes.filter((outcome) => outcome === 'duplicate'),
        4,
      )
      equal(await pendingIds(log), ['a'])
    })

    it('stores a burst, each once', async () => {
      const { log } = await open()
      const ids = Array.from({ length: 700 }, (_, n) => `msg_${n}`)
      equal(new Set(await putAll(log, ...ids)), new Set(['stored']))
      equal(await pendingIds(log, 1_000), ids)
    })

    it('reads in pages, each delivery once, whatever is done and stored meanwhile', async () => {
      const { log } = await open()
      await putAll(log, 'a', 'b', 'c', 'd')
      const first = await log.inbox.pending(null, 2)
      await done(log, 'a', 'b', 'c')
      await put(log, 'e')
      const second = await log.inbox.pending(first.at(-1)?.place ?? null, 10)
      equal(
        [idsOf(first), idsOf(second)],
        [
          ['a', 'b'],
          ['d', 'e'],
        ],
      )
      equal(await log.inbox.pending(second.at(-1)?.place ?? null, 10), [])
    })

    it('ends a page before large deliveries take much memory', async () => {
      const { log } = await open()
      const large = { text: 'x'.repeat(MAX_PAGE_LENGTH * 0.6) }
      for (const id of ['a', 'b', 'c']) await put(log, id, large)
      equal(await pendingIds(log), ['a', 'b'])
    })

    it('has an append and what it makes done in one transaction', async () => {
      const { log, loseClaims, connect } = await open()
      await putAll(log, 'a', 'b', 'c')
      const fence = await log.claim('inbox')
      await log.append([{ fence, expect: null, position: '1', entries: entriesOf(change('1')) }], ['a', 'b'])
      equal(await pendingIds(log), ['c'])
      const wrong = log.append([{ fence, expect: 'x', entries: entriesOf(change('2')) }], ['c'])
      await rejects(wrong, LogConflictError)
      await loseClaims(log)
      const second = await connect('second')
      await second.claim('inbox')
      const fenced = log.append([{ fence, expect: '1', entries: entriesOf(change('2')) }], ['c'])
      await rejects(fenced, FencedError)
      equal(await pendingIds(second), ['c'])
      equal(idsOf(await readAll(second)), ['1'])
    })

    it('marks as done what belongs to a duplicate that the log skips', async () => {
      const { log } = await open()
      const fence = await log.claim('inbox')
      await log.append([{ fence, expect: null, entries: entriesOf(change('1')) }])
      await put(log, 'a')
      const appended = await log.append([{ fence, expect: null, entries: entriesOf(change('1')) }], ['a'])
      matches(appended, { entries: 0, duplicates: 1 })
      equal(await pendingIds(log), [])
    })

    it('ignores ids that are unknown or done already', async () => {
      const { log } = await open()
      await putAll(log, 'a', 'b')
      await done(log, 'a', 'unknown', 'a')
      await done(log, 'a')
      equal(await pendingIds(log), ['b'])
    })

    it('refuses more ids that are done than an append may have, and ids without a fence', async () => {
      const { log } = await open()
      await putAll(log, 'a')
      const ids = ['a', ...Array.from({ length: MAX_APPEND_DONE }, (_, n) => `${n}`)]
      await rejects(done(log, ...ids), LogValueError)
      await rejects(log.append([], ['a']), LogValueError)
      equal(await pendingIds(log), ['a'])
    })

    it('is full at its number of deliveries, knows duplicates then, and has room once one is done', async () => {
      const { log, connect } = await open(undefined, { maxDeliveries: 2 })
      const second = await connect('second')
      equal(await putAll(log, 'a', 'b', 'c', 'a'), ['stored', 'stored', 'full', 'duplicate'])
      same(await put(second, 'c'), 'full')
      equal([second.inbox.isFull('c'), second.inbox.isFull('a')], [true, false])
      await done(log, 'a')
      // What another open log did may not be known at once: it is asked for without waiting.
      while (second.inbox.isFull('c')) await setTimeout(10)
      same(await put(second, 'c'), 'stored')
      same(await put(second, 'a'), 'duplicate')
      same(await put(second, 'd'), 'full')
    })

    it('is full at its size', async () => {
      const { log } = await open(undefined, { maxBytes: 1_000 })
      // Counted in bytes, not in characters.
      const text = '✓'.repeat(170)
      equal([await put(log, 'a', { text }), await put(log, 'b', { text })], ['stored', 'stored'])
      same(await put(log, 'c', {}), 'full')
      await done(log, 'b')
      same(await put(log, 'c', {}), 'stored')
    })

    it('is not full before it was used', async () => {
      const { log } = await open(undefined, { maxDeliveries: 1 })
      same(log.inbox.isFull('a'), false)
    })

    it('resolves a wait once there is a delivery after the place, from any open log', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      const { signal } = new AbortController()
      for (const writer of [log, second]) {
        const place = (await log.inbox.pending(null, 10)).at(-1)?.place ?? null
        const waiting = log.inbox.wait(place, signal)
        same(await isSettled(waiting, log), false)
        await put(writer, writer === log ? 'a' : 'b')
        await waiting
        await log.inbox.wait(place, signal)
        hasLength(await log.inbox.pending(place, 10), 1)
      }
    })

    it('rejects a wait with the reason of its signal, and when the log is closed', async () => {
      const { log } = await open()
      const abort = new AbortController()
      const reason = new Error('stopped')
      const aborted = log.inbox.wait(null, abort.signal)
      const closed = log.inbox.wait(null, new AbortController().signal)
      same(await isSettled(Promise.race([aborted, closed]), log), false)
      abort.abort(reason)
      await rejectsWith(aborted, reason)
      await Promise.all([rejects(closed, LogClosedError), log.close()])
    })
  })
}
