import { readFileSync } from 'node:fs'
import { gapEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it } from 'vitest'
import { append } from '../log/append.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const LOG = read('docs/reference/log.md')

/** A row of a table: the names in its first cell, its last cell, and those between. */
interface Row {
  readonly names: readonly string[]
  readonly between: string
  readonly last: string
}

/** The rows of the tables between two texts of a page. */
function rowsOf(page: string, from: string, to: string): Row[] {
  const start = page.indexOf(from)
  const part = page.slice(start, page.indexOf(to, start + from.length))
  return part.split('\n').flatMap((line) => {
    const [, first, ...cells] = line.split('|').map((cell) => cell.trim())
    if (first?.startsWith('`') !== true) return []
    const names = Array.from(first.matchAll(/`(\w+)[^`]*`/g), ([, name = '']) => name)
    return [{ names, between: cells.slice(0, -2).join(' '), last: cells.at(-2) ?? '' }]
  })
}

const namesOf = (rows: readonly Row[]) => rows.flatMap(({ names }) => names).toSorted()

/** The options that a call knows, by its error for one that it does not know. */
function known(call: (options: object) => unknown): string[] {
  try {
    call({ thisIsNoOptionAtAll: true })
  } catch (error) {
    return (/known are ([\w, ]+)/.exec(String(error))?.[1] ?? '').split(', ').toSorted()
  }
  throw new TypeError('it takes any option')
}

/** The numbers that doc comments in a file give as defaults, by the name of the option. */
function defaultsIn(file: string): ReadonlyMap<string, string> {
  const members = read(file).matchAll(/\/\*\*((?:(?!\*\/).)*)\*\/\s*readonly (\w+)\??:/gs)
  return new Map(
    Array.from(members).flatMap(([, doc = '', name = '']) => {
      const [, figure] = /[Dd]efault:? ([\d,]*\d)\b/.exec(doc.replaceAll(/\s+\*?\s*/g, ' ')) ?? []
      return figure === undefined ? [] : [[name, figure] as const]
    }),
  )
}

/** The rows whose default is another one than in the code. */
function wrongDefaults(rows: readonly Row[], files: readonly string[]) {
  const declared = new Map(files.flatMap((file) => [...defaultsIn(file)]))
  return rows.filter(({ names, last }) =>
    names.some((name) => declared.has(name) && !last.startsWith(declared.get(name) ?? '')),
  )
}

const consumer = rowsOf(LOG, 'The log stores the position of the consumer', '### Acknowledging')
const process = rowsOf(LOG, '`log.process(name, options)`', '| `context`')

describe('the tables of docs/reference/log.md have all that there is, and nothing else:', () => {
  it('the options of the stores', () => {
    const stores = rowsOf(LOG, '### Options of a store', '### Options of `natsStore`')
    const names = new Set([...known(memoryStore), ...known((options) => sqliteStore('log.db', options))])
    expect([...new Set(namesOf(stores))]).toEqual([...names].toSorted())
  })

  it('the options of a consumer', async () => {
    await using log = await openLog(memoryStore())
    expect(namesOf(consumer)).toEqual(known((options) => log.consume('name', options)))
  })

  it('the options of a process', async () => {
    await using log = await openLog(memoryStore())
    const functions = { version: 1, key: () => 'key', init: () => 0, event: () => {} }
    expect(namesOf(process)).toEqual(known((options) => log.process('name', { ...functions, ...options })))
  })

  it('the options of retention', async () => {
    const rows = rowsOf(LOG, '## Keeping and deleting', '- **A reader keeps')
    const refused = await openLog(memoryStore(), { retention: Object({ none: 1 }) }).catch(String)
    expect(refused).toContain(`known are ${namesOf(rows).join(', ')}`)
  })

  it('the numbers of a log and of a reader', async () => {
    await using log = await openLog(memoryStore())
    const consuming = log.consume('name', () => {})
    await expect.poll(async () => (await log.stats()).readers).toHaveLength(1)
    const stats = await log.stats()
    await consuming.stop()
    expect(namesOf(rowsOf(LOG, '`log.stats()` takes', '| Field of a reader'))).toEqual(
      Object.keys(stats).toSorted(),
    )
    expect(namesOf(rowsOf(LOG, '| Field of a reader', '[Metrics]'))).toEqual(
      Object.keys(stats.readers[0] ?? {}).toSorted(),
    )
  })

  it('the methods of dead letters and of a state', async () => {
    await using log = await openLog(memoryStore())
    expect(namesOf(rowsOf(LOG, '## Dead letters', '## Processes'))).toEqual(
      Object.keys(log.deadLetters('name')).toSorted(),
    )
    const state = Object.getOwnPropertyNames(Object.getPrototypeOf(log.state('name')))
    expect(namesOf(rowsOf(LOG, '`log.state(name)`', 'An old position'))).toEqual(
      state.filter((name) => name !== 'constructor').toSorted(),
    )
  })

  it('the actions of a function of a process', async () => {
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
    const actions = namesOf(rowsOf(LOG, '| `context`', 'The result is a job'))
    expect(actions).toContain('timer')
    expect(await promise).toEqual(expect.arrayContaining(actions.filter((name) => name !== 'context')))
  })

  it('the defaults in numbers', () => {
    expect(
      wrongDefaults(
        [...consumer, ...process],
        ['src/log/consume/consumer-options.ts', 'src/streams/process-functions.ts'],
      ),
    ).toEqual([])
    expect(
      wrongDefaults([{ names: ['retries'], between: '', last: '5' }], ['operators/deliver.ts']),
    ).toHaveLength(1)
  })
})

describe('the table of natsStore in docs/reference/log.md', () => {
  const options = rowsOf(LOG, '### Options of `natsStore`', 'With TLS')

  it('has each option of natsStore', () => {
    const server = { servers: 'nats://localhost:4222', name: 'log' }
    expect(namesOf(options)).toEqual(known((more) => natsStore({ ...server, ...more })))
  })

  it('has its defaults', () => {
    expect(wrongDefaults(options, ['src/log/nats/index.ts'])).toEqual([])
  })
})
