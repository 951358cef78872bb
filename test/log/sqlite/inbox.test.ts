import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { LogStore } from 'rivulet/log/store'
import { ArgumentError } from 'rivulet'
import { LogFileError } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { signWebhook } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { programFiles } from '../../support/programs.ts'
import { openLog, openStore, scratchFile } from './scratch.ts'

const fileOf = await programFiles()

const HOUR = 3_600_000

const put = (log: LogStore, id: string, payload: unknown = { for: id }) =>
  log.inbox.put({ id, timestamp: 1_760_000_000, payload }, JSON.stringify(payload))

const putAll = (log: LogStore, ...ids: readonly string[]) => Promise.all(ids.map((id) => put(log, id)))

async function done(log: LogStore, ...ids: readonly string[]): Promise<void> {
  const fence = await log.claim('inbox')
  await log.append([{ fence, expect: null, entries: [] }], ids)
}

async function pendingIds(log: LogStore): Promise<readonly string[]> {
  return (await log.inbox.pending(null, 10_000)).map(({ id }) => id)
}

/** Another connection to the file. */
function database(file: string): DatabaseSync {
  const opened = new DatabaseSync(file)
  onTestFinished(() => opened.close())
  return opened
}

/** A connection that counts its write transactions and their durability. */
class Counting extends DatabaseSync {
  commits: string[] = []
  #synchronous = ''
  #isWriting = false

  override exec(sql: string): void {
    super.exec(sql)
    if (sql.includes('synchronous')) this.#synchronous = sql
    if (sql === 'COMMIT' && this.#isWriting) this.commits.push(this.#synchronous)
    this.#isWriting = sql === 'BEGIN IMMEDIATE'
  }
}

function counting(file: string) {
  const connections: Counting[] = []
  const connect = (path: string) => {
    const connection = new Counting(path, { timeout: 0 })
    connections.push(connection)
    return connection
  }
  const log = openStore(file, { connect })
  return { log, connection: () => connections.at(-1) }
}

describe('a burst of webhooks', () => {
  it('is stored in few transactions that are synced to the disk, and visible to others before it is answered', async () => {
    const file = scratchFile()
    const { log, connection } = counting(file)
    await log.positionAt('start')
    const reader = database(file)
    const seen = new Set<unknown>()
    const count = () => reader.prepare('SELECT count(*) AS n FROM rivulet_webhook').get()?.['n']
    connection()?.commits.splice(0)
    await Promise.all(Array.from({ length: 50 }, (_, n) => put(log, `${n}`).then(() => seen.add(count()))))
    expect(seen).toEqual(new Set([50]))
    expect(connection()?.commits).toEqual(['PRAGMA synchronous = FULL'])
  })

  it('that is larger than a transaction may be is stored in several', async () => {
    const { log, connection } = counting(scratchFile())
    await log.positionAt('start')
    connection()?.commits.splice(0)
    await putAll(log, ...Array.from({ length: 600 }, (_, n) => `msg_${n}`))
    expect(connection()?.commits).toHaveLength(3)
    expect(await pendingIds(log)).toHaveLength(600)
  })

  it('of which a part cannot be stored is rejected as a whole, and the next attempt is no duplicate', async () => {
    const file = scratchFile()
    const log = openStore(file, { inbox: { maxDeliveries: 3, maxBytes: 1_000 } })
    await put(log, 'first')
    const other = database(file)
    other.exec(`
      CREATE TRIGGER fail BEFORE INSERT ON rivulet_webhook_id WHEN new.id = 'bad'
      BEGIN SELECT raise(ABORT, 'no'); END
    `)
    const failed = await Promise.allSettled([put(log, 'good'), put(log, 'bad')])
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    // The room of what was rolled back is free.
    expect(await putAll(log, 'good', 'later', 'more')).toEqual(['stored', 'stored', 'full'])
  })
})

describe('an inbox', () => {
  it('knows ids for 48 hours and until enough others are stored, and those of pending webhooks for longer', async () => {
    const file = scratchFile()
    let now = 1_000
    const log = openStore(file, { clock: () => now, knownIds: 3 })
    await putAll(log, 'open', 'done', 'done later')
    await done(log, 'done', 'done later')
    now += 48 * HOUR
    await putAll(log, 'b', 'c', 'd', 'e')
    // Old enough from now on.
    now += 1
    expect(await put(log, 'done')).toBe('duplicate')
    await put(log, 'f')
    expect(await putAll(log, 'open', 'done', 'done later')).toEqual(['duplicate', 'stored', 'stored'])
    // As old, and not followed by enough others.
    const few = openStore(scratchFile(), { clock: () => now, knownIds: 100 })
    await put(few, 'a')
    await done(few, 'a')
    now += 1_000 * HOUR
    expect(await putAll(few, 'b', 'a')).toEqual(['stored', 'duplicate'])
  })

  it('forgets old ids in steps, also behind ones that stay', async () => {
    const file = scratchFile()
    let now = 0
    const log = openStore(file, {
      clock: () => now,
      knownIds: 0,
      inbox: { maxDeliveries: 1e6, maxBytes: 1e9 },
    })
    const ids = Array.from({ length: 400 }, (_, n) => `${n}`)
    await putAll(log, ...ids)
    for (let from = 100; from < 400; from += 100) await done(log, ...ids.slice(from, from + 100))
    now = 49 * HOUR
    const known = () => database(file).prepare('SELECT count(*) AS n FROM rivulet_webhook_id').get()?.['n']
    await put(log, 'one')
    expect(known()).toBe(401)
    for (let n = 0; n < 40; n++) await put(log, `later ${n}`)
    expect(known()).toBe(100 + 41)
    expect(await put(log, '5')).toBe('duplicate')
  })

  it('counts what is pending also after rows were deleted by hand', async () => {
    const file = scratchFile()
    const limits = { inbox: { maxDeliveries: 2 } }
    const log = openLog(file, limits)
    await putAll(log, 'a', 'b')
    await log.close()
    database(file).exec('DELETE FROM rivulet_webhook WHERE number = 1')
    const next = openLog(file, limits)
    expect(await putAll(next, 'c', 'd')).toEqual(['stored', 'full'])
  })

  it('rejects webhooks while another program keeps its file, and stores the next attempt', async () => {
    const file = scratchFile()
    const log = openStore(file, { patience: 20 })
    await put(log, 'a')
    const other = database(file)
    other.exec('BEGIN IMMEDIATE')
    await expect(put(log, 'b')).rejects.toMatchObject({ name: 'LogFileError', retryable: true })
    other.exec('ROLLBACK')
    expect(await put(log, 'b')).toBe('stored')
  })

  it('keeps no payload of what is done', async () => {
    const file = scratchFile()
    const log = openLog(file)
    await putAll(log, 'a', 'b')
    await done(log, 'a')
    const rows = database(file).prepare('SELECT payload FROM rivulet_webhook').all()
    expect(rows).toEqual([{ payload: '{"for":"b"}' }])
  })

  it('rejects webhooks while its disk is full, and the same append that has room makes some', async () => {
    const file = scratchFile()
    const connections: DatabaseSync[] = []
    const connect = (path: string) => {
      const connection = new DatabaseSync(path, { timeout: 0 })
      connections.push(connection)
      return connection
    }
    const log = openStore(file, { connect })
    const large = { text: 'x'.repeat(50_000) }
    await put(log, 'a', large)
    const [connection] = connections
    const pages = Number(connection?.prepare('PRAGMA page_count').get()?.['page_count'])
    connection?.exec(`PRAGMA max_page_count = ${pages}`)
    const refused = put(log, 'b', { ...large, more: large })
    await expect(refused).rejects.toMatchObject({ name: 'LogFileError', retryable: true, file })
    await done(log, 'a')
    expect(await put(log, 'b', large)).toBe('stored')
    expect(await pendingIds(log)).toEqual(['b'])
  })

  it('rejects webhooks in a file that has become read-only', async () => {
    const connections: DatabaseSync[] = []
    const connect = (path: string) => {
      const connection = new DatabaseSync(path, { timeout: 0 })
      connections.push(connection)
      return connection
    }
    const log = openStore(scratchFile(), { connect })
    await put(log, 'a')
    connections[0]?.exec('PRAGMA query_only = ON')
    await expect(put(log, 'b')).rejects.toBeInstanceOf(LogFileError)
    connections[0]?.exec('PRAGMA query_only = OFF')
    expect(await put(log, 'b')).toBe('stored')
  })

  it.each([{ maxDeliveries: 0 }, { maxBytes: 1.5 }, { maxCount: 5 }])('refuses the limits %j', (inbox) => {
    expect(() => sqliteStore('log.db', { inbox })).toThrow(ArgumentError)
  })
})

describe('a webhook that cannot be read', () => {
  it.each(['{"type":', '', 'null', '5', '"text"', '[{}]'])(
    'is named with what to do, after those before it, and left as it is: %j',
    async (payload) => {
      const file = scratchFile()
      const log = openLog(file)
      await putAll(log, 'good', 'bad', 'better')
      await log.close()
      const other = database(file)
      other.prepare('UPDATE rivulet_webhook SET payload = ? WHERE number = 2').run(payload)
      const next = openLog(file)
      const [good] = await next.inbox.pending(null, 10)
      expect(good).toMatchObject({ id: 'good' })
      const unreadable = next.inbox.pending(good?.place ?? null, 10)
      await expect(unreadable).rejects.toThrow(
        /log\.db has a webhook.*number 2 and the id "bad".*DELETE FROM rivulet_webhook WHERE number = 2/,
      )
      expect(other.prepare('SELECT payload FROM rivulet_webhook WHERE number = 2').get()).toEqual({ payload })
      other.exec('DELETE FROM rivulet_webhook WHERE number = 2')
      expect(await pendingIds(next)).toEqual(['good', 'better'])
    },
  )
})

describe('a file of a log without an inbox in it', () => {
  it('is refused as damaged, and left as it is', async () => {
    const file = scratchFile()
    const log = sqliteStore(file)
    await put(log, 'a')
    await log.close()
    const other = new DatabaseSync(file)
    other.exec('DROP TABLE rivulet_webhook')
    other.close()
    const before = readFileSync(file)
    await expect(openLog(file).positionAt('start')).rejects.toBeInstanceOf(LogFileError)
    expect(readFileSync(file).equals(before)).toBe(true)
  })
})

describe('a receiver that is killed', () => {
  it('has stored every webhook that it answered 2xx', async () => {
    const file = scratchFile()
    const secret = 'the account secret'
    const receiving = fork(fileOf('test/log/sqlite/receiving-process.ts'), [file, secret], {
      execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
    })
    onTestFinished(() => void receiving.kill('SIGKILL'))
    const ended = once(receiving, 'exit')
    const [port]: unknown[] = await once(receiving, 'message')
    const accepted: string[] = []
    const send = async (sender: number) => {
      for (let n = 0; n < 1_000; n++) {
        const id = `${sender}-${n}`
        const body = JSON.stringify({ type: 'task_run.status', data: { run_id: id } })
        const headers = { ...(await signWebhook({ id, body, secrets: secret })) }
        const response = await fetch(`http://127.0.0.1:${String(port)}`, { method: 'POST', body, headers })
        await response.arrayBuffer()
        if (response.status === 204) accepted.push(id)
        if (accepted.length === 137) receiving.kill('SIGKILL')
      }
    }
    const senders = await Promise.allSettled(Array.from({ length: 16 }, (_, n) => send(n)))
    await ended
    const kept = new Set(await pendingIds(openLog(file)))
    expect(senders.map(({ status }) => status)).toEqual(senders.map(() => 'rejected'))
    expect(accepted.length).toBeGreaterThanOrEqual(137)
    expect(accepted.filter((id) => !kept.has(id))).toEqual([])
  })
})
