import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ArgumentError } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { completeness } from '../../src/protocol/event.ts'
import { openCheckpoint } from '../../src/state/checkpoint.ts'
import type { HandledFact } from '../../src/state/checkpoint-store.ts'
import { thisProcess } from '../../src/state/process-identity.ts'
import {
  CheckpointError,
  CheckpointInUseError,
  sqliteCheckpointStore,
  sqliteInbox,
  StateFileError,
} from '../../src/state/sqlite.ts'
import type { SqliteCheckpointStore, SqliteCheckpointStoreOptions } from '../../src/state/sqlite.ts'
import { bareRun, change, fullRun } from '../operators/events.ts'
import { asOrdinaryUser, scratchFile, scratchFolder, startProcess } from './scratch.ts'

/** A store that is closed when the test is over. */
function storeIn(file: string | DatabaseSync, options?: SqliteCheckpointStoreOptions): SqliteCheckpointStore {
  const store = sqliteCheckpointStore(file, options)
  onTestFinished(() => store.close())
  return store
}

function database(file = ':memory:'): DatabaseSync {
  const opened = new DatabaseSync(file)
  onTestFinished(() => {
    if (opened.isOpen) opened.close()
  })
  return opened
}

function fact(id: string, told = 0): HandledFact {
  return { id, source: '/v1/monitors/m', parts: told }
}

function changes(positions: Readonly<Record<string, string>>, ...handled: readonly HandledFact[]) {
  return { positions: new Map(Object.entries(positions)), handled }
}

/** What the next process finds. */
function reloaded(store: SqliteCheckpointStore, file: string, options?: SqliteCheckpointStoreOptions) {
  store.close()
  const { positions, handled } = storeIn(file, options).load()
  return { positions: Object.fromEntries(positions), handled: [...handled] }
}

describe('a checkpoint in SQLite', () => {
  it('is there again for the next process: positions, and facts in the order of handling', () => {
    const file = scratchFile()
    const store = storeIn(file)
    store.load()
    store.save(changes({ s: '1', t: 'x' }, fact('b'), fact('a')))
    store.save(changes({ s: '2' }, fact('c', 3)))

    expect(reloaded(store, file)).toEqual({
      positions: { s: '2', t: 'x' },
      handled: [fact('b'), fact('a'), fact('c', 3)],
    })
  })

  it('is empty at first', () => {
    const { positions, handled } = storeIn(':memory:').load()

    expect([[...positions], [...handled]]).toEqual([[], []])
  })

  it('keeps what each copy of a fact told', () => {
    const file = scratchFile()
    const store = storeIn(file)
    store.load()
    store.save(changes({}, fact('a', 1), fact('b')))
    store.save(changes({}, fact('a', 4)))

    expect(reloaded(store, file).handled).toEqual([fact('a', 1), fact('b'), fact('a', 4)])
  })

  it('tells facts of one id apart by their source', () => {
    const file = scratchFile()
    const store = storeIn(file)
    store.load()
    const other = { ...fact('a', 2), source: '/v1/monitors/n' }
    store.save(changes({}, fact('a', 1), other))

    expect(reloaded(store, file).handled).toEqual([fact('a', 1), other])
  })

  it('lives beside your own tables and other pipelines, and leaves your database open', () => {
    const own = database(scratchFile())
    own.exec('CREATE TABLE finding (id TEXT)')
    const [first, second] = [storeIn(own), storeIn(own, { name: 'second' })]
    first.load()
    second.load()
    first.save(changes({ s: 'first' }, fact('a')))
    second.save(changes({ s: 'second' }))
    first.close()

    const again = storeIn(own).load()

    expect(Object.fromEntries(again.positions)).toEqual({ s: 'first' })
    expect([...again.handled]).toEqual([fact('a')])
    expect(own.prepare('SELECT count(*) AS n FROM finding').get()).toEqual({ n: 0 })
  })

  it('leaves the settings of your database alone', () => {
    const pages = (db: DatabaseSync) => db.prepare('PRAGMA wal_autocheckpoint').get()
    const own = database(scratchFile())
    const before = pages(own)

    expect(pages(storeIn(own).database)).toEqual(before)
  })

  it('shares a file with an inbox', async () => {
    const file = scratchFile()
    const store = storeIn(file)
    const inbox = sqliteInbox(file)
    onTestFinished(() => inbox.close())
    store.load()
    store.save(changes({ s: '1' }))

    expect(await inbox.put({ id: 'msg_1', timestamp: 1, payload: {} })).toBe('stored')
  })

  it('takes over a file in the layout of version 1, once nobody works with it', () => {
    const file = scratchFile()
    const older = new DatabaseSync(file)
    older.exec(`
      CREATE TABLE rivulet_state (part TEXT PRIMARY KEY, version INTEGER NOT NULL) WITHOUT ROWID, STRICT;
      INSERT INTO rivulet_state VALUES ('checkpoint', 1);
      CREATE TABLE rivulet_checkpoint_position (
        checkpoint TEXT NOT NULL, stream TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (checkpoint, stream)
      ) WITHOUT ROWID, STRICT;
      INSERT INTO rivulet_checkpoint_position VALUES ('one', 'stream', 'cursor');
      CREATE TABLE rivulet_checkpoint_handled (
        checkpoint TEXT NOT NULL, seq INTEGER NOT NULL, source TEXT NOT NULL, id TEXT NOT NULL,
        parts INTEGER NOT NULL, handled_at INTEGER NOT NULL, PRIMARY KEY (checkpoint, seq)
      ) WITHOUT ROWID, STRICT;
      CREATE INDEX rivulet_checkpoint_fact ON rivulet_checkpoint_handled (checkpoint, source, id, parts);
    `)
    const insert = older.prepare('INSERT INTO rivulet_checkpoint_handled VALUES (?, ?, ?, ?, ?, ?)')
    const now = Date.now()
    for (const [name, seq] of [
      ['one', 1],
      ['two', 1],
      ['one', 2],
    ] as const)
      insert.run(name, seq, 's', `${name}-${seq}`, seq, now)
    older.exec(`
      CREATE TABLE rivulet_lease (
        name TEXT PRIMARY KEY, token INTEGER NOT NULL, owner TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
        process_started_at INTEGER NOT NULL, expires_at INTEGER NOT NULL
      ) WITHOUT ROWID, STRICT;
    `)
    older
      .prepare(
        "INSERT INTO rivulet_lease VALUES ('checkpoint:one', 1, 'the older one', 'elsewhere', 1, 1, ?)",
      )
      .run(1_000)

    expect(() => storeIn(file, { name: 'two', clock: () => 999 })).toThrow(/in use by the older one/)
    // It can go on with its tables.
    insert.run('one', 3, 's', 'one-3', 3, now)
    older.exec('UPDATE rivulet_lease SET expires_at = 0')
    older.close()

    const state = storeIn(file, { name: 'one' }).load()

    expect([...state.positions]).toEqual([['stream', 'cursor']])
    expect([...state.handled]).toEqual([
      { id: 'one-1', source: 's', parts: 1 },
      { id: 'one-2', source: 's', parts: 2 },
      { id: 'one-3', source: 's', parts: 3 },
    ])
    expect([...storeIn(file, { name: 'two' }).load().handled]).toEqual([
      { id: 'two-1', source: 's', parts: 1 },
    ])
  })

  it('forgets facts beyond its number, the oldest first', () => {
    const file = scratchFile()
    const store = storeIn(file, { maxHandled: 3 })
    store.load()
    store.save(changes({}, ...['a', 'b', 'c', 'd', 'e'].map((id) => fact(id))))

    expect(reloaded(store, file, { maxHandled: 3 }).handled).toEqual([fact('c'), fact('d'), fact('e')])
  })

  it('forgets facts after 48 hours', () => {
    const file = scratchFile()
    let now = 0
    const options = { clock: () => now }
    const store = storeIn(file, options)
    store.load()
    store.save(changes({}, fact('old')))
    now = 1
    store.save(changes({}, fact('new')))
    now = 48 * 3_600_000

    expect(reloaded(store, file, options).handled).toEqual([fact('new')])
  })

  it('forgets its own facts alone, where another pipeline writes between them', () => {
    const file = scratchFile()
    const options = [
      { name: 'few', maxHandled: 2 },
      { name: 'many', maxHandled: 5 },
    ] as const
    const [few, many] = [storeIn(file, options[0]), storeIn(file, options[1])]
    few.load()
    many.load()
    for (const id of ['1', '2', '3', '4', '5', '6']) {
      few.save(changes({}, fact(`few-${id}`)))
      many.save(changes({}, fact(`many-${id}`)))
    }

    expect(reloaded(few, file, options[0]).handled).toEqual(['5', '6'].map((id) => fact(`few-${id}`)))
    expect(reloaded(many, file, options[1]).handled).toEqual(
      ['2', '3', '4', '5', '6'].map((id) => fact(`many-${id}`)),
    )
  })

  it('is pruned of its own facts while it runs too, by their number and by their time', () => {
    let now = 0
    const own = database()
    const store = storeIn(own, { name: 'one', maxHandled: 1_500, remember: 10, clock: () => now })
    const { handled } = store.load()
    const other = storeIn(own, { name: 'other' })
    const others = other.load().handled
    other.save(changes({}, fact('before')))
    const save = (round: number) =>
      store.save(changes({}, ...Array.from({ length: 1_000 }, (_, i) => fact(`${round}-${i}`))))
    for (const round of [1, 2, 3]) save(round)
    const byNumber = [...handled]
    now = 10
    other.save(changes({}, fact('after')))
    save(4)
    const byTime = [...handled]

    expect([byNumber.length, byNumber[0], byNumber.at(-1)]).toEqual([1_500, fact('2-500'), fact('3-999')])
    expect([byTime.length, byTime[0], byTime.at(-1)]).toEqual([1_000, fact('4-0'), fact('4-999')])
    expect([...others]).toEqual([fact('before'), fact('after')])
  })

  it('forgets nothing with a save that fails', () => {
    const own = database()
    const store = storeIn(own, { maxHandled: 1 })
    const { handled } = store.load()
    store.save(changes({}, fact('a')))
    // Whatever forgets a fact cannot be committed.
    own.exec(`
      PRAGMA foreign_keys = ON;
      CREATE TABLE parent (id INTEGER PRIMARY KEY);
      CREATE TABLE child (parent REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED);
      CREATE TRIGGER fail AFTER DELETE ON rivulet_checkpoint_handled BEGIN INSERT INTO child VALUES (1); END
    `)
    const many = Array.from({ length: 1_000 }, (_, i) => fact(`id-${i}`))

    expect(() => store.save(changes({}, ...many))).toThrow(StateFileError)
    expect([...handled]).toEqual([fact('a')])
  })

  it.each([
    ['file', () => sqliteCheckpointStore('')],
    ['file', () => sqliteCheckpointStore(JSON.parse('{}'))],
    ['name', () => sqliteCheckpointStore(':memory:', { name: ' ' })],
    ['owner', () => sqliteCheckpointStore(':memory:', { owner: '' })],
    ['leaseDuration', () => sqliteCheckpointStore(':memory:', { leaseDuration: 0 })],
    ['maxHandled', () => sqliteCheckpointStore(':memory:', { maxHandled: -1 })],
    ['remember', () => sqliteCheckpointStore(':memory:', { remember: -1 })],
    ['effect', () => storeIn(':memory:').exactlyOnce(JSON.parse('1'))],
  ])('refuses a wrong %s at the call', (argument, call) => {
    expect(call).toThrow(ArgumentError)
    expect(call).toThrow(expect.objectContaining({ argument }))
  })
})

describe('a position that cannot be read', () => {
  it('is told with its file and its row, and with the statement that has the stream begin anew', () => {
    const file = scratchFile()
    const options = { name: "it's mine" }
    const store = storeIn(file, options)
    store.load()
    store.save(changes({ "monitors/o'hare": '{', t: 'x' }))

    const { message, ...error } = store.unreadable("monitors/o'hare")
    const statement = /with: (DELETE FROM .*?)\. It was left as it is/.exec(message)?.[1] ?? ''
    store.database.exec(statement)

    expect(error).toMatchObject({ name: 'StateFileError', file })
    expect(message).toContain(
      `${file} has a position that cannot be read: the row of rivulet_checkpoint_position`,
    )
    expect(reloaded(store, file, options).positions).toEqual({ t: 'x' })
  })
})

describe('facts that cannot be read any more', () => {
  it('are told with the file, whether its table or the whole database went', () => {
    const own = database(scratchFile())
    const store = sqliteCheckpointStore(own)
    const { handled } = store.load()
    own.exec('ALTER TABLE rivulet_checkpoint_handled RENAME TO away')
    const withoutTable = () => [...handled]
    expect(withoutTable).toThrow(StateFileError)
    own.close()

    expect(withoutTable).toThrow(/state\.db is closed/)
    expect(() => store.close()).toThrow(/state\.db is closed/)
  })
})

describe('a save', () => {
  it('saves all or nothing', () => {
    const own = database()
    const store = storeIn(own)
    const { handled } = store.load()
    own.exec(`
      CREATE TRIGGER fail BEFORE INSERT ON rivulet_checkpoint_handled WHEN new.id = 'bad'
      BEGIN SELECT raise(ABORT, 'no'); END
    `)

    expect(() => store.save(changes({ s: '1' }, fact('good'), fact('bad')))).toThrow(StateFileError)
    expect([...handled]).toEqual([])
    expect(own.prepare('SELECT * FROM rivulet_checkpoint_position').all()).toEqual([])
  })

  it('on a full disk says so, and goes on once there is room', () => {
    const own = database()
    const store = storeIn(own)
    store.load()
    own.exec('PRAGMA max_page_count = 1')
    const many = Array.from({ length: 1_000 }, (_, i) => fact(`id-${i}`))

    expect(() => store.save(changes({ s: '1' }, ...many))).toThrow(/disk is full/)
    own.exec('PRAGMA max_page_count = 10000')
    store.save(changes({ s: '1' }, ...many))

    expect(own.prepare('SELECT cursor FROM rivulet_checkpoint_position').all()).toEqual([{ cursor: '1' }])
  })

  it('however often it failed, costs no fact that was saved before', () => {
    const file = scratchFile()
    const options = { maxHandled: 20 }
    const store = storeIn(file, options)
    const handler = store.exactlyOnce(({ id }) => {
      if (id === 'bad') throw new Error('no effect')
    })
    store.load()
    const before = Array.from({ length: 10 }, (_, i) => fact(`before-${i}`))
    store.save(changes({ s: '1' }, ...before))
    store.database.exec(
      "CREATE TRIGGER fail BEFORE INSERT ON rivulet_checkpoint_position BEGIN SELECT raise(ABORT, ''); END",
    )
    store.database.exec(
      "CREATE TRIGGER late BEFORE INSERT ON rivulet_checkpoint_handled WHEN NEW.id = 'bad' BEGIN SELECT raise(ABORT, ''); END",
    )
    for (let time = 0; time < 20; time++) {
      expect(() => store.save(changes({ s: '2' }, fact('waits')))).toThrow(StateFileError)
      expect(() => store.save(changes({}, fact('waits'), fact('bad')))).toThrow(StateFileError)
      expect(() => handler(change('bad'))).toThrow('no effect')
    }
    store.database.exec('DROP TRIGGER fail; DROP TRIGGER late')
    store.save(changes({ s: '2' }, fact('waits')))

    expect(reloaded(store, file, options).handled).toEqual([...before, fact('waits')])
  })

  it('within a transaction that you left open says what is wrong', () => {
    const own = database()
    const store = storeIn(own)
    store.load()
    own.exec('BEGIN')

    expect(() => store.save(changes({ s: '1' }))).toThrow(/transaction open on this connection/)
    own.exec('ROLLBACK')
  })

  it('before it was opened, and after it was closed, is a mistake', () => {
    const store = storeIn(database())
    expect(() => store.save(changes({ s: '1' }))).toThrow(CheckpointError)
    store.load()
    store.close()
    expect(() => store.save(changes({ s: '1' }))).toThrow(CheckpointError)
  })
})

describe('a lease', () => {
  it('refuses a second process, named with its file and the time, until the first has ended', async () => {
    const file = scratchFile()
    const holder = startProcess('holding-process.ts', 'checkpoint', file)
    await once(holder.lines, 'line')
    const store = storeIn(file)

    const refusal = await openCheckpoint(store).catch((error: unknown) => error)
    holder.child.kill('SIGKILL')
    await holder.ended
    const taken = await openCheckpoint(store)
    await taken.close()

    expect(refusal).toBeInstanceOf(CheckpointInUseError)
    expect(refusal).toEqual(
      expect.objectContaining({
        file,
        owner: expect.stringContaining(`process ${holder.child.pid} on `),
        expiresAt: expect.any(Number),
        message: expect.stringMatching(/is in use by process \d+ on .* until \d{4}-.*: end that process/),
      }),
    )
  })

  it('refuses a second store of the same process', () => {
    const file = scratchFile()
    storeIn(file, { owner: 'the first' }).load()

    expect(() => storeIn(file).load()).toThrow(/in use by the first/)
    expect(() => storeIn(file, { name: 'another' }).load()).not.toThrow()
  })

  it('that was given up is free at once', () => {
    const file = scratchFile()
    const first = storeIn(file)
    first.load()
    first.close()

    expect(() => storeIn(file).load()).not.toThrow()
  })

  it('that ran out is taken over, and its old owner cannot write any more', () => {
    const file = scratchFile()
    let now = 1_000_000
    const options = { leaseDuration: 60_000, clock: () => now }
    const [paused, next] = [storeIn(file, options), storeIn(file, { ...options, owner: 'the successor' })]
    const effects: string[] = []
    const handler = paused.exactlyOnce(({ id }) => effects.push(id))
    paused.load()
    paused.save(changes({ s: '1' }))

    now += 59_999
    expect(() => next.load()).toThrow(CheckpointInUseError)
    now += 1
    const found = next.load()
    next.save(changes({ s: '2' }))

    expect(found.positions.get('s')).toBe('1')
    expect(() => paused.save(changes({ s: 'old' }))).toThrow(CheckpointInUseError)
    expect(() => paused.save(changes({ s: 'old' }))).toThrow(/taken over by the successor/)
    expect(() => handler(change('a'))).toThrow(CheckpointInUseError)
    paused.close()
    expect(effects).toEqual([])
    expect(reloaded(next, file).positions).toEqual({ s: '2' })
  })

  it('that was taken over has no more effects of its old owner, even before one of his saves', () => {
    const file = scratchFile()
    let now = 0
    const options = { clock: () => now }
    const paused = storeIn(file, options)
    const effects: string[] = []
    const handler = paused.exactlyOnce(({ id }) => effects.push(id))
    paused.load()
    handler(change('a'))
    now = 10_000
    storeIn(file, options).load()

    expect(() => handler(change('b'))).toThrow(CheckpointInUseError)
    expect(effects).toEqual(['a'])
  })

  it('is renewed by a save', () => {
    const file = scratchFile()
    let now = 0
    const options = { leaseDuration: 60_000, clock: () => now }
    const store = storeIn(file, options)
    store.load()
    now = 59_000
    store.save(changes({ s: '1' }))
    now = 118_000

    expect(() => storeIn(file, options).load()).toThrow(CheckpointInUseError)
  })

  it('is written by a save once a third of it is over, not before', () => {
    let now = 0
    const store = storeIn(':memory:', { leaseDuration: 60_000, clock: () => now })
    const expiry = () => store.database.prepare('SELECT expires_at FROM rivulet_lease').get()?.['expires_at']
    store.load()
    const expiries = [0, 20_000, 20_001, 40_000, 40_002].map((time) => {
      now = time
      store.save(changes({ s: String(time) }))
      return expiry()
    })

    expect(expiries).toEqual([60_000, 60_000, 80_001, 80_001, 100_002])
  })

  it('that a failed save renewed is renewed by the next', () => {
    let now = 0
    const store = storeIn(':memory:', { leaseDuration: 60_000, clock: () => now })
    const { database: db } = store
    store.load()
    db.exec(
      "CREATE TRIGGER fail BEFORE INSERT ON rivulet_checkpoint_position BEGIN SELECT raise(ABORT, ''); END",
    )
    now = 30_000
    expect(() => store.save(changes({ s: '1' }))).toThrow(StateFileError)
    db.exec('DROP TRIGGER fail')
    store.save(changes({ s: '1' }))

    expect(db.prepare('SELECT expires_at FROM rivulet_lease').get()).toEqual({ expires_at: 90_000 })
  })

  it('that ran out and was taken by nobody goes on with the next save', () => {
    const file = scratchFile()
    let now = 0
    const store = storeIn(file, { leaseDuration: 60_000, clock: () => now })
    store.load()
    now = 3_600_000
    store.save(changes({ s: '1' }))

    expect(reloaded(store, file).positions).toEqual({ s: '1' })
  })

  it.each([
    ['in another container with the name of this host', `${thisProcess.host}0`],
    ['on a host of which an older version stored only the name', hostname()],
  ])('of a process %s is taken over when it has run out, not before', (_, host) => {
    const own = database(scratchFile())
    let now = 0
    const options = { leaseDuration: 60_000, clock: () => now }
    storeIn(own, options).load()
    // Of a process that is here no more, or never was.
    own
      .prepare('UPDATE rivulet_lease SET host = ?, pid = ?')
      .run(host, spawnSync(process.execPath, ['--version']).pid)
    const next = storeIn(own, options)

    now = 59_999
    expect(() => next.load()).toThrow(CheckpointInUseError)
    now = 60_000
    expect(() => next.load()).not.toThrow()
  })

  it('is not left behind by a store that cannot be read', () => {
    const own = database()
    const store = storeIn(own)
    own.exec('ALTER TABLE rivulet_checkpoint_position RENAME TO away')
    expect(() => store.load()).toThrow(StateFileError)
    own.exec('ALTER TABLE away RENAME TO rivulet_checkpoint_position')

    expect(() => store.load()).not.toThrow()
  })
})

describe('exactlyOnce', () => {
  function effectsIn(file: string | DatabaseSync) {
    const store = storeIn(file)
    const { database: db } = store
    db.exec('CREATE TABLE IF NOT EXISTS effect (id TEXT)')
    const handler = store.exactlyOnce(({ id }, given) => {
      given.prepare('INSERT INTO effect VALUES (?)').run(id)
    })
    const { handled } = store.load()
    const effects = () =>
      db
        .prepare('SELECT id FROM effect')
        .all()
        .map(({ id }) => id)
    return { store, handler, handled, effects, db }
  }

  it('runs the effect and notes the event in one go, and skips the event from then on', () => {
    const { handler, handled, effects } = effectsIn(':memory:')

    handler(change('a'))
    handler(change('b'))
    handler(change('a', 'm', 'webhook'))

    expect(effects()).toEqual(['a', 'b'])
    expect(Array.from(handled, ({ id }) => id)).toEqual(['a', 'b'])
  })

  it('runs it again for a copy that says more, and not for one that says less', () => {
    const { handler, handled, effects } = effectsIn(':memory:')

    handler(bareRun('r'))
    handler(fullRun('r'))
    handler(bareRun('r'))

    expect(effects()).toEqual([fullRun('r').id, fullRun('r').id])
    expect(Array.from(handled, ({ parts: told }) => told)).toEqual([0, completeness(fullRun('r'))])
  })

  it('leaves nothing to be recorded again for the save', () => {
    const { store, handler, handled } = effectsIn(':memory:')
    const { id, source } = change('a')
    handler(change('a'))
    store.save(changes({ s: '1' }, { id, source, parts: 0 }))

    expect([...handled]).toEqual([{ id, source, parts: 0 }])
  })

  it('takes back what the effect did before it failed, and throws its error', () => {
    const { store, effects, db, handled } = effectsIn(':memory:')
    const failure = new Error('no such account')
    const failing = store.exactlyOnce(({ id }) => {
      db.prepare('INSERT INTO effect VALUES (?)').run(id)
      throw failure
    })

    expect(() => failing(change('a'))).toThrow(failure)
    expect([effects(), [...handled]]).toEqual([[], []])
  })

  it('refuses an effect that is asynchronous, and takes back what it did so far', () => {
    const { store, effects, db, handled } = effectsIn(':memory:')
    const late = store.exactlyOnce(async ({ id }) => {
      db.prepare('INSERT INTO effect VALUES (?)').run(id)
      throw new Error('nobody hears of it')
    })

    expect(() => late(change('a'))).toThrow(CheckpointError)
    expect(() => late(change('a'))).toThrow(/synchronous/)
    expect([effects(), [...handled]]).toEqual([[], []])
  })

  it.each(['COMMIT', 'ROLLBACK'])('refuses an effect with a %s of its own', (sql) => {
    const { store, db } = effectsIn(':memory:')
    const handler = store.exactlyOnce(() => db.exec(sql))

    expect(() => handler(change('a'))).toThrow(/ended its transaction/)
  })

  it('does not run before the store is opened', () => {
    const effects: string[] = []
    const handler = storeIn(':memory:').exactlyOnce(({ id }) => effects.push(id))

    expect(() => handler(change('a'))).toThrow(CheckpointError)
    expect(effects).toEqual([])
  })

  it('holds through a process that is killed again and again', async () => {
    const file = scratchFile()
    const events = 2_000
    const random = seeded(20_260_101)
    let kills = 0
    let ending: unknown
    while (ending === undefined) {
      const { child, ended, lines } = startProcess('exactly-once-process.ts', file, String(events))
      const lifetime = 1 + Math.floor(random() * 200)
      let told = 0
      lines.on('line', () => {
        told += 1
        if (kills < 5 && told === lifetime) child.kill('SIGKILL')
      })
      const result = await ended
      if (result === 'SIGKILL') kills += 1
      else ending = result
    }

    const rows = database(file)
      .prepare('SELECT count(*) AS n, count(DISTINCT id) AS different FROM effects')
      .get()
    const found = storeIn(file).load()
    expect(kills).toBeGreaterThan(0)
    expect(ending).toBe(0)
    expect(rows).toEqual({ n: events, different: events })
    expect(found.positions.get('s')).toBe(String(events))
  })
})

describe('a file that cannot be used', () => {
  /** A file with a checkpoint of many facts in it. */
  function filled(): string {
    const file = scratchFile()
    const store = sqliteCheckpointStore(file)
    store.load()
    store.save(changes({ s: '1' }, ...Array.from({ length: 2_000 }, (_, i) => fact(`id-${i}`))))
    store.close()
    return file
  }

  function overwrite(file: string, at: number, bytes: Uint8Array): void {
    const descriptor = openSync(file, 'r+')
    writeSync(descriptor, bytes, 0, bytes.length, at)
    closeSync(descriptor)
  }

  const cases: readonly (readonly [what: string, make: () => string, message: RegExp])[] = [
    [
      'something else',
      () => {
        const file = scratchFile()
        writeFileSync(file, 'my letters, '.repeat(1_000))
        return file
      },
      /no SQLite database.*restore it.*or name another file/,
    ],
    [
      'cut off',
      () => {
        const file = filled()
        truncateSync(file, 8_192)
        return file
      },
      /damaged.*restore it/,
    ],
    [
      'damaged within',
      () => {
        const file = filled()
        const size = readFileSync(file).length
        overwrite(file, 4_096 * 3, new Uint8Array(size - 4_096 * 4).fill(0xa5))
        return file
      },
      /damaged.*restore it/,
    ],
    [
      'written by a newer version',
      () => {
        const file = filled()
        const own = new DatabaseSync(file)
        own.exec("UPDATE rivulet_state SET version = 3 WHERE part = 'checkpoint'")
        own.close()
        return file
      },
      /newer version \(3, this one knows 2\): use that version/,
    ],
  ]

  it.each(cases)('because it is %s is named, and left as it is', (_, make, message) => {
    const file = make()
    const before = readFileSync(file)

    expect(() => sqliteCheckpointStore(file)).toThrow(StateFileError)
    expect(() => sqliteCheckpointStore(file)).toThrow(message)
    expect(() => sqliteCheckpointStore(file)).toThrow(expect.objectContaining({ file }))
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('because it is a folder is named', () => {
    const folder = scratchFolder()

    expect(() => sqliteCheckpointStore(folder)).toThrow(`${folder} is a folder`)
  })

  it('because its folder is missing is named, and nothing is created', () => {
    const file = join(scratchFolder(), 'missing', 'state.db')

    expect(() => sqliteCheckpointStore(file)).toThrow(/cannot be opened: create its folder/)
    expect(existsSync(file)).toBe(false)
  })

  it('because nobody may write it is named, and left as it is', () => {
    const file = filled()
    chmodSync(dirname(file), 0o755)
    chmodSync(file, 0o444)
    const before = readFileSync(file)

    asOrdinaryUser(() => {
      expect(() => sqliteCheckpointStore(file)).toThrow(StateFileError)
      expect(() => sqliteCheckpointStore(file)).toThrow(
        /cannot be written: give this process write permission/,
      )
    })
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('because the database was opened to be read only is named', () => {
    const file = filled()
    const readOnly = new DatabaseSync(file, { readOnly: true })
    onTestFinished(() => readOnly.close())

    expect(() => sqliteCheckpointStore(readOnly)).toThrow(
      /cannot be written: give this process write permission/,
    )
  })

  it('because another program holds it locked is named', () => {
    const file = filled()
    const other = database(file)
    other.exec('BEGIN EXCLUSIVE')
    const own = database(file)

    expect(() => sqliteCheckpointStore(own)).toThrow(/locked by another program/)
  })
})

/** mulberry32. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), state | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
