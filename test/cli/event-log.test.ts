import { setImmediate as turn } from 'node:timers/promises'
import { cpSync, existsSync, readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { groupEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { append } from '../log/append.ts'
import { tickAt } from '../support/ticks.ts'
import { rivulet } from './command.ts'
import { inProcess } from './in-process.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'

/** The end of a run, with this answer. */
function run(id: string, content = 'an answer'): ResearchEvent {
  return groupEvent(
    'tgrp_1',
    {
      type: 'task_run.state',
      event_id: id,
      run: { run_id: id, status: 'completed', modified_at: null },
      output: { type: 'text', content, basis: [] },
    },
    'stream',
    undefined,
    Date.UTC(2026, 0, 1),
  )
}

const status = (total: number): ResearchEvent =>
  groupEvent(
    'tgrp_1',
    {
      type: 'task_group_status',
      event_id: `s${total}`,
      status: { num_task_runs: total, task_run_status_counts: {}, is_active: true },
    },
    'stream',
    undefined,
    Date.UTC(2026, 0, 1),
  )

/** A folder with a log of these events, and a function that appends more. */
async function logOf(events: readonly ResearchEvent[], clock?: () => number) {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-log-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'log.db')
  const store = sqliteStore(file, clock === undefined ? {} : { clock })
  onTestFinished(() => store.close())
  await store.positionAt('start')
  if (events.length > 0) await append(store, events)
  return { file, add: (...more: readonly ResearchEvent[]) => append(store, more) }
}

/** A function that moves the position of a stream, together with events. */
function mover(store: ReturnType<typeof sqliteStore>) {
  return async (stream: string, position: unknown, ...events: readonly ResearchEvent[]) => {
    const fence = await store.claim(`stream:${stream}`)
    const [expected = null] = await store.streamPositions([fence.name])
    const entries = events.map((event) => newEntry(event))
    await store.append([{ fence, expect: expected, position: JSON.stringify(position), entries }])
    await store.release(fence)
  }
}

const parsed = (stdout: string): { id: string; position: string }[] =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

const ids = (stdout: string) => parsed(stdout).map(({ id }) => id)

const all = (count: number) => Array.from({ length: count }, (_, n) => run(`trun_${n}`))

// What another process has to do with it is tried with one; the rest runs within this one.

describe('rivulet log read', () => {
  it('prints the entries of a log, oldest first, while another process has it open', async () => {
    // More than a page.
    const { file } = await logOf([])
    const store = sqliteStore(file)
    for (let n = 0; n < 1_200; n += 200) await append(store, all(n + 200).slice(n))
    await store.close()
    const { code, stdout, stderr } = await rivulet(['log', 'read', '--log', file, '--json']).ended

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(ids(stdout)).toEqual(all(1_200).map(({ id }) => id))
  })

  it('prints a line for a person', async () => {
    const { file } = await logOf([run('trun_1', 'a solid electrolyte'), status(3)])
    const { stdout } = await inProcess(['log', 'read', '--log', file])

    expect(stdout).toMatch(/✔ completed {2}trun_1: a solid electrolyte {2}stream\n.*▸ group {6}tgrp_1: /)
  })

  it('prints a part: a type, a number, after a position, from a time', async () => {
    let now = Date.UTC(2026, 0, 1)
    const { file, add } = await logOf([run('trun_1'), status(1), run('trun_2')], () => now)
    now = Date.UTC(2026, 0, 2)
    await add(run('trun_3'))
    const read = (...args: readonly string[]) => inProcess(['log', 'read', '--log', file, '--json', ...args])

    const typed = await read('--type', 'task_run.state')
    expect(ids(typed.stdout)).toEqual(['trun_1', 'trun_2', 'trun_3'].map((id) => `${id}:completed`))
    const [first] = parsed(typed.stdout)
    const after = await read('--after', first?.position ?? '', '--limit', '2')
    expect(parsed(after.stdout)).toHaveLength(2)
    expect(ids(after.stdout)).toEqual(['s1', 'trun_2:completed'])
    const from = await read('--from', '2026-01-02')
    expect(ids(from.stdout)).toEqual(['trun_3:completed'])
    const strange = await read('--after', 'nowhere')
    expect(strange).toMatchObject({ code: 2, stdout: '' })
  })

  it('ends quietly when the reader closes its output', async () => {
    const { file } = await logOf(Array.from({ length: 200 }, (_, n) => run(`trun_${n}`, 'x'.repeat(10_000))))
    const read = rivulet(['log', 'read', '--log', file, '--json'])
    await read.stdoutLine()
    read.child.stdout.destroy()
    const { code, stderr } = await read.ended

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })

  it.each(['read', 'tail'])('names a missing file, and does not create it: %s', async (command) => {
    const folder = await mkdtemp(join(tmpdir(), 'rivulet-log-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'nothing.db')
    const { code, stdout, stderr } = await inProcess(['log', command, '--log', file])

    expect({ code, stdout }).toEqual({ code: 7, stdout: '' })
    expect(stderr).toBe(`rivulet: ${file} does not exist: name the file of a log [log_file]\n`)
    expect(readdirSync(folder)).toEqual([])
  })

  it('leaves a database that is no log as it is', async () => {
    const { file: other } = await logOf([])
    const file = join(dirname(other), 'other.db')
    const database = new DatabaseSync(file)
    database.exec('CREATE TABLE mine (x)')
    database.close()
    const before = await readFile(file)
    const { code, stderr } = await inProcess(['log', 'read', '--log', file])

    expect(code).toBe(7)
    expect(stderr).toContain(`${file} has no log`)
    expect(await readFile(file)).toEqual(before)
    expect(existsSync(`${file}-wal`)).toBe(false)
  })

  it('leaves an empty file as it is', async () => {
    const { file: other } = await logOf([])
    const file = join(dirname(other), 'empty.db')
    await writeFile(file, '')
    const { code } = await inProcess(['log', 'read', '--log', file])

    expect(code).toBe(7)
    expect(await readFile(file, 'utf8')).toBe('')
  })

  it.each([[[]], [['--json']]])('lets no event control the terminal: %j', async (args) => {
    const hostile = '\u001B]0;owned\u0007\u009B2J\u001B[31m\rred\n\u2028\u202Egpj.\u2066exe\u061C'
    const { file } = await logOf([run('trun_1', hostile), run(`trun_${hostile}`)])
    const { stdout } = await inProcess(['log', 'read', '--log', file, ...args])

    expect(stdout.split('\n')).toHaveLength(3)
    // oxlint-disable-next-line no-control-regex -- They are what a terminal would interpret.
    expect(stdout.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001F\u007F-\u009F\u061C\u2028-\u202E\u2066]/)
  })
})

describe('rivulet log tail', () => {
  it('prints what another process adds, from the end, until Ctrl-C', async () => {
    const { file, add } = await logOf([run('trun_1')])
    const tail = rivulet(['log', 'tail', '--log', file, '--json', '--verbose'])
    const line = tail.stdoutLine()
    await tail.stderrLine((text) => text.includes('following'))
    await add(run('trun_2'))
    expect(JSON.parse(await line)).toMatchObject({ id: 'trun_2:completed', revision: 1 })
    tail.child.kill('SIGINT')
    const { code, stdout } = await tail.ended

    expect(code).toBe(130)
    expect(parsed(stdout)).toHaveLength(1)
  })

  it('prints the log from its start, and follows it', async () => {
    const { file, add } = await logOf([run('trun_1')])
    const tail = rivulet([
      'log',
      'tail',
      '--log',
      file,
      '--from',
      'start',
      '--type',
      'task_run.state',
      '--json',
    ])
    await tail.stdoutLine()
    await add(status(2), run('trun_2'))
    await tail.stdoutLine((line) => line.includes('trun_2'))
    tail.child.kill('SIGTERM')
    const { code, stdout } = await tail.ended

    expect(code).toBe(143)
    expect(ids(stdout)).toEqual(['trun_1:completed', 'trun_2:completed'])
  })

  it('ends quietly when the reader closes its output', async () => {
    const { file, add } = await logOf([run('trun_1')])
    const tail = rivulet(['log', 'tail', '--log', file, '--from', 'start', '--json'])
    await tail.stdoutLine()
    tail.child.stdout.destroy()
    await add(run('trun_2'))
    const { code, stderr } = await tail.ended

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  })
})

describe('rivulet log rewind', () => {
  it('lets a consumer go on after its log was put back, as the docs say', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'rivulet-log-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const [file, copy, effects] = ['log.db', 'copy.db', 'ledger.db'].map((name) => join(folder, name))
    if (file === undefined || copy === undefined || effects === undefined) throw new RangeError('three files')
    const database = new DatabaseSync(effects)
    onTestFinished(() => database.close())
    const seen: string[] = []
    const consume = async (count: number, ...events: readonly ResearchEvent[]) => {
      const store = sqliteStore(file)
      await using log = await openLog(store)
      if (events.length > 0) await append(store, events)
      const job = log.consume('ledger', exactlyOnce(database, { effect: ({ id }) => void seen.push(id) }))
      while (seen.length < count) await Promise.race([turn(), job.done])
      await job.stop()
    }
    await consume(1, run('trun_1'))
    cpSync(file, copy)
    await consume(2, run('trun_2'))
    cpSync(copy, file)
    await expect(consume(3)).rejects.toThrow(/rivulet log rewind --consumer "ledger" --effects/)

    const args = ['log', 'rewind', '--log', file, '--consumer', 'ledger', '--effects', effects]
    const { code, stdout, stderr } = await rivulet(args).ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^The consumer ledger goes on after \S+\.1\.\S+\. It was at \S+\.2\.\S+\.\n$/)
    await consume(4, run('trun_3'), run('trun_2'))
    expect(seen.map((id) => id.slice(0, 6))).toEqual(['trun_1', 'trun_2', 'trun_3', 'trun_2'])
  })
})

describe('rivulet log remove-reader', () => {
  /** A log with a process that has read one of two entries, and ran before. */
  async function logWithReader() {
    const { file, add } = await logOf([run('trun_1')])
    const log = await openLog(sqliteStore(file))
    onTestFinished(() => log.close())
    const start = () =>
      log.process('view:\u001B[2Jgroups', { version: 1, key: () => 'all', init: () => 0, event: () => {} })
    const readers = async () => (await log.stats()).readers
    const ran = start()
    while ((await readers())[0]?.lag.entries !== 0) await Promise.race([turn(), ran.done])
    await ran.stop()
    await add(run('trun_2'))
    const command = (...args: readonly string[]) =>
      rivulet(['log', 'remove-reader', '--log', file, ...args]).ended
    return { start, readers, command }
  }
  const NAME = ['--process', 'view:\u001B[2Jgroups']

  it('removes one that is gone, and says what that was', async () => {
    const { readers, command } = await logWithReader()
    const { code, stdout, stderr } = await command(...NAME)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(
      /^The process view:\\u001b\[2Jgroups is removed\. It was 1 entry behind and had 0 dead letters\.\n$/,
    )
    expect(stdout).not.toContain('\u001B')
    expect(await readers()).toEqual([])
  })

  it('prints it as JSON', async () => {
    const { command } = await logWithReader()
    const { stdout } = await command(...NAME, '--json')
    const removed = { kind: 'process', name: 'view:\u001B[2Jgroups', behind: 1, deadLetters: 0 }
    expect(JSON.parse(stdout)).toEqual({ removed })
  })

  it('removes none that runs', async () => {
    const { start, readers, command } = await logWithReader()
    const running = start()
    while ((await readers())[0]?.owner === null) await Promise.race([turn(), running.done])
    const { code, stdout, stderr } = await command(...NAME)
    expect({ code, stdout }).toEqual({ code: 6, stdout: '' })
    expect(stderr).toMatch(/is held by/)
    expect(await readers()).toHaveLength(1)
  })

  it('names those that there are for an unknown one', async () => {
    const { command } = await logWithReader()
    const { code, stdout, stderr } = await command('--process', 'view:groups')
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe('rivulet: the log has no process "view:groups": it has "view:\\u001b[2Jgroups"\n')
  })

  it('removes a recording, and names those that there are for an unknown one', async () => {
    const { file } = await logOf([run('trun_1')])
    const command = (name: string) => inProcess(['log', 'remove-reader', '--log', file, '--recording', name])
    expect((await command('old')).stderr).toBe('rivulet: the log has no recording "old": it has none\n')
    const store = sqliteStore(file)
    await mover(store)('progress', { new: ['progress/new'], old: ['progress/old'] })
    await store.close()

    expect(await command('odl')).toEqual({
      code: 2,
      stdout: '',
      stderr: 'rivulet: the log has no recording "odl": it has "new", "old"\n',
    })
    expect((await command('old')).stdout).toBe(
      'The recording old is removed. Event time no longer waits for it.\n',
    )
    expect(await command('old')).toMatchObject({ code: 2, stdout: '' })
  })
})

describe('rivulet log dead-letters', () => {
  /** A log whose consumer could not handle two of three entries. */
  async function logOfLetters() {
    const { file } = await logOf([run('trun_1'), run('trun_2'), run('trun_3')])
    await using log = await openLog(sqliteStore(file))
    const { promise, resolve } = Promise.withResolvers<void>()
    const job = log.consume('billing', { deadLetters: 'log', retries: 0, concurrency: 1 }, ({ id }) => {
      if (id === 'trun_2:completed') return
      if (id === 'trun_3:completed') resolve()
      throw new TypeError('no account\u001B[2J')
    })
    await promise
    await job.stop()
    const command = (...args: readonly string[]) => inProcess(['log', 'dead-letters', '--log', file, ...args])
    return { file, command }
  }

  it('lists those of each consumer, with what is needed to hand them out again', async () => {
    const { command } = await logOfLetters()
    const listed = await command('--json')
    const [first, second] = listed.stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    const shown = await command('--consumer', 'billing')

    expect(first).toMatchObject({
      reader: 'consumer:billing',
      attempts: 1,
      error: { name: 'TypeError' },
      entry: { id: 'trun_1:completed' },
    })
    expect(second).toMatchObject({ entry: { id: 'trun_3:completed' } })
    expect(shown.stdout.split('\n')[0]).toBe(
      `consumer:billing  ✖ task_run.state  trun_1: TypeError: no account\\u001b[2J  1 attempt  ${first.entry.position}`,
    )
  })

  it('lists more than a page of them', async () => {
    const { file } = await logOf(Array.from({ length: 120 }, (_, n) => run(`trun_${n}`)))
    {
      await using log = await openLog(sqliteStore(file))
      const job = log.consume('billing', { deadLetters: 'log', retries: 0 }, () => {
        throw new TypeError('no such account')
      })
      await expect.poll(() => log.deadLetters({ consumer: 'billing' }).count()).toBe(120)
      await job.stop()
    }

    const { code, stdout, stderr } = await rivulet(['log', 'dead-letters', '--log', file, '--json']).ended

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.trimEnd().split('\n')).toHaveLength(120)
  })

  it.each([
    ['consumer "biling": it has "billing"', ['--consumer', 'biling']],
    ['consumer "biling": it has "billing"', ['--consumer', 'biling', '--redeliver', 'all']],
    ['process "billing": it has none', ['--process', 'billing', '--remove', 'all']],
  ])('of an unknown reader are an error with the names that there are: %s', async (problem, args) => {
    const { command } = await logOfLetters()
    const stderr = `rivulet: the log has no ${problem}\n`
    expect(await command(...args)).toEqual({ code: 2, stdout: '', stderr })
  })

  it('hands one out again, and removes others', async () => {
    const { file, command } = await logOfLetters()
    const [first] = parsed((await command('--json')).stdout) as unknown as { entry: { position: string } }[]
    const redelivered = await command(
      '--consumer',
      'billing',
      '--redeliver',
      first?.entry.position ?? '',
      '--json',
    )
    const handled: string[] = []
    {
      await using log = await openLog(sqliteStore(file))
      const { promise, resolve } = Promise.withResolvers<void>()
      const job = log.consume('billing', { deadLetters: 'log' }, ({ id }) => {
        handled.push(id)
        resolve()
      })
      await promise
      await job.stop()
    }
    const removed = await command('--consumer', 'billing', '--remove', 'all')

    expect(JSON.parse(redelivered.stdout)).toEqual({ redelivered: 1 })
    expect(handled).toEqual(['trun_1:completed'])
    expect(removed.stdout).toBe('1 dead letter is removed.\n')
    expect((await command('--json')).stdout).toBe('')
  })

  it('lists and removes those of a process too', async () => {
    const { file } = await logOf([run('trun_1')])
    {
      await using log = await openLog(sqliteStore(file))
      const failing = log.process('rules', {
        version: 1,
        key: ({ source }) => source,
        init: () => ({}),
        event: () => {
          throw new TypeError('no such rule')
        },
        onError: 'dead-letter',
      })
      const letters = log.deadLetters({ process: 'rules' })
      while ((await letters.count()) === 0) await turn()
      await failing.stop()
    }
    const command = (...args: readonly string[]) => inProcess(['log', 'dead-letters', '--log', file, ...args])

    expect((await command()).stdout).toMatch(/^process:rules {2}✖ task_run.state {2}trun_1: TypeError: /)
    expect((await command('--process', 'rules', '--remove', 'all')).stdout).toBe(
      '1 dead letter is removed.\n',
    )
    expect((await command('--process', 'rules')).stdout).toBe('')
  })
})

describe('the numbers of a log', () => {
  /** A log of three entries, of which a consumer has handled one. */
  async function logWithConsumer(consumer: string) {
    const { file, add } = await logOf([run('trun_1')])
    {
      await using log = await openLog(sqliteStore(file))
      const { promise, resolve } = Promise.withResolvers<void>()
      const job = log.consume(consumer, () => resolve())
      await promise
      await job.stop()
    }
    await add(run('trun_2'))
    const store = sqliteStore(file)
    const fence = await store.claim('stream:groups/tgrp_1/runs')
    await store.append([{ fence, expect: null, position: '7', entries: [newEntry(run('trun_3'))] }])
    await store.close()
    return file
  }

  it('are printed for a person, with escapes in place of control characters', async () => {
    const file = await logWithConsumer('billing\u001B[2J')
    const { code, stdout } = await inProcess(['log', 'stats', '--log', file])

    expect(code).toBe(0)
    expect(stdout).toMatch(/^entries {3}3, 20\d\d-\S+Z to 20\d\d-\S+Z\nsize {6}[\d.]+ kB, and [\d.]+ \wB of/)
    expect(stdout).toMatch(/^consumer {2}billing\\u001b\[2J {2}2 behind, \d+ s {2}not running$/m)
    expect(stdout).toMatch(/^stream {4}groups\/tgrp_1\/runs {2}not being recorded$/m)
  })

  it('say how far event time is behind, and for which recording it waits', async () => {
    const { file } = await logOf([run('trun_1')])
    const printed = async () => (await inProcess(['log', 'stats', '--log', file])).stdout
    expect(await printed()).toMatch(/^time {6}event time not known yet$/m)
    const store = sqliteStore(file)
    onTestFinished(() => store.close())
    const move = mover(store)
    const hourAgo = Date.now() - 3_600_000
    await move('progress', { 'new\u001B': ['progress/new'], old: ['progress/old'] })
    await move('progress/new', hourAgo + 60_000)
    await move('progress/old', hourAgo)
    await move('clock', { number: 1, through: hourAgo }, tickAt(Date.now(), hourAgo))
    expect(await printed()).toMatch(/^time {6}event time 60 min behind; waits for recording old$/m)
    await move('clock', { number: 2, through: hourAgo, complete: false })
    expect(await printed()).toMatch(/; goes on without recording old$/m)
    await move('progress/new', hourAgo)
    expect(await printed()).toMatch(/; goes on without recordings new\\u001b, old$/m)
    await move('progress/new', [hourAgo, [['monitors/m1', '/v1/monitors/m1', hourAgo, null]]])
    expect(await printed()).toMatch(/^time .*; 1 source is away alone$/m)
  })

  it('have the watermark of each process', async () => {
    const through = Date.UTC(2026, 0, 1)
    const { file } = await logOf([tickAt(Date.now(), through)])
    {
      await using log = await openLog(sqliteStore(file))
      const job = log.process('rules', { version: 1, key: ({ id }) => id, init: () => 0, event: () => {} })
      while ((await log.stats()).readers[0]?.lag.entries !== 0) await turn()
      await job.stop()
    }
    const { stdout } = await inProcess(['log', 'processes', '--log', file])
    expect(stdout).toMatch(
      /^process {3}rules {2}up to date {2}watermark 2026-01-01T00:00:00Z {2}not running$/m,
    )
  })

  it('are JSON: all, or a line for each consumer', async () => {
    const file = await logWithConsumer('billing')
    const stats = await inProcess(['log', 'stats', '--log', file, '--json'])
    const consumers = await inProcess(['log', 'consumers', '--log', file, '--json'])
    const processes = await inProcess(['log', 'processes', '--log', file, '--json'])

    const consumer = { kind: 'consumer', name: 'billing', lag: { entries: 2 }, deadLetters: 0, owner: null }
    expect(JSON.parse(stats.stdout)).toMatchObject({ entries: 3, readers: [consumer], pausedBy: null })
    expect(JSON.parse(stats.stdout)).toMatchObject({
      time: { through: null, complete: true, recordings: [] },
    })
    expect(JSON.parse(consumers.stdout)).toMatchObject(consumer)
    expect(processes).toMatchObject({ code: 0, stdout: '' })
  })
})

describe('rivulet log backup', () => {
  it('copies a log that is open, and never overwrites a file', async () => {
    const { file } = await logOf(all(3))
    const copy = join(dirname(file), 'copy.db')
    const made = await rivulet(['log', 'backup', '--log', file, '--to', copy, '--json']).ended
    const again = await rivulet(['log', 'backup', '--log', file, '--to', copy]).ended
    const read = await rivulet(['log', 'read', '--log', copy, '--json']).ended

    expect(JSON.parse(made.stdout)).toEqual({ backup: copy })
    expect(again).toMatchObject({ code: 7, stdout: '', stderr: expect.stringContaining(copy) })
    expect(ids(read.stdout)).toEqual(all(3).map(({ id }) => id))
  })
})
