/**
 * Writes into the log of a folder: `fail` until a sync fails, `fail-and-write` also after that, `go-on` like the next process, and `checkpoint`
 * until SQLite may copy the -wal file by itself. While the folder has the file `fails`, no sync succeeds. It gets copies of the -wal file: `synced` before commits that are not synced, `failed` after
 * the sync that has failed, and `end`. Prints a line of JSON, and waits to be killed.
 */
import { copyFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from 'rivulet/log'
import type { Fence } from 'rivulet/log/store'

import { newEntry } from 'rivulet/log/store'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { change } from '../../operators/events.ts'

const [phase = '', folder = ''] = process.argv.slice(2)
const file = join(folder, 'log.db')
const print = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
const copyWal = (name: string) => copyFileSync(`${file}-wal`, join(folder, name))
const outcome = (write: Promise<unknown>) =>
  write.then(
    () => 'stored',
    (error: unknown) => String(error),
  )

const store = sqliteStore(file)
const log = await openLog(store)
const fence = await store.claim('stream:test')
const append = (id: string) => store.append([{ fence, expect: null, entries: [newEntry(change(id))] }])

/** A consumer whose effects are in the log's own file. The first one waits. */
async function waitingConsumer() {
  const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE effect (id TEXT)')
  const insert = database.prepare('INSERT INTO effect VALUES (?)')
  const prepare = () => {
    begun.resolve()
    return gate.promise
  }
  const job = log.consume('own', exactlyOnce(database, { prepare, effect: ({ id }) => void insert.run(id) }))
  const ends: string[] = []
  void outcome(job.done).then((found) => {
    ends.push(found)
  })
  await begun.promise
  const effects = () => database.prepare('SELECT count(*) AS count FROM effect').get()?.['count']
  /** Lets the effects go on. */
  const go = async () => {
    gate.resolve()
    while (ends.length === 0 && effects() === 0) await turn()
    return ends[0] ?? 'stored'
  }
  return { go, effects }
}

/** Commits a process. Without a state, the commit is not synced. */
function committer(reader: Fence) {
  let expect: string | null = null
  return async (cursor: string, state?: string) => {
    const changes = state === undefined ? [] : [{ key: 'k', state }]
    const process = { checkpoint: '', state: changes, timers: [] }
    await store.commit(reader, { expect, cursor, acknowledged: [], process })
    expect = cursor
  }
}

async function fail(): Promise<void> {
  for (let n = 0; n < 20; n++) await append(`before ${n}`)
  const reader = await store.claim('process:test')
  const consumer = await waitingConsumer()
  const start = await store.positionAt('start')
  const { entries } = await store.read(start, { limit: 20 })
  const commit = committer(reader)
  await append('synced')
  copyWal('synced')
  for (const { position } of entries) await commit(position)
  writeFileSync(join(folder, 'fails'), '')
  const failure = await outcome(append('fails'))
  rmSync(join(folder, 'fails'))
  copyWal('failed')
  if (phase === 'fail') return print({ failure })

  const payload = { type: 'x', data: {} }
  const delivery = { id: 'w1', timestamp: Math.floor(Date.now() / 1000), payload }
  const writes = {
    effect: await consumer.go(),
    append: await outcome(append('after')),
    cursor: await outcome(commit(start)),
    process: await outcome(commit(start, '1')),
    claim: await outcome(store.claim('stream:another')),
    inbox: await outcome(store.inbox.put(delivery, JSON.stringify(payload))),
    retention: await outcome(store.retention.setPaused(null, 1)),
  }
  const read = (await store.read(start, { limit: 5 })).entries.length
  const effects = consumer.effects()
  await log.close()
  const again = sqliteStore(file)
  const reopened = await outcome(again.claim('stream:test'))
  print({ failure, writes, read, effects, reopened })
}

async function goOn(): Promise<void> {
  for (let n = 0; n < 20; n++) await append(`after ${n}`)
  copyWal('end')
  copyFileSync(file, join(folder, 'cut.db'))
  print({})
}

async function checkpoint(): Promise<void> {
  const commit = committer(await store.claim('process:test'))
  await append('1')
  const [start, end] = await Promise.all([store.positionAt('start'), store.positionAt('end')])
  writeFileSync(join(folder, 'fails'), '')
  for (let n = 0; statSync(`${file}-wal`).size < 20_000_000 && n < 20_000; n++)
    await commit(n % 2 === 0 ? start : end)
  const hasFailed = statSync(join(folder, 'fails')).size > 0
  rmSync(join(folder, 'fails'))
  print({ hasFailed, append: await outcome(append('2')) })
}

const phases: Readonly<Record<string, () => Promise<void>>> = { 'go-on': goOn, checkpoint }
await (phases[phase] ?? fail)()
// Until it is killed.
process.stdin.resume()
