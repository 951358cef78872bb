import { hash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate as turn } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { floorStream } from '../floor.ts'
import { alternately, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 10_000
const BYTES = 400
const STREAMS = 2
/** Entries in a transaction: as many as a recorder appends at once. */
const BATCH = 256

/**
 * `record-400b`: events per second from two groups' streams of runs into a new SQLite log by `log.record`, against a bare loop
 * that parses the same bytes and inserts the same rows: the event as JSON and a unique identity of 16 bytes, with the position of
 * the stream, 256 events in a synced transaction.
 */
export const measure: Measure = async (folder) => {
  await using server = await startServer('watched-groups')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const groups = Array.from({ length: STREAMS }, (_, n) => `${EVENTS}x${BYTES}x${n}`)
  let files = 0
  const newFile = () => join(folder, `${(files += 1)}.db`)

  const ours = async () => {
    const file = newFile()
    const log = await openLog(sqliteStore(file))
    const rate = await perSecond(EVENTS * STREAMS, () => log.record({ client, taskGroups: groups }).done)
    await log.close()
    expectCount(runsIn(file), EVENTS * STREAMS, 'recorded runs')
    return rate
  }
  const theirs = async () => {
    const file = newFile()
    const database = openBare(file)
    const rate = await perSecond(EVENTS * STREAMS, () => recordBare(server.url, groups, database))
    database.close()
    expectCount(runsIn(file), EVENTS * STREAMS, 'inserted runs')
    return rate
  }
  const { ratio, ...details } = await alternately(ours, theirs)
  return [result('record-400b', ratio, { atLeast: 0.8 }, { ...details, unit: 'events/s' })]
}

/** The tables of a log, as far as an append of new events touches them. */
function openBare(file: string): DatabaseSync {
  const database = new DatabaseSync(file)
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 4000;
    CREATE TABLE rivulet_entry (
      position INTEGER PRIMARY KEY, type TEXT NOT NULL, recorded INTEGER NOT NULL, revision INTEGER NOT NULL,
      backfill INTEGER NOT NULL, event TEXT NOT NULL
    ) STRICT;
    CREATE TABLE rivulet_identity (
      hash BLOB PRIMARY KEY, position INTEGER NOT NULL, revision INTEGER NOT NULL, completeness INTEGER NOT NULL
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE rivulet_stream (name TEXT PRIMARY KEY, position TEXT NOT NULL) WITHOUT ROWID, STRICT;
  `)
  return database
}

/** What a message of a group's stream of runs has. */
interface RunMessage {
  readonly event_id: string
  readonly run: { readonly run_id: string; readonly status: string; readonly modified_at: string }
}

interface BareEntry {
  readonly stream: string
  readonly message: RunMessage
}

async function recordBare(url: string, groups: readonly string[], database: DatabaseSync): Promise<void> {
  const insert = database.prepare('INSERT INTO rivulet_entry VALUES (?, ?, ?, 1, 0, ?)')
  const identify = database.prepare('INSERT INTO rivulet_identity VALUES (?, ?, 1, 7)')
  const move = database.prepare(
    'INSERT INTO rivulet_stream VALUES (?, ?) ON CONFLICT DO UPDATE SET position = excluded.position',
  )
  const pending: BareEntry[] = []
  let position = 0
  let flushing: Promise<void> | undefined

  const append = (batch: readonly BareEntry[]) => {
    const recorded = Date.now()
    database.exec('BEGIN IMMEDIATE')
    for (const { message } of batch) {
      const { run } = message
      const [source, id] = [`/v1/tasks/runs/${run.run_id}`, `${run.run_id}:${run.status}`]
      const type = 'task_run.state'
      const event = {
        id,
        source,
        type,
        time: run.modified_at,
        data: message,
        received: new Date(recorded).toISOString(),
        via: 'stream',
        cursor: message.event_id,
      }
      position += 1
      identify.run(hash('md5', `${source} ${id}`, 'buffer'), position)
      insert.run(position, type, recorded, JSON.stringify(event))
    }
    for (const { stream, message } of new Map(batch.map((entry) => [entry.stream, entry])).values())
      move.run(stream, message.event_id)
    database.exec('COMMIT')
  }
  const flush = async () => {
    for (await turn(); pending.length > 0; await turn()) append(pending.splice(0, BATCH))
    flushing = undefined
  }
  await Promise.all(
    groups.map((group) =>
      floorStream(url, `/v1beta/tasks/groups/${group}/runs`, (value) => {
        pending.push({ stream: group, message: value as RunMessage })
        flushing ??= flush()
      }),
    ),
  )
  await flushing
}

function runsIn(file: string): number {
  using database = new DatabaseSync(file)
  const rows = database
    .prepare("SELECT count(*) AS rows FROM rivulet_entry WHERE type = 'task_run.state'")
    .get()
  return Number(rows?.['rows'])
}
