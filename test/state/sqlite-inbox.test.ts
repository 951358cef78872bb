import { once } from 'node:events'
import { chmodSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { ArgumentError, signWebhook } from 'rivulet/webhooks'
import type { WebhookDelivery } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteInbox, StateFileError, StateInUseError } from '../../src/state/sqlite.ts'
import type { SqliteInbox, SqliteInboxOptions } from '../../src/state/sqlite.ts'
import { asOrdinaryUser, scratchFile, startProcess } from './scratch.ts'

const HOUR = 3_600_000

function delivery(id: string, payload: unknown = { for: id }): WebhookDelivery {
  return { id, timestamp: 1_760_000_000, payload }
}

/** An inbox that is closed when the test is over. */
function inboxIn(file: string | DatabaseSync, options?: SqliteInboxOptions): SqliteInbox {
  const inbox = sqliteInbox(file, options)
  onTestFinished(() => inbox.close())
  return inbox
}

function database(file = ':memory:'): DatabaseSync {
  const opened = new DatabaseSync(file)
  onTestFinished(() => {
    if (opened.isOpen) opened.close()
  })
  return opened
}

/** The inbox as the next process finds it. */
function restarted(inbox: SqliteInbox, file: string, options?: SqliteInboxOptions): SqliteInbox {
  inbox.close()
  return inboxIn(file, options)
}

function putAll(inbox: SqliteInbox, ...ids: readonly string[]) {
  return Promise.all(ids.map((id) => inbox.put(delivery(id))))
}

function takeAll(inbox: SqliteInbox): string[] {
  const ids: string[] = []
  for (let next = inbox.take(); next !== undefined; next = inbox.take()) ids.push(next.id)
  return ids
}

function storedIds(db: DatabaseSync): unknown[] {
  return db
    .prepare('SELECT id FROM rivulet_inbox ORDER BY seq')
    .all()
    .map(({ id }) => id)
}

describe('an inbox in SQLite', () => {
  it('hands out what was put, as it was, oldest first, each once', async () => {
    const inbox = inboxIn(':memory:')
    const odd = delivery('a', { text: '✓ 漢字 \u{1F980}', deep: [[{ n: 1.5 }], null] })
    await inbox.put(odd)
    await inbox.put(delivery('b'))

    expect([inbox.take(), inbox.take(), inbox.take()]).toEqual([odd, delivery('b'), undefined])
  })

  it('stores the text that a payload was parsed from as it is', async () => {
    const db = database()
    const inbox = inboxIn(db)
    const text = '{ "n": 1.50e+01,\n"n":2, "s":"\\u2713" }'
    const { payload } = delivery('a', JSON.parse(text))

    await inbox.put(delivery('a', payload), text)
    const rows = db.prepare('SELECT payload FROM rivulet_inbox').all()

    expect(rows).toEqual([{ payload: text }])
    expect(inbox.take()?.payload).toEqual(payload)
  })

  it('has any JSON object back as it was parsed, after a restart too', async () => {
    const file = scratchFile()
    const inbox = inboxIn(file)
    const parsed = new Map<string, unknown>()
    // Escaped and not, with lone surrogates, numbers beyond a double, repeated and odd keys.
    const texts = fc.oneof(
      fc
        .dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
        .map((value) => JSON.stringify(value, null, 1)),
      fc.constantFrom(
        '{"n":1e400}',
        '{"n":-0}',
        '{"__proto__":{"a":1}}',
        '{"a":1,"a":2}',
        '{"s":"\u2028\uFFFF"}',
      ),
    )
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const payload: unknown = JSON.parse(text)
        const id = `id-${parsed.size}`
        parsed.set(id, payload)
        expect(await inbox.put(delivery(id, payload), text)).toBe('stored')
        expect(inbox.take()).toEqual(delivery(id, payload))
      }),
    )

    const next = restarted(inbox, file)

    for (const [id, payload] of parsed) expect(next.take()).toEqual(delivery(id, payload))
  })

  it('rejects what cannot be stored as JSON, and stores the rest of its burst', async () => {
    const inbox = inboxIn(':memory:')

    const [bad, good] = await Promise.allSettled([
      inbox.put(delivery('bad', { n: 1n })),
      inbox.put(delivery('good')),
    ])

    expect([bad.status, good.status]).toEqual(['rejected', 'fulfilled'])
    expect(takeAll(inbox)).toEqual(['good'])
  })

  it('knows a duplicate, before and after it was handed out and done', async () => {
    const inbox = inboxIn(':memory:')
    const outcomes = await putAll(inbox, 'a', 'a')
    outcomes.push(await inbox.put(delivery('a')))
    inbox.take()
    outcomes.push(await inbox.put(delivery('a')))
    await inbox.done('a')
    outcomes.push(await inbox.put(delivery('a')))

    expect(outcomes).toEqual(['stored', 'duplicate', 'duplicate', 'duplicate', 'duplicate'])
    expect(inbox.take()).toBeUndefined()
  })

  it('hands out again after a restart what was not done, and nothing else', async () => {
    const file = scratchFile()
    const inbox = inboxIn(file)
    await putAll(inbox, 'a', 'b', 'c', 'd')
    inbox.take()
    inbox.take()
    inbox.take()
    await inbox.done('b')

    const next = restarted(inbox, file)

    expect(takeAll(next)).toEqual(['a', 'c', 'd'])
  })

  it('rewound, hands out again from the oldest what is not done, then what came since', async () => {
    const inbox = inboxIn(':memory:')
    await putAll(inbox, 'a', 'b', 'c', 'd')
    takeAll(inbox)
    await inbox.done('b')

    inbox.rewind()
    const again = [inbox.take()?.id, inbox.take()?.id]
    await putAll(inbox, 'e')
    const rest = takeAll(inbox)

    expect([...again, ...rest]).toEqual(['a', 'c', 'd', 'e'])
  })

  it('rewound, hands out nothing that was said to be done a moment before', async () => {
    const inbox = inboxIn(':memory:')
    await putAll(inbox, 'a', 'b')
    takeAll(inbox)

    const pending = [inbox.done('a'), inbox.put(delivery('c'))]
    inbox.rewind()
    const again = takeAll(inbox)

    expect(again).toEqual(['b', 'c'])
    expect(await Promise.all(pending)).toEqual([undefined, 'stored'])
  })

  it('rewound while its file is locked, hands out again what could not be marked as done', async () => {
    const file = scratchFile()
    const inbox = inboxIn(database(file))
    await putAll(inbox, 'a')
    takeAll(inbox)
    const other = database(file)
    other.exec('BEGIN IMMEDIATE')

    const [marked] = await Promise.allSettled([inbox.done('a'), inbox.rewind()])
    other.exec('ROLLBACK')

    expect(marked.status).toBe('rejected')
    expect(takeAll(inbox)).toEqual(['a'])
  })

  it('knows duplicates across restarts for 48 hours, and forgets them then', async () => {
    const file = scratchFile()
    let now = 1_000
    const options = { clock: () => now }
    let inbox = inboxIn(file, options)
    await putAll(inbox, 'a')
    await inbox.done('a')
    now += 48 * HOUR
    inbox = restarted(inbox, file, options)
    const atTheEnd = await inbox.put(delivery('a'))
    now += 1
    inbox = restarted(inbox, file, options)
    const afterwards = await inbox.put(delivery('a'))

    expect([atTheEnd, afterwards]).toEqual(['duplicate', 'stored'])
    expect(takeAll(inbox)).toEqual(['a'])
  })

  it('forgets while it runs too, and never what is not done', async () => {
    const db = database()
    let now = 0
    const inbox = inboxIn(db, { clock: () => now })
    await putAll(inbox, 'open', 'done')
    await inbox.done('done')
    now = 49 * HOUR
    await putAll(inbox, 'new')

    expect(storedIds(db)).toEqual(['open', 'new'])
  })

  it('hands out what comes after everything before was forgotten', async () => {
    const db = database()
    let now = 0
    const inbox = inboxIn(db, { clock: () => now })
    await putAll(inbox, 'a', 'b')
    takeAll(inbox)
    await Promise.all([inbox.done('a'), inbox.done('b')])
    now = 100 * HOUR
    await inbox.done('to have it forget')
    const left = storedIds(db)
    await putAll(inbox, 'c')

    expect(left).toEqual([])
    expect(takeAll(inbox)).toEqual(['c'])
  })

  it('keeps no payload of what is done', async () => {
    const db = database()
    const inbox = inboxIn(db)
    await putAll(inbox, 'a')
    await inbox.done('a')

    expect(db.prepare('SELECT payload FROM rivulet_inbox').all()).toEqual([{ payload: null }])
  })

  it('is full at its bound, and has room again once one is done', async () => {
    const inbox = inboxIn(':memory:', { maxPending: 2 })

    const first = await putAll(inbox, 'a', 'b', 'c', 'a')
    takeAll(inbox)
    const taken = await inbox.put(delivery('c'))
    await inbox.done('a')
    const done = await inbox.put(delivery('c'))

    expect(first).toEqual(['stored', 'stored', 'full', 'duplicate'])
    expect([taken, done]).toEqual(['full', 'stored'])
  })

  it('counts what waits from before', async () => {
    const file = scratchFile()
    const inbox = inboxIn(file, { maxPending: 2 })
    await putAll(inbox, 'a', 'b')

    expect(await restarted(inbox, file, { maxPending: 2 }).put(delivery('c'))).toBe('full')
  })

  it.each([
    ['file', () => sqliteInbox(' ')],
    ['maxPending', () => sqliteInbox(':memory:', { maxPending: 0 })],
    ['remember', () => sqliteInbox(':memory:', { remember: Number.NaN })],
    ['leaseDuration', () => sqliteInbox(':memory:', { leaseDuration: 0.5 })],
  ])('refuses a wrong %s at the call', (argument, call) => {
    expect(call).toThrow(ArgumentError)
    expect(call).toThrow(expect.objectContaining({ argument }))
  })
})

describe('a commit', () => {
  it('takes all that came in one turn of the event loop, and is before any of it is answered', async () => {
    const file = scratchFile()
    const db = database(file)
    const reader = database(file)
    const inbox = inboxIn(db)
    const exec = vi.spyOn(db, 'exec')
    const stored = () => reader.prepare('SELECT count(*) AS n FROM rivulet_inbox').get()?.['n']
    const seen: unknown[] = []

    const puts = Array.from({ length: 50 }, (_, i) =>
      inbox.put(delivery(`id-${i}`)).then(() => seen.push(stored())),
    )
    const before = stored()
    await Promise.all(puts)

    expect(before).toBe(0)
    expect(new Set(seen)).toEqual(new Set([50]))
    expect(exec.mock.calls.filter(([sql]) => sql === 'COMMIT')).toHaveLength(1)
  })

  it('takes puts and dones together', async () => {
    const db = database()
    const inbox = inboxIn(db)
    await putAll(inbox, 'a', 'b')
    const exec = vi.spyOn(db, 'exec')

    await Promise.all([inbox.done('a'), inbox.put(delivery('c')), inbox.done('b')])

    expect(exec.mock.calls.map(([sql]) => sql)).toEqual(['BEGIN IMMEDIATE', 'COMMIT'])
  })

  it('that fails stores nothing, rejects every put, and the next try is no duplicate', async () => {
    const file = scratchFile()
    const inbox = inboxIn(database(file))
    const other = database(file)
    other.exec('BEGIN EXCLUSIVE')

    const failed = await Promise.allSettled([inbox.put(delivery('a')), inbox.put(delivery('b'))])
    other.exec('ROLLBACK')
    const retried = await putAll(inbox, 'a', 'b')

    expect(failed).toEqual([
      { status: 'rejected', reason: expect.any(StateFileError) },
      { status: 'rejected', reason: expect.any(StateFileError) },
    ])
    expect(retried).toEqual(['stored', 'stored'])
    expect(takeAll(inbox)).toEqual(['a', 'b'])
  })

  it('that fails half way leaves its room free', async () => {
    const db = database()
    const inbox = inboxIn(db, { maxPending: 1 })
    db.exec(`
      CREATE TRIGGER fail BEFORE INSERT ON rivulet_inbox WHEN new.id = 'bad'
      BEGIN SELECT raise(ABORT, 'no'); END
    `)
    await inbox.put(delivery('done'))
    const failed = await Promise.allSettled([inbox.done('done'), inbox.put(delivery('bad'))])
    const retried = await putAll(inbox, 'a')

    expect(failed.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect(retried).toEqual(['stored'])
    expect(await inbox.put(delivery('b'))).toBe('full')
  })

  it('on a full disk rejects puts, and still takes the dones that make room', async () => {
    const db = database()
    const inbox = inboxIn(db)
    const large = { text: 'x'.repeat(50_000) }
    await inbox.put(delivery('a', large))
    const pages = Number(db.prepare('PRAGMA page_count').get()?.['page_count'])
    db.exec(`PRAGMA max_page_count = ${pages}`)

    const [put, done] = await Promise.allSettled([
      inbox.put(delivery('b', { ...large, more: large })),
      inbox.done('a'),
    ])
    const retried = await inbox.put(delivery('b', large))

    expect(put).toEqual({
      status: 'rejected',
      reason: expect.objectContaining({ message: expect.stringContaining('disk is full') }),
    })
    expect([done.status, retried]).toEqual(['fulfilled', 'stored'])
    expect(takeAll(inbox)).toEqual(['b'])
  })

  it('into a file that has become read only rejects', async () => {
    const db = database()
    const inbox = inboxIn(db)
    db.exec('PRAGMA query_only = ON')

    await expect(inbox.put(delivery('a'))).rejects.toThrow(/cannot be written/)
    await expect(inbox.done('a')).rejects.toThrow(/cannot be written/)
    db.exec('PRAGMA query_only = OFF')
  })

  it('comes with close, for what waits', async () => {
    const file = scratchFile()
    const inbox = inboxIn(file)

    const put = inbox.put(delivery('a'))
    inbox.close()

    expect(await put).toBe('stored')
    expect(takeAll(inboxIn(file))).toEqual(['a'])
    await expect(inbox.put(delivery('b'))).rejects.toThrow(StateFileError)
    await expect(inbox.done('a')).rejects.toThrow(/closed/)
  })
})

describe('an inbox in use', () => {
  it('is refused to another process, and free once that has ended, however it did', async () => {
    const file = scratchFile()
    const holder = startProcess('holding-process.ts', 'inbox', file)
    await once(holder.lines, 'line')

    expect(() => sqliteInbox(file)).toThrow(StateInUseError)
    expect(() => sqliteInbox(file)).toThrow(/the inbox in .* is in use by process \d+/)
    holder.child.kill('SIGKILL')
    await holder.ended

    expect(() => inboxIn(file)).not.toThrow()
  })

  it('that was taken over takes and hands out nothing more', async () => {
    const file = scratchFile()
    let now = 0
    const options = { leaseDuration: 60_000, clock: () => now }
    const paused = inboxIn(file, options)
    await putAll(paused, 'a')
    now = 60_000
    const successor = inboxIn(file, options)

    await expect(paused.put(delivery('b'))).rejects.toThrow(StateInUseError)
    expect(() => paused.take()).toThrow(/taken over/)
    expect(() => paused.rewind()).toThrow(/taken over/)
    expect(takeAll(successor)).toEqual(['a'])
  })
})

describe('a webhook that cannot be read', () => {
  async function poisoned(payload: string): Promise<string> {
    const file = scratchFile()
    const inbox = inboxIn(file)
    await putAll(inbox, 'good', 'bad', 'better')
    inbox.close()
    const db = database(file)
    db.prepare("UPDATE rivulet_inbox SET payload = ? WHERE id = 'bad'").run(payload)
    db.close()
    return file
  }

  it.each(['{"type":', '', 'null', '5', '"text"', '[{}]'])(
    'keeps the inbox from opening, and tells which and what to do: %j',
    async (payload) => {
      const file = await poisoned(payload)
      const rows = () => {
        const db = new DatabaseSync(file)
        const all = db.prepare('SELECT * FROM rivulet_inbox').all()
        db.close()
        return all
      }
      const before = rows()

      expect(() => sqliteInbox(file)).toThrow(StateFileError)
      expect(() => sqliteInbox(file)).toThrow(
        /state\.db has a webhook.*seq 2 and id "bad".*DELETE FROM rivulet_inbox WHERE seq = 2/,
      )
      expect(rows()).toEqual(before)
    },
  )

  it('opens again once what the message says was done', async () => {
    const file = await poisoned('nonsense')
    const db = database(file)
    db.exec('DELETE FROM rivulet_inbox WHERE seq = 2')
    db.close()

    expect(takeAll(inboxIn(file))).toEqual(['good', 'better'])
  })

  it('while the inbox is open is told when its turn comes, and not passed over', async () => {
    const db = database()
    const inbox = inboxIn(db)
    await putAll(inbox, 'good', 'bad')
    db.exec("UPDATE rivulet_inbox SET payload = 'nonsense' WHERE id = 'bad'")

    expect(inbox.take()?.id).toBe('good')
    expect(() => inbox.take()).toThrow(StateFileError)
    expect(() => inbox.take()).toThrow(/id "bad"/)
  })

  it('is not one that nests deeper than SQLite likes', async () => {
    const file = scratchFile()
    const inbox = inboxIn(file)
    const deep: unknown = JSON.parse(`${'['.repeat(3_000)}${']'.repeat(3_000)}`)
    await inbox.put(delivery('deep', { deep }))

    expect(restarted(inbox, file).take()?.payload).toEqual({ deep })
  })

  it.each([null, undefined, 5, ['a']])('cannot be put: %j', async (payload) => {
    const inbox = inboxIn(':memory:')

    await expect(inbox.put({ ...delivery('a'), payload })).rejects.toThrow(ArgumentError)
    expect(inbox.take()).toBeUndefined()
  })
})

describe('a file that cannot be used as an inbox', () => {
  /** A file with many webhooks in it. */
  async function filled(): Promise<string> {
    const file = scratchFile()
    const inbox = sqliteInbox(file)
    await putAll(inbox, ...Array.from({ length: 2_000 }, (_, i) => `id-${i}`))
    inbox.close()
    return file
  }

  function changed(file: string, sql: string): void {
    const db = new DatabaseSync(file)
    db.exec(sql)
    db.close()
  }

  const cases: readonly (readonly [what: string, damage: (file: string) => void, message: RegExp])[] = [
    [
      'something else',
      (file) => writeFileSync(file, 'my letters, '.repeat(1_000)),
      /no SQLite database.*restore it.*or name another file/,
    ],
    ['cut off', (file) => truncateSync(file, 8_192), /damaged.*restore it/],
    [
      'damaged within',
      (file) => writeFileSync(file, readFileSync(file).fill(0xa5, 4_096 * 3)),
      /damaged.*restore it/,
    ],
    [
      'written by a newer version',
      (file) => changed(file, "UPDATE rivulet_state SET version = 7 WHERE part = 'inbox'"),
      /its inbox in the layout of a newer version \(7, this one knows 1\): use that version/,
    ],
  ]

  it.each(cases)('because it is %s is named, and left as it is', async (_, damage, message) => {
    const file = await filled()
    damage(file)
    const before = readFileSync(file)

    expect(() => sqliteInbox(file)).toThrow(StateFileError)
    expect(() => sqliteInbox(file)).toThrow(message)
    expect(() => sqliteInbox(file)).toThrow(expect.objectContaining({ file }))
    expect(readFileSync(file).equals(before)).toBe(true)
  })

  it('because nobody may write it is named, and left as it is', async () => {
    const file = await filled()
    chmodSync(dirname(file), 0o755)
    chmodSync(file, 0o444)
    const before = readFileSync(file)

    asOrdinaryUser(() => {
      expect(() => sqliteInbox(file)).toThrow(StateFileError)
      expect(() => sqliteInbox(file)).toThrow(/cannot be written: give this process write permission/)
    })
    expect(readFileSync(file).equals(before)).toBe(true)
  })
})

describe('a receiver that is killed', () => {
  it('has kept every webhook that it answered 2xx', async () => {
    const file = scratchFile()
    const secret = 'the account secret'
    const receiving = startProcess('receiving-process.ts', file, secret)
    const [port] = await once(receiving.lines, 'line')
    const accepted: string[] = []
    const send = async (sender: number) => {
      for (let i = 0; i < 1_000; i++) {
        const id = `${sender}-${i}`
        const body = JSON.stringify({ type: 'task_run.status', data: { run_id: id } })
        const headers = { ...(await signWebhook({ id, body, secrets: secret })) }
        const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body, headers })
        await response.arrayBuffer()
        if (response.status === 204) accepted.push(id)
        if (accepted.length === 137) receiving.child.kill('SIGKILL')
      }
    }

    const senders = await Promise.allSettled(Array.from({ length: 16 }, (_, i) => send(i)))
    await receiving.ended
    const kept = new Set(takeAll(inboxIn(file)))

    expect(senders.map(({ status }) => status)).toEqual(senders.map(() => 'rejected'))
    expect(accepted.length).toBeGreaterThanOrEqual(137)
    expect(accepted.filter((id) => !kept.has(id))).toEqual([])
  })
})
