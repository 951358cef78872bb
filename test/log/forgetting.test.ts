import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { ProcessOptions } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { SqliteLogStore } from '../../src/log/sqlite/store.ts'
import { tickAt } from '../support/ticks.ts'
import { change } from '../operators/events.ts'
import { append } from './append.ts'
import { readAll } from './conformance/fixture.ts'
import { scratchFile } from './sqlite/scratch.ts'

type Clock = () => number

const STORES: readonly (readonly [string, (clock: Clock) => LogStore])[] = [
  ['in memory', (clock) => memoryStore({ clock })],
  ['in a file', (clock) => new SqliteLogStore(scratchFile(), { owner: 'test', clock })],
]

const GONE = '/v1/monitors/gone'
const KEPT = '/v1/monitors/kept'

const tick = (at: number): ResearchEvent => ({ ...tickAt(at), id: `tick:${at}` })

interface Count {
  readonly seen: number
}

/** Counts the entries of each source, appends the count, and again at 1,000 ms. */
const counting: ProcessOptions<Count> = {
  version: 1,
  key: ({ source, type }) => (type === 'log.tick' || source.startsWith('/processes') ? undefined : source),
  init: () => ({ seen: 0 }),
  event: ({ seen }, _entry, context) => {
    context.set({ seen: seen + 1 })
    context.append({ type: 'unknown', data: [context.key, seen + 1] })
    if (context.now() < 1_000) context.timer('t', 1_000)
  },
  timer: ({ seen }, due, context) => context.append({ type: 'unknown', data: [context.key, seen, due] }),
}

/** Repeats what the other process appends. */
const repeating: ProcessOptions<Count> = {
  version: 1,
  key: ({ source }) => (source === '/processes/counting' ? source : undefined),
  init: () => ({ seen: 0 }),
  event: (_state, { data }, context) => context.append({ type: 'unknown', data }),
}

describe.each(STORES)('a process after a source was forgotten, %s', (_name, open) => {
  async function ran() {
    const clock = { now: 0 }
    const store = open(() => clock.now)
    const log = await openLog(store)
    onTestFinished(() => log.close())
    const caughtUp = async () => {
      const isBehind = async (name: string) =>
        (await store.reader(`process:${name}`))?.cursor !== (await store.positionAt('end'))
      while ((await isBehind('counting')) || (await isBehind('repeating'))) await turn()
    }
    const output = async () =>
      (await readAll(store)).filter(({ via }) => via === 'process').map(({ source, data }) => [source, data])
    const first = log.process('counting', counting)
    log.process('repeating', repeating)
    await append(store, [change('1', 'kept'), change('1', 'gone'), change('2', 'kept'), change('2', 'gone')])
    await caughtUp()
    return { clock, store, log, first, caughtUp, output }
  }

  it('that goes on brings nothing of it back, and loses and repeats nothing else', async () => {
    const { clock, store, log, caughtUp, output } = await ran()
    const before = [await store.reader('process:counting'), await store.reader('process:repeating')]
    expect(await log.forget({ source: GONE })).toEqual({ entries: 6, processes: ['counting'] })
    expect([await store.reader('process:counting'), await store.reader('process:repeating')]).toEqual(before)
    const left = [
      ['/processes/counting', [KEPT, 1]],
      ['/processes/counting', [KEPT, 2]],
      ['/processes/repeating', [KEPT, 1]],
      ['/processes/repeating', [KEPT, 2]],
    ]
    expect(await output()).toEqual(left)
    clock.now = 2_000
    await append(store, [tick(clock.now), change('3', 'kept')])
    await caughtUp()
    const added = [
      [KEPT, 2, 1_000],
      [KEPT, 3],
    ]
    expect(await output()).toEqual([
      ...left,
      ...['counting', 'repeating'].flatMap((name) => added.map((data) => [`/processes/${name}`, data])),
    ])
  })

  it.each<[string, Pick<ProcessOptions<Count>, 'key' | 'event'>]>([
    ['key', { key: ({ source }) => source, event: (_state, _entry, context) => context.timer('t', 5_000) }],
    [
      'name',
      { key: () => 'all', event: (_state, { source }, context) => context.timer(`about ${source}`, 5_000) },
    ],
    [
      'data',
      {
        key: () => 'all',
        event: (_state, { source }, context) => {
          if (source === KEPT) context.timer('t', 5_000, { data: [{ about: GONE }] })
        },
      },
    ],
    // The last entry that has set it is the cause of what it does.
    ['cause', { key: () => 'all', event: (_state, _entry, context) => context.timer('t', 5_000) }],
  ])('is named where a timer alone mentions the source, by its %s', async (_by, functions) => {
    const store = open(() => 0)
    const log = await openLog(store)
    onTestFinished(() => log.close())
    log.process('waiting', { version: 1, init: () => ({ seen: 0 }), timer: () => {}, ...functions })
    await append(store, [change('1', 'kept'), change('1', 'gone')])
    const end = await store.positionAt('end')
    while ((await store.reader('process:waiting'))?.cursor !== end) await turn()
    expect(await log.forget({ source: GONE })).toEqual({ entries: 1, processes: ['waiting'] })
    expect(await log.forget({ source: '/v1/monitors/unknown' })).toEqual({ entries: 0, processes: [] })
  })

  it('that is built again has nothing of it, and repeats nothing', async () => {
    const { clock, store, log, first, caughtUp, output } = await ran()
    await first.stop()
    await log.forget({ source: GONE })
    const left = await output()
    const again = log.process('counting', { ...counting, version: 2, rebuild: true })
    await caughtUp()
    clock.now = 2_000
    await append(store, [tick(clock.now), change('3', 'kept')])
    await caughtUp()
    expect([...(await again.snapshot()).state]).toEqual([[KEPT, { seen: 3 }]])
    expect((await output()).slice(left.length)).toEqual([
      ['/processes/counting', [KEPT, 2, 1_000]],
      ['/processes/counting', [KEPT, 3]],
      ['/processes/repeating', [KEPT, 2, 1_000]],
      ['/processes/repeating', [KEPT, 3]],
    ])
    expect((await output()).slice(0, left.length)).toEqual(left)
  })
})
