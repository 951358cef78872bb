import type { ResearchEvent } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { LogValueError } from '../../../src/log/errors.ts'
import { change, fullRun } from '../../operators/events.ts'
import { append, entriesOf, idsOf, readAll } from './fixture.ts'
import type { Open } from './fixture.ts'

/** Anything as an event, as a caller without types may have it. */
function untyped(value: unknown): ResearchEvent {
  const { event }: { event: ResearchEvent } = Object.assign(JSON.parse('{}'), { event: value })
  return event
}

/** What a service or a caller without types may append. */
export function describeHostileEvents(name: string, open: Open): void {
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
        ...[
          undefined,
          null,
          'event',
          [event],
          { ...event, toJSON: () => undefined },
          { ...event, toJSON: () => 'text' },
          { ...event, toJSON: () => change('3') },
        ].map(untyped),
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
}
