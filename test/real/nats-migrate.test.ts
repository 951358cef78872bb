import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import * as fc from 'fast-check'
import { openLog } from 'rivulet/log'
import { find, lastValueFrom } from 'rxjs'
import type { Entry } from 'rivulet/log'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { LogServerError } from '../../src/log/errors.ts'
import { migrateLog } from '../../src/log/copy/migrate.ts'
import { natsStore } from '../../src/log/nats/index.ts'
import type { NatsStoreOptions } from '../../src/log/nats/index.ts'
import { exactlyOnce, sqliteEffects, sqliteStore } from '../../src/log/sqlite/index.ts'
import type { LogStore } from '../../src/log/store/contract.ts'
import type { CopiedEntry, CopyStore } from '../../src/log/store/copy-store.ts'
import { append, readAll } from '../log/conformance/fixture.ts'
import { scratchEffects } from '../log/effects/scratch-effects.ts'
import { contentOf } from '../log/migration/content.ts'
import { CONSUMER, Historian, histories, PROCESS, STREAM, VIEW } from '../log/migration/history.ts'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import { change } from '../operators/events.ts'
import type { MigratingSettings } from './nats/migrating-process.ts'
import { NatsServer } from './nats/server.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

const READERS = [CONSUMER, PROCESS, VIEW, STREAM]

let server: NatsServer
let moves = 0

beforeAll(async () => {
  server = await NatsServer.start()
})

afterAll(() => server.remove())

describe('migrateLog', () => {
  it('makes the same log of a file on a server and back, and of a log on a server in a file and back', async () => {
    const folder = scratchFolder()
    let count = 0
    await fc.assert(
      fc.asyncProperty(histories, fc.boolean(), async (steps, isOnServer) => {
        let now = 1_000
        const clock = () => (now += 7)
        const file = () => sqliteStore(join(folder, `${++count}.db`), { clock })
        const onServer = () =>
          natsStore({ servers: server.url, name: `log-${++count}`, clock, partitions: 4 })
        const [first, second] = isOnServer ? [onServer, file] : [file, onServer]
        const logs = [first(), second(), first()]
        const [from, there, back] = logs
        if (from === undefined || there === undefined || back === undefined) return
        const { events, webhooks } = await new Historian(from).run(steps)
        const migrated = await migrateLog(from, there)
        const content = await contentOf(from, [STREAM, CONSUMER], READERS)
        expect(await contentOf(there, [STREAM, CONSUMER], READERS)).toEqual(content)
        expect(await migrateLog(there, back)).toEqual(migrated)
        expect(await contentOf(back, [STREAM, CONSUMER], READERS)).toEqual(content)

        const fences = await Promise.all(logs.map((log) => log.claim('another')))
        // Of entries that were forgotten and would be trimmed by now, a file no longer knows that nothing follows from them.
        const replayed = isOnServer ? events.filter(({ cause }) => cause === undefined) : events
        for (let at = 0; at < replayed.length; at += 100) {
          const entries = replayed.slice(at, at + 100).map((event) => newEntry(event))
          const appended = await Promise.all(
            logs.map((log, index) => {
              const fence = fences[index] ?? { name: '', token: 0 }
              return log.append([{ fence, expect: null, entries }])
            }),
          )
          expect(appended.map((each) => each.entries)).toEqual(logs.map(() => appended[0]?.entries))
        }
        for (const id of webhooks) {
          for (const log of logs) {
            expect(await log.inbox.put({ id, timestamp: 0, payload: {} }, '{}')).toBe('duplicate')
          }
        }
        await Promise.all(logs.map((log) => log.close()))
      }),
      { numRuns: 6 },
    )
  })

  it('goes on with consumers, processes and recorders exactly where they were', async () => {
    const folder = scratchFolder()
    const file = () => sqliteStore(join(folder, 'log.db'))
    const onServer = () => natsStore({ servers: server.url, name: 'going-on' })
    const seen: string[] = []
    const totals: number[] = []
    const acknowledged: number[] = []
    /** Records some changes, and consumes all but the last five of them: those are acknowledged out of order. */
    const use = async (store: LogStore, from: number, until: number) => {
      await using log = await openLog(store)
      const fence = await store.claim('stream')
      const position = await store.streamPositions(['stream'])
      // The service sends the last ones again.
      const events = Array.from({ length: until - from + 10 }, (_, n) =>
        change(`e${Math.max(0, from - 10) + n}`),
      )
      const { entries } = await store.append([
        {
          fence,
          expect: position[0] ?? null,
          position: String(until),
          entries: events.slice(0, until - Math.max(0, from - 10)).map((event) => newEntry(event)),
        },
      ])
      expect(entries).toBe(until - from)
      const open = until - 5
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const consumer = log.consume(
        'billing',
        { types: ['monitor.event_stream'], concurrency: 8, drainTimeout: 100 },
        async ({ id }, signal) => {
          const number = Number(id.slice(1))
          // What is open at the end is handled after the migration.
          if (number >= open && number % 2 === 0) return untilAborted(signal)
          seen.push(id)
          if (number === open - 1) resolve()
        },
      )
      consumer.done.catch(reject)
      await promise
      const process = log.process<number>('totals', {
        version: 1,
        key: ({ via }) => (via === 'process' ? undefined : 'all'),
        init: () => 0,
        event: (count, _, context) => context.set(count + 1),
      })
      const state = log.state<number>('totals')
      await lastValueFrom(state.changes().pipe(find(({ state: count }) => count === until)))
      totals.push((await state.get('all')) ?? 0)
      await process.stop()
      await consumer.stop().catch(() => {})
      acknowledged.push((await store.reader('consumer:billing'))?.acknowledged.length ?? 0)
    }
    await use(file(), 0, 40)
    await migrateLog(file(), onServer())
    await use(onServer(), 40, 80)
    const back = () => sqliteStore(join(folder, 'back.db'))
    await migrateLog(onServer(), back())
    await use(back(), 80, 120)

    expect(totals).toEqual([40, 80, 120])
    expect(Math.min(...acknowledged)).toBeGreaterThan(0)
    const numbers = seen.map((id) => Number(id.slice(1)))
    expect(numbers.filter((each) => each < 115).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 115 }, (_, n) => n),
    )
  })

  it('makes a consumer that is shared among partitions one reader where the new log has others', async () => {
    const folder = scratchFolder()
    const store = natsStore({ servers: server.url, name: 'shared', partitions: 4 })
    const monitors = Array.from({ length: 8 }, (_, n) => `m${n}`)
    const fence = await store.claim('stream')
    const changes = Array.from({ length: 80 }, (_, n) => change(`e${n}`, monitors[n % 8]))
    await append(store, fence, ...changes)
    const log = await openLog(store)
    const seen: string[] = []
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const isOpen = (id: string) => Number(id.slice(1)) % 8 < 3 && Number(id.slice(1)) > 40
    const shared = log.consume(
      'archive',
      { share: true, concurrency: 20, drainTimeout: 100, startAt: 'start' },
      async ({ id }, signal) => {
        if (isOpen(id)) return untilAborted(signal)
        seen.push(id)
        if (seen.length === changes.filter((each) => !isOpen(each.id)).length) resolve()
      },
    )
    shared.done.catch(reject)
    await promise
    await shared.stop().catch(() => {})
    const names = (await store.retention.stats()).readers.map(({ name }) => name)
    expect(names.filter((name) => name.startsWith('consumer.')).length).toBeGreaterThan(1)
    await log.close()

    const moved = natsStore({ servers: server.url, name: 'shared' })
    const target = sqliteStore(join(folder, 'whole.db'))
    await migrateLog(moved, target)
    await using whole = await openLog(target)
    expect((await whole.stats()).readers.map(({ name }) => name)).toEqual(['archive'])
    const rest = Promise.withResolvers<void>()
    const consumer = whole.consume('archive', {}, ({ id }) => {
      seen.push(id)
      if (seen.length >= changes.length) rest.resolve()
    })
    consumer.done.catch(rest.reject)
    await rest.promise
    await consumer.stop()
    expect(seen.toSorted()).toEqual(changes.map(({ id }) => id).toSorted())
  })

  it.each([
    ['a file', 'a server', false],
    ['a server', 'a file', false],
    ['a server', 'a server of as many partitions', true],
    ['a server', 'a server of other partitions', true],
    ['a server', 'a file, where it is one reader', true],
  ])('moves a consumer with exactlyOnce along, from %s to %s (shared: %s)', async (from, to, share) => {
    const folder = scratchFolder()
    const name = `effects-${++moves}`
    const partitions = (place: string) => (place.endsWith('other partitions') ? 3 : 4)
    const open = (place: string, role: string) =>
      place.startsWith('a file')
        ? sqliteStore(join(folder, `${role}.db`))
        : natsStore({ servers: server.url, name: `${name}-${role}`, partitions: partitions(place) })
    const { database, insert, effects } = scratchEffects(folder)
    const record = async (store: LogStore, first: number, last: number) => {
      const fence = await store.claim('stream')
      const numbers = Array.from({ length: last - first }, (_, n) => first + n)
      await append(store, fence, ...numbers.map((n) => change(String(n), `m${n % 8}`)))
      await store.release(fence)
    }
    /** Consumes until so many effects are there. */
    const consume = async (store: LogStore, count: number, isLast: boolean) => {
      await using log = await openLog(store)
      const { promise, resolve } = Promise.withResolvers<void>()
      const isHeld = (id: string) => !isLast && Number(id) % 7 === 3
      const isRefused = (id: string) => !isLast && Number(id) % 9 === 4
      const job = log.consume(
        'ledger',
        { share, deadLetters: 'log', concurrency: 50, drainTimeout: 10 },
        exactlyOnce(database, {
          prepare: async ({ id }: Entry, signal) => (isHeld(id) ? untilAborted(signal) : undefined),
          effect: ({ id }: Entry) => {
            if (isRefused(id)) throw Object.assign(new Error(id), { retryable: false })
            insert.run(id)
            if (effects().length >= count) resolve()
          },
        }),
      )
      await Promise.race([promise, job.done])
      const expected = isLast ? 0 : refused
      while ((await log.deadLetters('ledger').count()) < expected) await turn()
      await job.stop().catch(() => {})
      if (!isLast) await log.deadLetters('ledger').redeliver('all')
    }
    const all = Array.from({ length: 60 }, (_, n) => n)
    const held = all.filter((n) => n < 50 && n % 7 === 3).length
    const refused = all.filter((n) => n < 50 && n % 9 === 4 && n % 7 !== 3).length
    const source = open(from, 'old')
    await record(source, 0, 50)
    await consume(source, 50 - held - refused, false)

    const { deadLetters } = await migrateLog(open(from, 'old'), open(to, 'new'), {
      effects: [sqliteEffects(database)],
    })
    expect(deadLetters).toBe(refused)
    const target = open(to, 'new')
    await record(target, 50, 60)
    await consume(target, 60, true)
    expect(
      effects()
        .map(Number)
        .toSorted((a, b) => a - b),
    ).toEqual(all)
    await using log = await openLog(open(to, 'new'))
    expect(await log.deadLetters('ledger').count()).toBe(0)
    await using before = await openLog(open(from, 'old'))
    const again = before.consume('ledger', { share }, exactlyOnce(database, { effect: () => {} }))
    await expect(again.done).rejects.toMatchObject({
      name: expect.stringMatching(/LogPositionError|EffectError/),
    })
  })

  it('leaves no log where it is killed, and begins anew', async () => {
    const folder = scratchFolder()
    const path = join(folder, 'log.db')
    const file = sqliteStore(path)
    const fence = await file.claim('stream')
    for (let at = 0; at < 1_000; at += 200) {
      await append(file, fence, ...Array.from({ length: 200 }, (_, n) => change(`e${at + n}`)))
    }
    await file.release(fence)
    const onServer = (more: Partial<NatsStoreOptions> = {}) =>
      natsStore({ servers: server.url, name: 'killed', lease: 1_000, ...more })
    await killedWhile({ from: { file: path }, to: { name: 'killed' } })

    for (const create of [true, false]) {
      const error = await onServer({ create })
        .positionAt('end')
        .catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(LogServerError)
      expect(error).toMatchObject({ message: expect.stringContaining('a copy that was not finished') })
    }
    await expect(migrateLog(onServer(), sqliteStore(join(folder, 'of-it.db')))).rejects.toThrow(
      'not finished',
    )
    // Until its lease has run out, the other one may be at work.
    const there = await vi.waitFor(() => migrateLog(file, onServer()), { timeout: 60_000, interval: 200 })
    expect(there).toMatchObject({ entries: 1_000 })
    expect((await readAll(onServer())).map(({ id }) => id)).toEqual((await readAll(file)).map(({ id }) => id))
    // It is a log now, and no place for another one.
    await expect(migrateLog(file, onServer())).rejects.toThrow('is not empty')

    const target = join(folder, 'back.db')
    await killedWhile({ from: { name: 'killed' }, to: { file: target } })
    expect(existsSync(target)).toBe(false)
    expect(await migrateLog(onServer(), sqliteStore(target))).toEqual(there)
    expect(await readAll(sqliteStore(target))).toHaveLength(1_000)
    expect(readdirSync(folder).filter((name) => name.includes('unfinished'))).toEqual([])
  })

  it('keeps out of the new log what a migration still sends that was suspended for longer than its lease', async () => {
    const file = sqliteStore(join(scratchFolder(), 'log.db'))
    const fence = await file.claim('stream')
    await append(file, fence, ...Array.from({ length: 20 }, (_, n) => change(`e${n}`)))
    await file.release(fence)
    const settings = { servers: server.url, name: 'suspended', lease: 60_000 }
    const source = await copyable(file).source()
    const entries: CopiedEntry[] = []
    for await (const page of source.entries()) entries.push(...page)
    const suspended = await copyable(natsStore(settings)).target()
    await suspended.begin(source.head)
    await suspended.addEntries(entries.slice(0, 10))
    await source.close()
    const nats = await connect({ servers: server.url })
    const { streams } = await jetstreamManager(nats)
    await streams.purge('KV_rivulet_suspended_leases')
    await nats.close()

    await migrateLog(file, natsStore(settings))
    await expect(suspended.addEntries(entries.slice(10))).rejects.toThrow('was written to by others')
    await suspended.close()
    expect((await readAll(natsStore(settings))).map(({ id }) => id)).toEqual(
      (await readAll(file)).map(({ id }) => id),
    )
  })

  it('lets no migration finish what another one has begun anew while it was suspended', async () => {
    const settings = { servers: server.url, name: 'begun-anew', lease: 60_000 }
    const suspended = await copyable(natsStore(settings)).target()
    const nats = await connect({ servers: server.url })
    await (await jetstreamManager(nats)).streams.purge('KV_rivulet_begun-anew_leases')
    await nats.close()
    const next = await copyable(natsStore(settings)).target()

    await expect(suspended.finish()).rejects.toThrow('created anew')
    await suspended.close()
    await expect(natsStore(settings).positionAt('end')).rejects.toThrow('not finished')
    await next.close()
  })

  it('refuses a log on a server that is in use or written to meanwhile, and takes one that was opened only', async () => {
    const folder = scratchFolder()
    const onServer = natsStore({ servers: server.url, name: 'used', owner: 'the recorder' })
    const fence = await onServer.claim('stream')
    await append(onServer, fence, change('1'))
    const target = (name: string) => sqliteStore(join(folder, `${name}.db`))
    await expect(migrateLog(onServer, target('claimed'))).rejects.toMatchObject({
      name: 'LogInUseError',
      owner: 'the recorder',
    })
    await onServer.release(fence)
    const written = migrateLog(onServer, target('written'), {
      onProgress(copied) {
        if (copied > 0) writing = onServer.claim('another')
      },
    })
    let writing: Promise<unknown> = Promise.resolve()
    await expect(written).rejects.toThrow('was written to while it was copied')
    await writing
    expect(readdirSync(folder)).toEqual([])
    await onServer.close()

    const opened = natsStore({ servers: server.url, name: 'opened' })
    await opened.positionAt('end')
    await migrateLog(natsStore({ servers: server.url, name: 'used' }), opened)
    expect(await readAll(natsStore({ servers: server.url, name: 'opened' }))).toHaveLength(1)
    // It has the partitions with which it was created.
    const divided = natsStore({ servers: server.url, name: 'divided', partitions: 8 })
    await divided.positionAt('end')
    await divided.close()
    await migrateLog(
      natsStore({ servers: server.url, name: 'used' }),
      natsStore({ servers: server.url, name: 'divided' }),
    )
    const again = natsStore({ servers: server.url, name: 'divided', partitions: 8 })
    expect(await readAll(again)).toHaveLength(1)
    // An open log that was there before does not take its positions for those of the new one.
    await expect(opened.positionAt('start')).rejects.toThrow('open it again')
  })
})

function copyable(log: LogStore): CopyStore {
  const found = log.copying
  if (found === undefined) throw new Error('the log can be copied')
  return found
}

/** Runs a migration in a process of its own, which kills itself in the middle. */
async function killedWhile(migration: Omit<MigratingSettings, 'servers'>): Promise<void> {
  const settings: MigratingSettings = { servers: server.url, ...migration }
  const child = fork(join(import.meta.dirname, 'nats/migrating-process.ts'), [JSON.stringify(settings)], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  const [, signal] = await once(child, 'exit')
  expect(signal).toBe('SIGKILL')
}

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })
}
