import { gapEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it } from 'vitest'
import { memberNames } from '../../build/tables/interfaces.ts'
import { append } from '../log/append.ts'
import { namesIn, rowsOf } from '../support/markdown-table.ts'

const LOG = 'docs/reference/log.md'
const PROCESSES = 'docs/reference/processes.md'

/** The names in the first column of a table, sorted. */
const namesOf = (page: string, column: string, section?: string) =>
  rowsOf(page, column, section)
    .flatMap(([names]) => namesIn(names))
    .toSorted()

describe('the tables of the pages about the log and processes have all that there is, and nothing else:', () => {
  it('the numbers of a log and of a reader', async () => {
    await using log = await openLog(memoryStore())
    const consuming = log.consume('name', () => {})
    await expect.poll(async () => (await log.stats()).readers).toHaveLength(1)
    const stats = await log.stats()
    await consuming.stop()
    expect(namesOf(LOG, 'Field', 'Numbers')).toEqual(Object.keys(stats).toSorted())
    expect(namesOf(LOG, 'Field of a reader')).toEqual(Object.keys(stats.readers[0] ?? {}).toSorted())
  })

  it('the methods of dead letters and of a state', () => {
    expect(namesOf(LOG, 'Method', 'Dead letters')).toEqual(memberNames('DeadLetterQueue'))
    expect(namesOf(PROCESSES, 'Method')).toEqual(memberNames('ProcessState'))
  })

  it('the actions of a function of a process', async () => {
    expect(namesOf(PROCESSES, '`context`')).toEqual(memberNames('ProcessContext'))

    const { promise, resolve } = Promise.withResolvers<string[]>()
    const store = memoryStore()
    await append(store, [
      gapEvent('/v1/monitors/m', { from: null, to: null, reason: 'expired' }, 'poll', 'key'),
    ])
    await using log = await openLog(store)
    log.process('name', {
      version: 1,
      key: () => 'key',
      init: () => 0,
      event: (_state, _entry, context) => {
        const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(context))
        resolve(methods.filter((name) => name !== 'constructor').concat(Object.keys(context)))
      },
    })
    expect(await promise).toEqual(expect.arrayContaining(memberNames('ProcessContext')))
  })
})

describe('the options that a store takes', () => {
  const server = { servers: 'nats://localhost:4222', name: 'log' }

  it.each([
    ['MemoryStoreOptions', (options: object) => memoryStore(options)],
    ['SqliteStoreOptions', (options: object) => sqliteStore('log.db', options)],
    ['NatsStoreOptions', (options: object) => natsStore({ ...server, ...options })],
  ])('are those of its interface: %s', (name, store) => {
    const known = memberNames(name).join(', ')
    expect(() => store({ thisIsNoOptionAtAll: true })).toThrow(new RegExp(`known are ${known}$`))
  })
})
