/**
 * Counts the files on a way: `npm run ways` lists the files of `src` and `operators` of which a function runs for one event, from V8's
 * coverage. docs/internals/architecture.md draws the ways.
 *
 * Each way begins with an event that a server sends on an open stream. Earlier ones have gone the way already, so that no file is
 * counted for what only happens at the start.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { notifyAlertmanager, defineRules, runRules } from 'rivulet/rules'
import { startServer } from './server.ts'
import type { BenchServer } from './server.ts'

const GROUP = '100x400'
/** How many events go a way before the one that is counted. */
const WARM_UP = 5
/** How long nothing must be written before an event counts as handled, in ms. Commits of cursors are collected for less than that. */
const QUIET = 1_500

const root = resolve(import.meta.dirname, '..')
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
const folder = mkdtempSync(join(tmpdir(), 'rivulet-ways-'))
try {
  const toSubscriber = await watched()
  print('SSE chunk → subscriber of watch', toSubscriber)
  const toAcknowledgement = await recorded()
  const shared = toAcknowledgement.filter((file) => toSubscriber.includes(file))
  print(
    `SSE chunk → recorded into SQLite → consumed and acknowledged (${shared.length} of them on the way above)`,
    toAcknowledgement,
  )
  print('entry that another process has recorded → rule → Alertmanager', await notified())
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function watched(): Promise<readonly string[]> {
  await using server = await startServer('metronome')
  let received = Promise.withResolvers<void>()
  const subscription = clientOf(server)
    .watch({ taskGroups: [GROUP] })
    .subscribe(() => received.resolve())
  await received.promise
  return await filesOf(server, async (send) => {
    received = Promise.withResolvers()
    send()
    await received.promise
    return true
  }).finally(() => subscription.unsubscribe())
}

async function recorded(): Promise<readonly string[]> {
  await using server = await startServer('metronome')
  const file = join(folder, 'recorded.db')
  await using log = await openLog(sqliteStore(file))
  let handled = 0
  log.consume('reader', { types: ['task_run.state'] }, () => {
    handled += 1
  })
  log.record({ client: clientOf(server), taskGroups: [GROUP], tick: Infinity })
  return await filesOf(server, async (send) => {
    const before = handled
    await quietAfter(file, send)
    return handled > before
  })
}

async function notified(): Promise<readonly string[]> {
  await using server = await startServer('metronome')
  const file = join(folder, 'notified.db')
  await using log = await openLog(sqliteStore(file))
  let posts = 0
  const receiver = createServer((request, response) => {
    request.resume().once('end', () => {
      posts += 1
      response.writeHead(200).end()
    })
  })
  await new Promise<void>((listening) => receiver.listen(0, '127.0.0.1', listening))
  const address = receiver.address()
  if (address === null || typeof address === 'string') throw new Error('the receiver has no port')
  const rule = {
    alert: 'Run',
    on: ['task_run.state' as const],
    when: 'data.run.run_id != ""',
    per: 'event' as const,
  }
  runRules(log, defineRules([rule]), { startAt: 'start' })
  notifyAlertmanager(log, { urls: [`http://127.0.0.1:${address.port}`], minOpen: 0 })
  await using recorder = await startServer('recorder', [server.url, GROUP, file])
  return await filesOf(server, async (send) => {
    const before = posts
    await quietAfter(file, send)
    return posts > before
  }).finally(() => {
    receiver.close()
    receiver.closeAllConnections()
    recorder.process.disconnect()
  })
}

function clientOf({ url }: BenchServer) {
  return createClient({ baseUrl: url, apiKey: 'none' })
}

/** Sends events with `handle`, which resolves with whether one has gone the way, and returns the files of the last one. */
async function filesOf(
  server: BenchServer,
  handle: (send: () => void) => Promise<boolean>,
): Promise<readonly string[]> {
  const send = () => void server.process.send('next')
  for (let event = 0; event < WARM_UP; event++) await handle(send)
  await setTimeout(QUIET)
  await takeFiles()
  if (!(await handle(send))) throw new Error('the event did not reach the end of its way')
  return await takeFiles()
}

/** Resolves when another connection has written to the file after `send`, and then none does for a while. */
async function quietAfter(file: string, send: () => void): Promise<void> {
  using database = new DatabaseSync(file, { readOnly: true })
  const version = database.prepare('PRAGMA data_version')
  const read = () => version.get()?.['data_version']
  let [last, since, isWritten] = [read(), performance.now(), false]
  send()
  while (!isWritten || performance.now() - since < QUIET) {
    await setTimeout(10)
    const now = read()
    if (now === last) continue
    last = now
    since = performance.now()
    isWritten = true
  }
}

/** The files of which a function was called since the last call. */
async function takeFiles(): Promise<readonly string[]> {
  const { result } = await session.post('Profiler.takePreciseCoverage')
  return result
    .filter(
      ({ url, functions }) =>
        url.startsWith('file:') && functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0),
    )
    .map(({ url }) => relative(root, fileURLToPath(url)).replaceAll('\\', '/'))
    .filter((file) => /^(?:operators|src)\//.test(file))
    .toSorted()
}

function print(way: string, files: readonly string[]): void {
  process.stdout.write(`${way}: ${files.length} files\n${files.map((file) => `  ${file}\n`).join('')}\n`)
}
