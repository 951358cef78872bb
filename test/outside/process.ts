/** A user's process: opens the log and does what its roles say, until it is ended. It reports what it sees into its journal. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { ArgumentError, createClient } from 'rivulet'
import { LogPositionError, openLog } from 'rivulet/log'
import type { Entry, EventLog } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { natsStore } from 'rivulet/log/nats'
import { realNow } from './clock.ts'
import { failsAtTimes, isHeld, openJournal } from './journal.ts'
import type { EntryLine, ProcessSettings, Role } from './journal.ts'

/** How long a claim on NATS lasts without a sign of life, in ms. */
const LEASE = 1_500

/** The largest states that there may be, in bytes. */
const MAX_STATE_BYTES = 256 * 1024

/** What the process keeps of each source. */
interface Count {
  readonly next: number
  readonly faults: number
}

const settings: ProcessSettings = JSON.parse(process.env['OUTSIDE_PROCESS'] ?? '')
const report = openJournal(settings.journal)
const stopping = new AbortController()
const { signal } = stopping
/** Waits for a name that another process holds. */
const wait = new AbortController().signal

let log: EventLog | undefined
process.on('SIGTERM', () => {
  stopping.abort()
  // One that ends before it has opened the log has nothing to save.
  if (log === undefined) process.exit(0)
  log.close().then(
    () => process.exit(0),
    (error: unknown) => end(error, 'close'),
  )
})
process.on('disconnect', () => process.exit(1))

try {
  log = await open()
  report({ kind: 'open' })
  // It may be killed before its end, where Node would store this.
  flushCompileCache()
  for (const role of settings.roles) {
    const name = 'name' in role ? role.name : role.kind
    start(role, log).catch((error: unknown) => {
      if (!signal.aborted) end(error, name)
    })
  }
} catch (error) {
  end(error, 'open')
}

async function open(): Promise<EventLog> {
  const { retention } = settings
  try {
    return await openLog(storeAt(settings.log, LEASE), { retention })
  } catch (error) {
    // A log that was moved to a server has the lease that the command gives it.
    if (!(error instanceof ArgumentError)) throw error
    return openLog(storeAt(settings.log), { retention })
  }
}

function end(error: unknown, role: string): void {
  const name = error instanceof Error ? error.name : 'none'
  const reason = error instanceof LogPositionError ? error.reason : null
  report({ kind: 'error', role, name, reason, text: String(error) })
  process.exit(1)
}

function storeAt(address: string, lease?: number) {
  if (!address.startsWith('nats:')) return sqliteStore(address)
  const { host, pathname } = new URL(address)
  return natsStore({
    servers: `nats://${host}`,
    name: pathname.slice(1),
    ...(lease && { lease, partitions: 8 }),
  })
}

function start(role: Role, opened: EventLog): Promise<void> {
  switch (role.kind) {
    case 'record':
      return record(opened)
    case 'consume':
      return consume(role, opened)
    case 'effects':
      return apply(role, opened)
    case 'process':
      return count(role, opened)
    case 'read':
      return read(role, opened)
    case 'watch':
      return watch(role.name, opened)
    case 'audit':
      return audit(role, opened)
  }
}

function record(opened: EventLog): Promise<void> {
  const client = createClient({ baseUrl: settings.upstream, apiKey: 'key', initialDelay: 20, maxDelay: 200 })
  const monitors = settings.monitors.map((id) => ({ id, pollInterval: 150 }))
  return opened.record({ client, monitors, wait, tick: 400 }).done
}

function consume({ name, pause, hold, share }: Role & { kind: 'consume' }, opened: EventLog): Promise<void> {
  const options = { concurrency: 4, key: ({ source }: Entry) => source, ...(share ? { share } : { wait }) }
  return opened.consume(name, options, async (entry) => {
    const line = lineOf(name, entry)
    const takes = pause + (line !== undefined && isHeld(line.n) ? hold : 0)
    // It hurries up when it is to stop.
    if (takes > 0) await delay(takes, undefined, { signal }).catch(() => {})
    see(name, entry)
  }).done
}

async function apply(role: Role & { kind: 'effects' }, opened: EventLog): Promise<void> {
  const { name, file, generation, isFailing } = role
  // Another process may have a transaction open, also one that is suspended.
  const database = new DatabaseSync(file, { timeout: 10_000 })
  database.exec('PRAGMA journal_mode = WAL')
  database.exec('CREATE TABLE IF NOT EXISTS effect (source TEXT, n INTEGER, generation INTEGER)')
  const insert = database.prepare('INSERT INTO effect VALUES (?, ?, ?)')
  const effect = (entry: Entry) => {
    const line = lineOf(name, entry)
    if (line === undefined) return
    insert.run(line.source, line.n, generation)
    if (isFailing && failsAtTimes(line.n)) throw new Error('not now')
  }
  const options = { wait, types: ['monitor.event_stream'], deadLetters: 'log', retries: 0 } as const
  const { done } = opened.consume(name, options, exactlyOnce(database, { effect }))
  await Promise.race([done, isFailing ? done : redeliver(name, opened)])
}

async function redeliver(name: string, opened: EventLog): Promise<void> {
  const letters = opened.deadLetters(name)
  for (; !signal.aborted; await delay(200)) if ((await letters.count()) > 0) await letters.redeliver('all')
}

function count({ name, ballast }: Role & { kind: 'process' }, opened: EventLog): Promise<void> {
  return opened.process<Count & { readonly fired: number; readonly ballast: string }>(name, {
    version: 1,
    types: ['monitor.event_stream'],
    key: ({ source }) => source,
    maxStateBytes: MAX_STATE_BYTES,
    init: () => ({ next: 0, faults: 0, fired: 0, ballast: 'x'.repeat(ballast) }),
    event: (state, entry, context) => {
      const line = lineOf(name, entry)
      if (line === undefined) return
      const { next, faults } = state
      context.set({ ...state, next: line.n + 1, faults: faults + (line.n === next ? 0 : 1) })
      context.timer('quiet', entry.recorded + 300)
      report(line)
    },
    timer: (state, _, context) => {
      context.set({ ...state, fired: state.fired + 1 })
      report({ kind: 'timer', role: name, source: context.key, at: realNow() })
    },
    wait,
  }).done
}

async function read({ name, file }: Role & { kind: 'read' }, opened: EventLog): Promise<void> {
  let position: string | undefined
  try {
    position = readFileSync(file, 'utf8')
  } catch {
    report({ kind: 'begun', role: name, because: null })
  }
  while (!signal.aborted) {
    position ??= await opened.positionAt('start')
    try {
      const page = await opened.read(position, { limit: 20 })
      for (const entry of page.entries) see(name, entry)
      position = page.position
      writeFileSync(`${file}.new`, position)
      renameSync(`${file}.new`, file)
      if (page.isEnd) await delay(30)
    } catch (error) {
      if (!(error instanceof LogPositionError)) throw error
      // What a user does whose place is lost.
      report({ kind: 'begun', role: name, because: error.reason })
      position = undefined
    }
  }
}

async function watch(name: string, opened: EventLog): Promise<void> {
  for (let last = ''; !signal.aborted; await delay(10)) {
    const { readers } = await opened.stats()
    const names = readers.map((reader) => reader.name).toSorted()
    if (names.join() !== last) report({ kind: 'readers', role: name, names })
    last = names.join()
  }
}

async function audit(role: Role & { kind: 'audit' }, opened: EventLog): Promise<void> {
  report({ kind: 'begun', role: role.name, because: null })
  for (let position = await opened.positionAt('start'); ;) {
    const page = await opened.read(position, { limit: 1_000 })
    for (const entry of page.entries) see(role.name, entry)
    position = page.position
    if (page.isEnd) break
  }
  const { state } = await opened.state<Count>(role.process).snapshot()
  for (const [source, { next, faults }] of state) report({ kind: 'state', source, next, faults })
  report({ kind: 'done' })
}

function see(name: string, entry: Entry): void {
  const { type, recorded } = entry
  const line = lineOf(name, entry)
  if (line !== undefined) report(line)
  else if (type === 'log.tick') report({ kind: 'tick', role: name, recorded, at: realNow() })
  else if (type === 'log.gap') report({ kind: 'gap', role: name, recorded, at: realNow() })
}

/** Undefined for an entry that is not of the upstream. */
function lineOf(name: string, { type, id, source, recorded, revision }: Entry): EntryLine | undefined {
  if (type !== 'monitor.event_stream') return undefined
  const n = Number(id.slice(id.lastIndexOf('-') + 1))
  return { kind: 'entry', role: name, source, n, revision, recorded, at: realNow() }
}
