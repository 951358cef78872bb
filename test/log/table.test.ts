import { setImmediate as turn } from 'node:timers/promises'
import { lastValueFrom, toArray } from 'rxjs'
import type { ResearchEvent } from 'rivulet'
import { ArgumentError } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import { aggregate, count, define, from, keyBy, latestBy, map, tumbling } from 'rivulet/streams'
import { expect, it, onTestFinished } from 'vitest'
import { change } from '../operators/events.ts'
import { append } from './append.ts'

const BEGIN = Date.UTC(2026, 0, 1)

const findings = () =>
  from('monitor.event_stream').pipe(
    map(({ source, id }) => ({ key: source.replace('/v1/monitors/', ''), id })),
    latestBy('latest', ({ key }) => (key === 'empty' ? '' : key)),
  )

const perDay = from('monitor.event_stream').pipe(
  keyBy(({ source }) => source),
  aggregate('per-day', tumbling('1d'), { findings: count() }),
)

/** A change at a second of the day. */
const at = (second: number, id: string, monitor = 'm'): ResearchEvent => ({
  ...change(id, monitor),
  time: new Date(BEGIN + second * 1_000).toISOString(),
})

async function opened() {
  const store = memoryStore()
  const log = await openLog(store)
  onTestFinished(() => log.close())
  const table = findings()
  const definition = define('monitors', { version: 1 }, perDay, table)
  const processed = async () => {
    while ((await store.reader('process:monitors'))?.cursor !== (await store.positionAt('end'))) await turn()
  }
  return { store, log, table, definition, processed }
}

const changesOf = (state: ReturnType<EventLog['table']>, after?: string) =>
  lastValueFrom(state.changes(after, { live: false }).pipe(toArray()))

it('has the item of each key that happened last, and none for another key', async () => {
  const { store, log, table, definition, processed } = await opened()
  const state = log.table(definition, table)
  expect(await state.get('m')).toBeUndefined()
  log.process(definition)
  await append(store, [at(5, 'new'), at(3, 'old'), at(5, 'last'), at(4, 'other', 'n')])
  await processed()
  expect(await state.get('m')).toEqual({ key: 'm', id: 'last' })
  expect(await state.get('n')).toEqual({ key: 'n', id: 'other' })
  expect(await state.get('per-day')).toBeUndefined()
})

it('has an item of an empty key, as keyBy allows it', async () => {
  const { store, log, table, definition, processed } = await opened()
  log.process(definition)
  await append(store, [at(1, 'a', 'empty')])
  await processed()
  expect(await log.table(definition, table).get('')).toEqual({ key: 'empty', id: 'a' })
})

it('gives the changes of the table alone, beside those of other stages, and goes on after each of them', async () => {
  const { store, log, table, definition, processed } = await opened()
  const state = log.table(definition, table)
  log.process(definition)
  await append(store, [at(1, 'a'), at(2, 'b', 'n')])
  await processed()
  const first = await changesOf(state)
  expect(first.map(({ key, item }) => [key, item])).toEqual([
    ['m', { key: 'm', id: 'a' }],
    ['n', { key: 'n', id: 'b' }],
  ])
  await append(store, [at(3, 'c'), at(2, 'late')])
  await processed()
  const after = await Promise.all(first.map(({ position }) => changesOf(state, position)))
  expect(after.map((changes) => changes.map(({ key }) => key))).toEqual([['n', 'm'], ['m']])
  expect(await state.get('m')).toEqual({ key: 'm', id: 'c' })
})

it('gives no changes of a process of functions that has the name of the definition', async () => {
  const { store, log, table, definition, processed } = await opened()
  log.process('monitors', {
    version: 1,
    key: ({ source }) => source,
    init: () => 0,
    event: (n: number, _entry, context) => context.set(n + 1),
  })
  await append(store, [at(1, 'a')])
  await processed()
  expect(await changesOf(log.table(definition, table))).toEqual([])
})

it('refuses a table that the definition does not have, and what is no table', async () => {
  const { log, table, definition } = await opened()
  const sameName = define(
    'other',
    { version: 1 },
    from('monitor.error').pipe(
      keyBy(({ source }) => source),
      aggregate('latest', tumbling('1d'), { errors: count() }),
    ),
  )
  expect(() => log.table(define('other', { version: 1 }, perDay), table)).toThrow(ArgumentError)
  expect(() => log.table(sameName, table)).toThrow(/a table of the definition "other"/)
  for (const given of [undefined, null, {}, 'latest', perDay]) {
    // @ts-expect-error It is no table.
    expect(() => log.table(definition, given)).toThrow(/a table, as `latestBy` makes it/)
  }
  // @ts-expect-error It is no definition.
  expect(() => log.table('monitors', table)).toThrow(/what `define` makes/)
  // @ts-expect-error It is no key.
  await expect(log.table(definition, table).get(1)).rejects.toThrow(ArgumentError)
})
