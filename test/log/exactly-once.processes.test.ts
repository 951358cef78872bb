import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { promisify } from 'node:util'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openLog } from '../../src/log/event-log/open-log.ts'
import { exactlyOnce } from '../../src/log/sqlite/exactly-once.ts'
import { sqliteStore } from '../../src/log/sqlite/index.ts'
import { change, bareRun, fullRun } from '../operators/events.ts'
import { randomOf } from '../../bench/random.ts'
import { programFiles } from '../support/programs.ts'
import { append } from './append.ts'
import { scratchFolder } from './sqlite/scratch.ts'

const fileOf = await programFiles()
const execArgv = ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning']

function start(file: string, effects: string, expected: number, mode = '') {
  const args = [file, effects, String(expected), mode]
  const child = fork(fileOf('test/log/exactly-once-process.ts'), args, { execArgv })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, exited: once(child, 'exit') }
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await turn()
}

/** A log file with so many entries, and a file for effects, which may be the same. */
async function withEntries(count: number, where: 'apart' | 'in the log') {
  const folder = scratchFolder()
  const file = join(folder, 'log.db')
  const effects = where === 'apart' ? join(folder, 'effects.db') : file
  const store = sqliteStore(file)
  onTestFinished(() => store.close())
  for (let n = 0; n < count; n += 100) {
    const events = Array.from({ length: Math.min(100, count - n) }, (_, i) =>
      change(`${n + i + 1}`, `m${i % 7}`),
    )
    await append(store, events)
  }
  return { file, effects, store }
}

function audit(file: string, effects: string) {
  const open = (path: string) => {
    const database = new DatabaseSync(path, { readOnly: true })
    onTestFinished(() => database.close())
    return database
  }
  const applied = open(effects)
    .prepare('SELECT id, revision, COUNT(*) AS times FROM effect GROUP BY id, revision')
    .all()
  const recorded = open(file)
    .prepare("SELECT json_extract(event, '$.id') AS id, revision FROM rivulet_entry")
    .all()
  const known = new Set(applied.map(({ id, revision }) => `${id} ${revision}`))
  return {
    doubled: applied.filter(({ times }) => times !== 1),
    missing: recorded.filter(({ id, revision }) => !known.has(`${id} ${revision}`)),
    applied: applied.length,
    recorded: recorded.length,
  }
}

describe('exactlyOnce in a process that is killed at random moments', () => {
  it.each([
    ['apart', ''],
    ['in the log', ''],
    ['apart', 'failing'],
    ['apart', 'violating'],
    ['apart', 'batches'],
    ['in the log', 'batches'],
    ['apart', 'batches failing'],
  ] as const)(
    'applies each entry once, with its database %s %s',
    { timeout: 60_000 },
    async (where, mode) => {
      const count = 600
      const { file, effects, store } = await withEntries(count, where)
      await append(store, [bareRun('r'), fullRun('r')])
      const log = await openLog(store)
      const random = randomOf(20_261_122)
      const total = count + 2
      const failing = mode === '' || mode === 'batches' ? 0 : count / 10
      let kills = 0
      for (let isDone = false; !isDone;) {
        const { child, exited } = start(file, effects, total - failing, mode)
        const lifetime = 1 + Math.floor(random() * 150)
        const done = new Promise<void>((resolve) => {
          child.on('message', (message: { readonly applied?: number; readonly done?: boolean }) => {
            if (kills < 4 && message.applied === lifetime && child.kill('SIGKILL')) kills += 1
            if (message.done === true) resolve()
          })
        })
        isDone = await Promise.race([done.then(() => true), exited.then(() => false)])
        // Only its last dead letters may be under way.
        if (isDone && failing > 0)
          await until(async () => (await log.deadLetters('ledger').count()) === failing)
        child.kill('SIGKILL')
        await exited
      }
      if (failing > 0) {
        await log.deadLetters('ledger').redeliver('all')
        const mended = start(file, effects, total, mode.startsWith('batches') ? 'batches' : '')
        await until(async () => (await log.deadLetters('ledger').count()) === 0)
        mended.child.kill('SIGKILL')
        await mended.exited
      }
      expect(kills).toBeGreaterThan(1)
      expect(audit(file, effects)).toEqual({ doubled: [], missing: [], applied: total, recorded: total })
    },
  )
})

describe('exactlyOnce in a process that is suspended', () => {
  it('applies nothing any more after it was taken over', { timeout: 30_000 }, async () => {
    const { file, effects, store } = await withEntries(20, 'apart')
    const { child, exited } = start(file, effects, 20, 'suspended')
    await once(child, 'message')
    const messages: unknown[] = []
    child.on('message', (message) => messages.push(message))
    child.kill('SIGSTOP')
    for (;;) {
      const { stdout } = await promisify(execFile)('ps', ['-o', 'stat=', '-p', String(child.pid)])
      if (stdout.startsWith('T')) break
    }
    // As a lock that was lost: its owner does not notice.
    const locks = new DatabaseSync(file, { readOnly: true })
    const claim = locks.prepare("SELECT slot FROM rivulet_claim WHERE name = 'consumer:ledger'").get()
    locks.close()
    unlinkSync(`${file}-lock-${claim?.['slot']}`)

    const database = new DatabaseSync(effects)
    onTestFinished(() => database.close())
    const insert = database.prepare('INSERT INTO effect VALUES (?, ?)')
    const log = await openLog(store)
    const job = log.consume(
      'ledger',
      {},
      exactlyOnce(database, { effect: ({ id, revision }) => void insert.run(id, revision) }),
    )
    await until(() => audit(file, effects).applied === 20)
    child.kill('SIGCONT')
    child.send('go on')
    await exited
    expect(messages).toContainEqual({ failed: 'FencedError' })
    await job.stop()
    expect(audit(file, effects)).toEqual({ doubled: [], missing: [], applied: 20, recorded: 20 })
  })
})
