import { equal, hasLength, matches, same } from './checks.ts'
import type { ResearchEvent } from '../../../protocol/event.ts'
import { runEvent } from '../../../protocol/event.ts'
import { change, completedRun, fullRun, taskRun } from './events.ts'
import { append, entriesOf, idsOf, readAll } from './fixture.ts'
import type { Area } from './area.ts'
import { newEntry } from '../new-entry.ts'

/** A failed run, with its error and without its output. */
function failedRun(id: string): ResearchEvent {
  const error = { ref_id: 'ref', message: 'no luck', detail: null }
  return runEvent({ run: taskRun(id, 'completed', { error }) }, 'webhook')
}

/** Identities and revisions. */
export function testDuplicates({ describe, it, open }: Area): void {
  describe('duplicates', () => {
    it('skips a duplicate within one append, from another append and from another stream', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      const within = await append(log, a, change('1'), change('1'))
      matches(within, { entries: 1, duplicates: 1 })
      matches(await append(log, a, change('1')), { entries: 0, duplicates: 1 })
      matches(await append(log, b, change('1'), change('2')), { entries: 1, duplicates: 1 })
      const between = await log.append([
        { fence: a, expect: null, entries: entriesOf(change('3')) },
        { fence: b, expect: null, entries: entriesOf(change('3')) },
      ])
      matches(between, { entries: 1, duplicates: 1 })
      equal(idsOf(await readAll(log)), ['1', '2', '3'])
    })

    it('skips a duplicate from another open log', async () => {
      const { log, connect } = await open()
      const second = await connect('second')
      await append(log, await log.claim('a'), change('1'))
      matches(await append(second, await second.claim('b'), change('1')), { duplicates: 1 })
      hasLength(await readAll(second), 1)
    })

    it('skips a duplicate that differs in what is not its identity', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, change('1'))
      matches(await append(log, fence, { ...change('1'), via: 'webhook' }), { duplicates: 1 })
      matches(await readAll(log), [{ via: 'poll' }])
    })

    it('moves the position of a stream past duplicates', async () => {
      const { log } = await open()
      const a = await log.claim('a')
      const b = await log.claim('b')
      await append(log, a, change('1'))
      const { end } = await log.append([
        { fence: b, expect: null, position: 'b1', entries: entriesOf(change('1')) },
      ])
      equal(await log.streamPositions(['a', 'b']), [null, 'b1'])
      same(end, await log.positionAt('end'))
      hasLength(await readAll(log), 1)
    })

    it('keeps the same id of two sources', async () => {
      const { log } = await open()
      await append(log, await log.claim('stream'), change('1', 'a'), change('1', 'b'))
      hasLength(await readAll(log), 2)
    })

    it('skips a less complete duplicate', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      matches(await append(log, fence, fullRun('r'), completedRun('r')), { duplicates: 1 })
      matches(await append(log, fence, completedRun('r')), { duplicates: 1 })
      matches(await readAll(log), [{ revision: 1, data: { output: { content: 'found by r' } } }])
    })

    it('appends a more complete duplicate as the next revision', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, completedRun('r'))
      const appended = await log.append([{ fence, expect: null, entries: [newEntry(fullRun('r'), true)] }])
      matches(appended, { entries: 1, duplicates: 0 })
      const entries = await readAll(log)
      matches(entries, [
        { id: 'r:completed', revision: 1, backfill: false },
        { id: 'r:completed', revision: 2, backfill: true, data: { output: { content: 'found by r' } } },
      ])
      same(new Set(entries.map(({ position }) => position)).size, 2)
      matches(await append(log, fence, fullRun('r'), completedRun('r')), { duplicates: 2 })
    })

    it('appends a more complete duplicate within the same append', async () => {
      const { log } = await open()
      const appended = await append(
        log,
        await log.claim('stream'),
        completedRun('r'),
        fullRun('r'),
        fullRun('r'),
      )
      matches(appended, { entries: 2, duplicates: 1 })
      equal(
        (await readAll(log)).map(({ revision }) => revision),
        [1, 2],
      )
    })

    it('merges a duplicate that has other parts, so that each revision has all that earlier ones had', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const withInput = runEvent({ run: taskRun('r'), input: { input: 'ask', processor: 'base' } }, 'stream')
      await append(log, fence, failedRun('r'))
      await append(log, fence, fullRun('r'), withInput)
      const output = { content: 'found by r' }
      const error = { message: 'no luck' }
      matches(await readAll(log), [
        { revision: 1, via: 'webhook', data: { run: { error } } },
        { revision: 2, via: 'stream', data: { run: { error }, output } },
        { revision: 3, via: 'stream', data: { run: { error }, output, input: { input: 'ask' } } },
      ])
      matches(await append(log, fence, failedRun('r'), fullRun('r'), withInput), {
        duplicates: 3,
      })
    })

    it('records the warnings of a webhook that comes after its copy of the stream', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const warnings = [{ type: 'warning', message: 'The schema was simplified.' }]
      const warned = runEvent({ run: taskRun('r', 'completed', { warnings }) }, 'webhook')
      await append(log, fence, fullRun('r'))
      matches(await append(log, fence, warned), { entries: 1 })
      const output = { content: 'found by r' }
      matches(await readAll(log), [
        { revision: 1, data: { output } },
        { revision: 2, data: { run: { warnings }, output } },
      ])
      matches(await append(log, fence, warned, fullRun('r')), { duplicates: 2 })
    })

    it('takes an empty list of warnings for none', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, fullRun('r'))
      const without = runEvent({ run: taskRun('r', 'completed', { warnings: [] }) }, 'webhook')
      matches(await append(log, fence, without), { duplicates: 1 })
    })

    it('records the group of a run whose first copy did not name it, and keeps it', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const error = { ref_id: 'ref', message: 'no luck', detail: null }
      const webhook = runEvent({ run: taskRun('r', 'failed', { error, taskgroup_id: null }) }, 'webhook')
      const stream = runEvent({ run: taskRun('r', 'failed', { taskgroup_id: 'tgrp_1' }) }, 'stream')
      await append(log, fence, webhook)
      matches(await append(log, fence, stream), { entries: 1 })
      matches(await append(log, fence, webhook), { duplicates: 1 })
      await append(
        log,
        fence,
        runEvent({ run: taskRun('s', 'failed', { taskgroup_id: 'tgrp_1' }) }, 'stream'),
      )
      await append(
        log,
        fence,
        runEvent({ run: taskRun('s', 'failed', { error, taskgroup_id: null }) }, 'webhook'),
      )
      const run = { error: { message: 'no luck' }, taskgroup_id: 'tgrp_1' }
      const merged = (await readAll(log)).filter(({ revision }) => revision === 2)
      // Runs may be in several partitions.
      matches(
        merged.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
        [{ data: { run: { run_id: 'r', ...run } } }, { data: { run: { run_id: 's', ...run } } }],
      )
    })
  })
}
