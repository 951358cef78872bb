import * as fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ResearchEvent } from 'rivulet'
import type { Entry } from '../../src/log/store/contract.ts'
import { openLog } from '../../src/log/event-log/open-log.ts'
import { memoryStore } from '../../src/log/memory/store.ts'
import { ArgumentError } from '../../src/protocol/argument-error.ts'
import { cloudEvent } from '../../src/protocol/cloud-event.ts'
import { change, fullRun } from '../operators/events.ts'
import { append } from './append.ts'
import { idsOf, readAll } from './conformance/fixture.ts'

async function exported(events: readonly ResearchEvent[]) {
  const store = memoryStore()
  const log = await openLog(store)
  onTestFinished(() => log.close())
  await append(store, events)
  const lines = async (options?: Parameters<typeof log.export>[0]) => {
    const found: string[] = []
    for await (const line of log.export(options)) found.push(line)
    return found
  }
  return { store, log, lines }
}

const parsed = (line: string): Record<string, unknown> => JSON.parse(line)
const idsIn = (lines: readonly string[]) => lines.map((line) => parsed(line)['id'])

/** What CloudEvents 1.0 says of an attribute that is a timestamp. */
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** The rules of CloudEvents 1.0 and its JSON format for one event. */
function violations(event: Readonly<Record<string, unknown>>): string[] {
  const found: string[] = []
  for (const [name, value] of Object.entries(event)) {
    if (!/^[a-z0-9]{1,20}$/.test(name)) found.push(`the name ${name}`)
    if (name === 'data') continue
    const isInteger = Number.isInteger(value) && Math.abs(Number(value)) < 2 ** 31
    if (typeof value === 'string') {
      if (!value.isWellFormed() || /\p{Cc}/u.test(value)) found.push(`the characters of ${name}`)
    } else if (typeof value !== 'boolean' && !isInteger) found.push(`the type of ${name}`)
  }
  for (const name of ['specversion', 'id', 'source', 'type'] as const) {
    if (typeof event[name] !== 'string' || event[name] === '') found.push(`${name} is required`)
  }
  if (event['specversion'] !== '1.0') found.push('specversion')
  for (const name of ['time', 'recorded', 'received']) {
    const value = event[name]
    if (name in event && !(typeof value === 'string' && RFC3339.test(value))) found.push(`${name} is no time`)
  }
  return found
}

describe('an export', () => {
  it('is a line of JSON for each entry, with all that the log knows', async () => {
    const { store, lines } = await exported([fullRun('r')])
    const [entry] = await readAll(store)
    if (entry === undefined) throw new Error('no entry')
    const { specversion, datacontenttype, recorded, time, ...rest } = parsed((await lines()).join(''))
    expect([specversion, datacontenttype]).toEqual(['1.0', 'application/json'])
    expect({ ...rest, time: time ?? null, recorded: Date.parse(String(recorded)) }).toEqual(
      JSON.parse(JSON.stringify(entry)),
    )
  })

  it('follows the rules of CloudEvents for every event that a service can send', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '2026-01-01T00:00:00Z', '\0', '\ud800', '\uffff', 'é', ' '),
    })
    const time = fc.oneof(
      text,
      fc.constantFrom(
        null,
        '2026-01-01',
        '2026-13-01T00:00:00Z',
        '2026-01-01T00:00:00+02:00',
        '2026-01-01 00:00:00',
      ),
    )
    const event = fc.record({ time, received: time, cursor: fc.option(text, { nil: undefined }), via: text })
    fc.assert(
      fc.property(event, ({ cursor, ...fields }) => {
        const known = { position: 'e:1', recorded: 1_000, revision: 1, backfill: false }
        const entry = { ...change('1'), ...fields, ...(cursor !== undefined && { cursor }), ...known }
        expect(violations(JSON.parse(JSON.stringify(cloudEvent(entry as Entry))))).toEqual([])
      }),
    )
  })

  it('has the cause of what a process has appended as text', async () => {
    const cause = { process: 'p', source: '/s', id: '1', revision: 1, due: null, hops: 1 }
    const { lines } = await exported([{ ...change('1'), via: 'process', cause } as never])
    const [line = ''] = await lines()
    expect(violations(parsed(line))).toEqual([])
    expect(JSON.parse(String(parsed(line)['cause']))).toEqual(cause)
  })

  it('reads any number of entries, of a range, and of some types', async () => {
    const events = Array.from({ length: 1_234 }, (_, n) => change(`${n}`))
    const { store, lines } = await exported([...events.slice(0, 200), fullRun('r')])
    for (let from = 200; from < events.length; from += 250)
      await append(store, events.slice(from, from + 250))
    const entries = await readAll(store)
    expect(idsIn(await lines())).toEqual(idsOf(entries))
    const [after = '', until = ''] = [entries[99]?.position, entries[899]?.position]
    expect(idsIn(await lines({ after, until }))).toEqual(idsOf(entries.slice(100, 900)))
    expect(idsIn(await lines({ types: ['task_run.state'] }))).toEqual(['r:completed'])
  })

  it('ends with the entries that there are when it begins', async () => {
    const { store, log } = await exported([change('1'), change('2')])
    let count = 0
    for await (const line of log.export()) {
      count += line.endsWith('\n') ? 1 : 0
      await append(store, [change(`more ${count}`)])
    }
    expect(count).toBe(2)
  })

  it('says where entries were deleted before it read them', async () => {
    const { store, log } = await exported([change('1'), change('2')])
    const after = await log.positionAt('start')
    await store.retention.trim({ limit: 1 })
    const types: unknown[] = []
    for await (const line of log.export({ after })) types.push(parsed(line)['type'])
    expect(types).toEqual(['log.gap', 'monitor.event_stream'])
  })

  it('refuses an option that cannot be right', async () => {
    const { log } = await exported([])
    expect(() => log.export({ from: 'x' } as object)).toThrow(ArgumentError)
  })
})
