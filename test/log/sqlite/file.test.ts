import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { LogClosedError, LogInUseError, LogFileError } from 'rivulet/log'
import type { StateChange } from 'rivulet/log/store'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pretendSqlite } from '../../support/sqlite-version.ts'
import { appendTo, detections, readAll } from './events.ts'
import { startLogProcess } from './processes.ts'
import { openLog, openStore, scratchFile, scratchFolder } from './scratch.ts'

/** A file with a log of three entries, closed. */
async function writtenFile(): Promise<string> {
  const file = scratchFile()
  const log = openLog(file)
  await appendTo(log, detections(1, 3), '3')
  await log.close()
  return file
}

/** A connection to the file, closed after the test. */
function connection(file: string): DatabaseSync {
  const database = new DatabaseSync(file)
  onTestFinished(() => void (database.isOpen && database.close()))
  return database
}

/** Runs as a user who may not write what the superuser owns. */
async function asOrdinaryUser(work: () => Promise<void>): Promise<void> {
  const user = process.geteuid?.()
  if (user !== 0 || process.seteuid === undefined) return work()
  process.seteuid(65_534)
  try {
    await work()
  } finally {
    process.seteuid(user)
  }
}

/** Replaces a function of `node:fs` until the test is over. */
function replace<Name extends 'statfsSync' | 'watch'>(name: Name, replacement: unknown): void {
  const original = fs[name]
  Object.assign(fs, { [name]: replacement })
  syncBuiltinESMExports()
  onTestFinished(() => {
    Object.assign(fs, { [name]: original })
    syncBuiltinESMExports()
  })
}

async function refusal(file: string): Promise<LogFileError> {
  const error: unknown = await openLog(file)
    .positionAt('end')
    .catch((reason: unknown) => reason)
  if (!(error instanceof LogFileError)) throw new Error(`no LogFileError: ${String(error)}`)
  expect(error.file).toBe(file)
  expect(error.message).toContain(file)
  return error
}

describe('a file that cannot be a log is refused and left as it is', () => {
  it('a missing file and one without a log, with `create: false`', async () => {
    const file = scratchFile()
    const missing = openLog(file, { create: false })
    await expect(missing.positionAt('start')).rejects.toThrow(`${file} does not exist`)
    expect(readdirSync(dirname(file))).toEqual([])

    writeFileSync(file, '')
    await expect(missing.positionAt('start')).rejects.toBeInstanceOf(LogFileError)
    expect(readFileSync(file, 'utf8')).toBe('')

    await openLog(file).positionAt('start')
    await expect(missing.positionAt('start')).resolves.toEqual(expect.any(String))
  })

  it('a folder', async () => {
    await expect(refusal(scratchFolder())).resolves.toHaveProperty(
      'message',
      expect.stringContaining('is a folder'),
    )
  })

  it('a file in a folder that does not exist', async () => {
    const file = join(scratchFolder(), 'missing', 'log.db')
    await expect(refusal(file)).resolves.toHaveProperty(
      'message',
      expect.stringContaining('create its folder'),
    )
    expect(existsSync(dirname(file))).toBe(false)
  })

  it('a text', async () => {
    const file = scratchFile()
    writeFileSync(file, 'These are the notes of another person.\n'.repeat(100))
    const before = readFileSync(file)

    const { message } = await refusal(file)
    expect(message).toMatch(
      /is damaged or not an SQLite database \(.*\): restore it from a backup, move it away/,
    )
    expect(readFileSync(file)).toEqual(before)
    expect(readdirSync(dirname(file))).toEqual(['log.db'])
  })

  it('a log with a damaged page', async () => {
    const file = await writtenFile()
    const database = connection(file)
    const page = Number(
      database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'rivulet_stream'").get()?.[
        'rootpage'
      ],
    )
    database.close()
    const contents = readFileSync(file)
    contents.fill(0xa5, (page - 1) * 4096, page * 4096)
    writeFileSync(file, contents)

    await expect(refusal(file)).resolves.toHaveProperty('message', expect.stringContaining('is damaged'))
    expect(readFileSync(file)).toEqual(contents)
  })

  it.each([
    [
      'a log of a newer version',
      'PRAGMA user_version = 99',
      /newer version \(99, this one knows \d+\): use that version/,
    ],
    [
      'a log of an earlier version',
      'PRAGMA user_version = 1',
      /earlier version \(1, this one knows \d+\): use that version of rivulet to read it, and a new file with this one$/,
    ],
    [
      'a log of the first version, whose header says nothing',
      'PRAGMA user_version = 0; PRAGMA application_id = 0',
      /earlier version \(1,/,
    ],
    ['a log that another program has made its own', 'PRAGMA application_id = 7', /a file of another program/],
  ])('%s', async (_, change, problem) => {
    const file = await writtenFile()
    const database = connection(file)
    database.exec(change)
    database.close()
    const before = readFileSync(file)

    const { message } = await refusal(file)
    expect(message).toMatch(problem)
    expect(readFileSync(file)).toEqual(before)
    expect(readdirSync(dirname(file)).filter((name) => /-(?:wal|shm|journal)$/.test(name))).toEqual([])
  })

  it.each(['PRAGMA application_id = 7', 'PRAGMA user_version = 7'])(
    'the database of another program, by %s',
    async (identify) => {
      const file = scratchFile()
      const database = connection(file)
      database.exec(`CREATE TABLE own (one TEXT); ${identify}`)
      database.close()
      const before = readFileSync(file)

      expect((await refusal(file)).message).toContain('is a file of another program')
      expect(readFileSync(file)).toEqual(before)
    },
  )

  it('the database of another program that has left its -wal file', async () => {
    const file = scratchFile()
    const database = connection(file)
    database.exec('PRAGMA application_id = 7; PRAGMA journal_mode = WAL; CREATE TABLE own (one TEXT)')
    const left = scratchFile()
    const [main, wal] = [readFileSync(file), readFileSync(`${file}-wal`)]
    writeFileSync(left, main)
    writeFileSync(`${left}-wal`, wal)

    expect((await refusal(left)).message).toContain('is a file of another program')
    expect(readFileSync(left).equals(main)).toBe(true)
    expect(readFileSync(`${left}-wal`).equals(wal)).toBe(true)
  })

  it('a file that has another name, by which another program could write to it', async () => {
    const file = await writtenFile()
    const other = join(dirname(file), 'other.db')
    linkSync(file, other)
    const before = readFileSync(file)
    for (const name of [file, other]) {
      expect((await refusal(name)).message).toMatch(
        /has another name, since it is a hard link.* folder that has the file/,
      )
    }
    expect(readFileSync(file)).toEqual(before)
    unlinkSync(other)
    await expect(readAll(openLog(file))).resolves.toHaveLength(3)
  })

  it('a file that this process may not write', async () => {
    const file = await writtenFile()
    chmodSync(dirname(file), 0o755)
    chmodSync(file, 0o444)
    await asOrdinaryUser(async () => {
      await expect(refusal(file)).resolves.toMatchObject({
        message: expect.stringMatching(/cannot be (written|opened)/),
        retryable: false,
      })
    })
  })

  it('a new file in a folder that this process may not write', async () => {
    const folder = scratchFolder()
    chmodSync(folder, 0o555)
    onTestFinished(() => chmodSync(folder, 0o755))
    await asOrdinaryUser(async () => {
      await expect(refusal(join(folder, 'log.db'))).resolves.toHaveProperty(
        'message',
        expect.stringContaining('give this process permission'),
      )
    })
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([
    ['NFS', 0x6969],
    ['CIFS', 0xff534d42],
    ['CIFS', 0xff534d42 | 0],
  ])('one on %s', async (name, type) => {
    replace('statfsSync', () => ({ type }))
    const file = scratchFile()

    await expect(refusal(file)).resolves.toHaveProperty(
      'message',
      expect.stringContaining(`is on a network file system (${name}: ${dirname(file)})`),
    )
    expect(readdirSync(dirname(file))).toEqual([])
  })

  it('any file, where SQLite has the WAL-reset bug', async () => {
    pretendSqlite('3.51.2')
    const file = scratchFile()

    await expect(refusal(file)).resolves.toHaveProperty('message', expect.stringContaining('WAL-reset bug'))
    expect(readdirSync(dirname(file))).toEqual([])
  })
})

it('a refused file is tried again by the next call', async () => {
  const folder = join(scratchFolder(), 'made later')
  const log = openLog(join(folder, 'log.db'))
  await expect(log.positionAt('end')).rejects.toThrow(LogFileError)
  mkdirSync(folder)

  await expect(appendTo(log, detections(1, 1))).resolves.toMatchObject({ entries: 1 })
})

it('all its files are for their owner alone, whatever the umask', async () => {
  const umask = process.umask(0)
  onTestFinished(() => void process.umask(umask))
  const file = scratchFile()
  await appendTo(openLog(file), detections(1, 1))

  const modes = readdirSync(dirname(file)).map((name) => [
    name,
    (statSync(join(dirname(file), name)).mode & 0o777).toString(8),
  ])
  expect(Object.fromEntries(modes)).toEqual({
    'log.db': '600',
    'log.db-wal': '600',
    'log.db-shm': '600',
    'log.db-lock-0': '600',
  })
})

it('a database of the user can have a log beside its own tables', async () => {
  const file = scratchFile()
  const database = connection(file)
  database.exec('CREATE TABLE ledger (entry TEXT); INSERT INTO ledger VALUES (1)')
  const log = openLog(file)
  await appendTo(log, detections(1, 2))

  expect(database.prepare('SELECT count(*) AS count FROM ledger').get()).toEqual({ count: 1 })
  await expect(readAll(log)).resolves.toHaveLength(2)
})

it('a log is opened through a symbolic link, beside others that open its own path', async () => {
  const file = await writtenFile()
  const link = join(scratchFolder(), 'link.db')
  symlinkSync(file, link)
  const [log, linked] = [openLog(file), openLog(link)]
  await appendTo(linked, detections(4, 5), '5')
  await expect(readAll(log)).resolves.toHaveLength(5)
  await expect(log.claim('s')).rejects.toBeInstanceOf(LogInUseError)
  expect(readdirSync(dirname(link))).toEqual(['link.db'])
})

it('a name that a process has left, which was killed while it created the file, is removed', async () => {
  const file = await writtenFile()
  const left = `${file}-${randomUUID()}`
  linkSync(file, left)
  await expect(readAll(openLog(file))).resolves.toHaveLength(3)
  expect(existsSync(left)).toBe(false)
})

it('a path is a path, whatever it looks like', async () => {
  const folder = scratchFolder()
  const file = join(folder, 'file:a?mode=memory#%41 é.db')
  await appendTo(openLog(file), detections(1, 1))

  expect(readdirSync(folder)).toContain('file:a?mode=memory#%41 é.db')
  await expect(readAll(openLog(file))).resolves.toHaveLength(1)
})

it('nothing is ever written into the lock file', async () => {
  const file = scratchFile()
  const log = openLog(file)
  await appendTo(log, detections(1, 1))
  const second = openLog(file)
  await expect(second.claim('s')).rejects.toThrow('is held by process')
  await log.close()
  await second.close()

  expect(readdirSync(dirname(file))).toEqual(['log.db', 'log.db-lock-0', 'log.db-lock-1'])
  expect(statSync(`${file}-lock-0`).size).toBe(0)
  expect(statSync(`${file}-lock-1`).size).toBe(0)
})

describe('a file that goes away while the log is open', () => {
  const losses: [string, (file: string) => void][] = [
    ['is removed', (file) => unlinkSync(file)],
    ['is renamed', (file) => renameSync(file, `${file}.old`)],
    [
      'is replaced',
      (file) => {
        renameSync(file, `${file}.old`)
        writeFileSync(file, readFileSync(`${file}.old`))
      },
    ],
    ['loses its -wal file', (file) => unlinkSync(`${file}-wal`)],
  ]
  it.each(losses)('which %s makes every call reject, and nothing is written', async (_, lose) => {
    const file = scratchFile()
    const log = openLog(file)
    const start = await log.positionAt('start')
    const fence = await log.claim('s')
    const waiting = log.wait(start, new AbortController().signal).catch((error: unknown) => error)
    await log.positionAt('end')
    lose(file)

    const message = expect.stringContaining(`${file} was removed or replaced while it was open`)
    const append = { fence, expect: null, entries: detections(1, 1) }
    await expect(log.append([append])).rejects.toMatchObject({ name: 'LogFileError', message })
    await expect(log.read(start, { limit: 1 })).rejects.toMatchObject({ name: 'LogFileError', message })
    await expect(waiting).resolves.toMatchObject({ name: 'LogFileError', message })
    await expect(log.close()).resolves.toBeUndefined()
  })
})

describe('a full disk', () => {
  it('rejects the append, which has changed nothing and succeeds once there is space', async () => {
    let database: DatabaseSync | undefined
    const log = openStore(scratchFile(), {
      connect: (path) => (database = new DatabaseSync(path, { timeout: 0 })),
    })
    const fence = await log.claim('s')
    let end = 0
    const append = () =>
      log.append([
        {
          fence,
          expect: end === 0 ? null : String(end),
          position: String(end + 10),
          entries: detections(end + 1, end + 10, 'x'.repeat(500)),
        },
      ])
    await append()
    end += 10
    database?.exec('PRAGMA max_page_count = 60')
    let error: unknown
    while (error === undefined) {
      try {
        await append()
        end += 10
      } catch (reason) {
        error = reason
      }
    }

    expect(error).toMatchObject({
      name: 'LogFileError',
      message: expect.stringContaining('the disk is full: free some space'),
      retryable: true,
    })
    expect(database?.isTransaction).toBe(false)
    await expect(readAll(log)).resolves.toHaveLength(end)
    await expect(log.streamPositions(['s'])).resolves.toEqual([String(end)])
    database?.exec('PRAGMA max_page_count = 10000')
    await expect(append()).resolves.toMatchObject({ entries: 10, duplicates: 0 })
    await expect(readAll(log)).resolves.toHaveLength(end + 10)
  })
})

it('maps no memory, so a failed read is an error of SQLite, not a signal', async () => {
  let database: DatabaseSync | undefined
  const log = openStore(scratchFile(), {
    connect: (path) => (database = new DatabaseSync(path, { timeout: 0 })),
  })

  await log.claim('s')

  expect(database?.prepare('PRAGMA mmap_size').get()).toEqual({ mmap_size: 0 })
})

it('entries, claims, dead letters and states are synced by their commit, cursors are not', async () => {
  const levels: [string, unknown][] = []
  let step = 'open'
  class Connection extends DatabaseSync {
    override exec(sql: string): void {
      if (sql === 'COMMIT') levels.push([step, this.prepare('PRAGMA synchronous').get()?.['synchronous']])
      super.exec(sql)
    }
  }
  const log = openStore(scratchFile(), { connect: (path) => new Connection(path, { timeout: 0 }) })
  const cursor = await log.positionAt('start')
  const run = async <Result>(name: string, call: () => Promise<Result>): Promise<Result> => {
    step = name
    const result = await call()
    step = 'other'
    return result
  }
  const fence = await run('claim', () => log.claim('s'))
  await run('commit', () => log.commit(fence, { expect: null, cursor, acknowledged: [] }))
  const { end } = await run('append', () => log.append([{ fence, expect: null, entries: detections(1, 1) }]))
  const error = { name: 'Error', message: '' }
  const deadLetters = [{ position: end, error, attempts: 1 }]
  await run('dead letter', () => log.commit(fence, { expect: cursor, cursor, acknowledged: [], deadLetters }))
  const stateCommit = (state: readonly StateChange[]) => ({
    expect: cursor,
    cursor,
    acknowledged: [],
    process: { checkpoint: '', state, timers: [] },
  })
  await run('no change', () => log.commit(fence, stateCommit([])))
  await run('change', () => log.commit(fence, stateCommit([{ key: 'k', state: '1' }])))

  const [normal, full] = [1, 2]
  expect(levels).toContainEqual(['open', full])
  expect(levels.filter(([name]) => name === 'commit')).toEqual([['commit', normal]])
  expect(levels.filter(([name]) => name === 'append')).toEqual([['append', full]])
  // A place of effects forgets the letter, and a follower keeps the position of the change.
  expect(levels.filter(([name]) => name === 'dead letter')).toEqual([['dead letter', full]])
  expect(levels.filter(([name]) => name === 'no change')).toEqual([['no change', normal]])
  expect(levels.filter(([name]) => name === 'change')).toEqual([['change', full]])
  expect(levels.findLast(([name]) => name === 'claim')).toEqual(['claim', full])
})

it('a page holds no snapshot, also one that ended early or failed', async () => {
  const file = scratchFile()
  const log = openLog(file)
  const start = await log.positionAt('start')
  await appendTo(log, detections(1, 2, 'x'.repeat(1_200_000)))
  const other = connection(file)
  await expect(log.read(start, { limit: 10 })).resolves.toMatchObject({
    entries: [{ id: 'mevt_1' }],
    isEnd: false,
  })
  const checkpoint = () => other.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
  expect(checkpoint()).toMatchObject({ busy: 0 })
  other.exec("UPDATE rivulet_entry SET event = 'damaged' WHERE position = 1")
  await expect(log.read(start, { limit: 10 })).rejects.toThrow(LogFileError)

  expect(checkpoint()).toMatchObject({ busy: 0 })
})

it('the event loop goes on between many appends at once', async () => {
  const log = openLog(scratchFile())
  const fence = await log.claim('s')
  let turns = 0
  const count = () => {
    turns += 1
    immediate = setImmediate(count)
  }
  let immediate = setImmediate(count)
  onTestFinished(() => clearImmediate(immediate))
  const appends = Array.from({ length: 20 }, (_, number) =>
    log.append([{ fence, expect: null, entries: detections(number, number) }]),
  )
  await Promise.all(appends)
  expect(turns).toBeGreaterThanOrEqual(19)
})

describe('another writer', () => {
  it('makes appends and commits wait, in their order, and the event loop goes on', async () => {
    const file = scratchFile()
    const log = openLog(file)
    const fence = await log.claim('s')
    const reader = await log.claim('r')
    const other = connection(file)
    other.exec('BEGIN IMMEDIATE')
    const done: string[] = []
    const calls = [
      log
        .append([{ fence, expect: null, position: '1', entries: detections(1, 1) }])
        .then(() => done.push('append')),
      log
        .commit(reader, { expect: null, cursor: await log.positionAt('start'), acknowledged: [] })
        .then(() => done.push('commit')),
      log
        .append([{ fence, expect: '1', position: '2', entries: detections(2, 2) }])
        .then(() => done.push('append')),
    ]
    for (let turn = 0; turn < 50; turn++) await log.streamPositions(['s'])
    expect(done).toEqual([])
    other.exec('COMMIT')
    await Promise.all(calls)

    expect(done).toEqual(['append', 'commit', 'append'])
    await expect(readAll(log)).resolves.toHaveLength(2)
  })

  it('keeps no log from closing, and calls that were waiting have no effect', async () => {
    const file = scratchFile()
    const log = openLog(file)
    const fence = await log.claim('s')
    const other = connection(file)
    other.exec('BEGIN IMMEDIATE')
    const append = log.append([{ fence, expect: null, entries: detections(1, 1) }])
    const outcome = append.catch((error: unknown) => error)
    await log.streamPositions(['s'])
    const closed = log.close()
    await expect(outcome).resolves.toBeInstanceOf(LogClosedError)
    other.exec('COMMIT')
    await closed

    await expect(readAll(openLog(file))).resolves.toEqual([])
    await expect(openLog(file).claim('s')).resolves.toMatchObject({ name: 's' })
  })

  it('keeps no log from closing that is not open yet', async () => {
    const file = scratchFile()
    const other = connection(file)
    other.exec('BEGIN EXCLUSIVE')
    const log = openLog(file)
    const outcome = log.positionAt('start').catch((error: unknown) => error)
    await log.close()
    await expect(outcome).resolves.toBeInstanceOf(LogClosedError)
    other.exec('ROLLBACK')
  })

  it('that does not end is reported, as something to try again', async () => {
    const file = scratchFile()
    await appendTo(openLog(file), detections(1, 1))
    const other = connection(file)
    other.exec('BEGIN IMMEDIATE')
    const log = openStore(file, { patience: 1 })

    await expect(log.claim('another')).rejects.toMatchObject({
      name: 'LogFileError',
      message: expect.stringContaining('is locked by another program'),
      retryable: true,
    })
    await expect(readAll(log)).resolves.toHaveLength(1)
    other.exec('COMMIT')
    await expect(log.claim('another')).resolves.toMatchObject({ token: 1 })
  })

  it('that creates the same log at the same moment leads to one log', async () => {
    const file = scratchFile()
    const others = [1, 2, 3].map(() => startLogProcess(file))
    const log = openLog(file)
    const positions = await Promise.all([
      log.positionAt('start'),
      ...others.map((other) => other.call('positionAt', 'start')),
    ])

    expect(new Set(positions).size).toBe(1)
  })
})

it('the write-ahead log is truncated once it is large and has no reader', async () => {
  const file = scratchFile()
  const log = openLog(file)
  await appendTo(log, detections(1, 1))
  const reader = connection(file)
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM rivulet_entry').get()
  const large = 'x'.repeat(3_500_000)
  for (let number = 2; number < 24; number++) await appendTo(log, detections(number, number, large))
  expect(statSync(`${file}-wal`).size).toBeGreaterThan(64 * 1024 * 1024)
  reader.exec('COMMIT')
  await appendTo(log, detections(100, 100))

  expect(statSync(`${file}-wal`).size).toBeLessThan(1024 * 1024)
  await expect(readAll(log)).resolves.toHaveLength(24)
})

describe('waiting for entries', () => {
  it('notices those of another connection where watches do not work', async () => {
    replace('watch', () => {
      throw Object.assign(new Error('ENOSPC: System limit for number of file watchers reached'), {
        code: 'ENOSPC',
      })
    })
    const file = scratchFile()
    const [reader, writer] = [openLog(file), openLog(file)]
    const noticed = reader.wait(await reader.positionAt('end'), new AbortController().signal)
    await appendTo(writer, detections(1, 1))

    await expect(noticed).resolves.toBeUndefined()
  })

  it('goes on where a watch fails later', async () => {
    const watchers: fs.FSWatcher[] = []
    const { watch } = fs
    replace('watch', (...args: Parameters<typeof watch>) => {
      const watcher = watch(...args)
      watchers.push(watcher)
      return watcher
    })
    const file = scratchFile()
    const [reader, writer] = [openLog(file), openLog(file)]
    const noticed = reader.wait(await reader.positionAt('end'), new AbortController().signal)
    await reader.positionAt('end')
    expect(watchers).toHaveLength(1)
    watchers[0]?.emit('error', new Error('EMFILE'))
    await appendTo(writer, detections(1, 1))

    await expect(noticed).resolves.toBeUndefined()
  })
})
