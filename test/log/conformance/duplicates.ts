import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { runEvent } from '../../../src/protocol/event.ts'
import { bareRun, change, fullRun, taskRun } from '../../operators/events.ts'
import { append, entriesOf, idsOf, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

/** A failed run, with its error and without its output. */
function failedRun(id: string): ResearchEvent {
  const error = { ref_id: 'ref', message: 'no luck', detail: null }
  return runEvent({ run: taskRun(id, 'completed', { error }) }, 'webhook')
}

/** Identities and revisions. */
export function describeDuplicates(name: string, open: Open): void {
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

    it('records the warnings of a webhook that comes after its copy of the stream', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const warnings = [{ type: 'warning', message: 'The schema was simplified.' }]
      const warned = runEvent({ run: taskRun('r', 'completed', { warnings }) }, 'webhook')
      await append(log, fence, fullRun('r'))
      expect(await append(log, fence, warned)).toMatchObject({ entries: 1 })
      const output = { content: 'found by r' }
      expect(await readAll(log)).toMatchObject([
        { revision: 1, data: { output } },
        { revision: 2, data: { run: { warnings }, output } },
      ])
      expect(await append(log, fence, warned, fullRun('r'))).toMatchObject({ duplicates: 2 })
    })

    it('takes an empty list of warnings for none', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      await append(log, fence, fullRun('r'))
      const without = runEvent({ run: taskRun('r', 'completed', { warnings: [] }) }, 'webhook')
      expect(await append(log, fence, without)).toMatchObject({ duplicates: 1 })
    })

    it('records the group of a run whose first copy did not name it, and keeps it', async () => {
      const { log } = await open()
      const fence = await log.claim('stream')
      const error = { ref_id: 'ref', message: 'no luck', detail: null }
      const webhook = runEvent({ run: taskRun('r', 'failed', { error, taskgroup_id: null }) }, 'webhook')
      const stream = runEvent({ run: taskRun('r', 'failed', { taskgroup_id: 'tgrp_1' }) }, 'stream')
      await append(log, fence, webhook)
      expect(await append(log, fence, stream)).toMatchObject({ entries: 1 })
      expect(await append(log, fence, webhook)).toMatchObject({ duplicates: 1 })
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
      expect(merged.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toMatchObject([
        { data: { run: { run_id: 'r', ...run } } },
        { data: { run: { run_id: 's', ...run } } },
      ])
    })
  })
}
