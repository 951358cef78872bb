import { equal, hasLength, matches, same } from './checks.ts'
import type { ResearchEvent } from '../../../protocol/event.ts'
import { change, fullRun } from './events.ts'
import { append, idsOf, readAll } from './fixture.ts'
import type { Area } from './area.ts'

/** Anything as an event, as a caller without types may have it. */
function untyped(value: unknown): ResearchEvent {
  const { event }: { event: ResearchEvent } = Object.assign(JSON.parse('{}'), { event: value })
  return event
}

/** What a service or a caller without types may append. */
export function testHostileEvents({ describe, it, open }: Area): void {
  describe('hostile events', () => {
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
      matches(await append(log, fence, ...events), { entries: ids.length, duplicates: 0 })
      matches(await append(log, fence, ...events), { entries: 0, duplicates: ids.length })
      equal(idsOf(await readAll(log)), ids)
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
      matches(await append(log, fence, ...events), { entries: events.length, duplicates: 0 })
    })

    it('gives back every JSON value as it was', async () => {
      const { log } = await open()
      const data: unknown = JSON.parse(
        '{"__proto__":{"polluted":true},"constructor":1,"":null,"a\\u0000b":"\\u0000\\ud800","n":[-0.5,1e300,[]],"deep":{"__proto__":[1]}}',
      )
      await append(log, await log.claim('stream'), hostile('1', data))
      const [entry] = await readAll(log)
      same(JSON.stringify(entry?.data), JSON.stringify(data))
      same(Object.getPrototypeOf(entry?.data), Object.prototype)
      same(Object.hasOwn({}, 'polluted') || 'polluted' in {}, false)
    })

    it('overwrites fields of an event that have the names of its own', async () => {
      const { log } = await open()
      const event = { ...change('1'), position: 'p', recorded: 'never', revision: 99, backfill: 'yes' }
      await append(log, await log.claim('stream'), event)
      const [entry] = await readAll(log)
      matches(entry, { recorded: 1_000, revision: 1, backfill: false })
      equal(await readAll(log, entry?.position), [])
    })

    it('takes runs without a run', async () => {
      const { log } = await open()
      const run = fullRun('r')
      const malformed = [null, undefined, [], 'run', { run: null }, { run: [], output: 1 }, {}].map(
        (data, i) => untyped({ ...run, id: `m${i}`, data }),
      )
      const fence = await log.claim('stream')
      await append(log, fence, ...malformed)
      matches(await append(log, fence, ...malformed), { duplicates: malformed.length })
      // A sound duplicate is more complete, and there is nothing to merge.
      await append(log, fence, ...malformed.map(({ id }) => ({ ...run, id })))
      hasLength(
        (await readAll(log)).filter(({ revision }) => revision === 2),
        malformed.length,
      )
    })
  })
}
