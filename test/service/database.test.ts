import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, linkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DataFileError, openDatabase } from '../../src/service/database.ts'
import { programFiles } from '../support/programs.ts'
import { pretendSqlite } from '../support/sqlite-version.ts'
import { temporaryFolder } from './running.ts'

const fileOf = await programFiles()

const modes = (file: string) =>
  [file, `${file}-wal`, `${file}-shm`].map((path) => (statSync(path).mode & 0o777).toString(8))

async function dataFile(): Promise<string> {
  return join(await temporaryFolder(), 'service.db')
}

function opened(file: string): DatabaseSync {
  const database = openDatabase(file)
  onTestFinished(() => database.close())
  return database
}

describe('the data file', () => {
  it('and its log are only accessible to their owner', async () => {
    const file = await dataFile()
    opened(file).exec('CREATE TABLE one (a)')
    expect(modes(file)).toEqual(['600', '600', '600'])
  })

  it('gets a private mode even if it exists, as do its files from before a crash', async () => {
    const file = await dataFile()
    const before = new DatabaseSync(file)
    onTestFinished(() => before.close())
    before.exec('PRAGMA journal_mode = WAL; CREATE TABLE one (a)')
    for (const path of [file, `${file}-wal`, `${file}-shm`]) chmodSync(path, 0o644)
    opened(file)
    expect(modes(file)).toEqual(['600', '600', '600'])
  })

  it('is unchanged, with its mode, if it is not a database', async () => {
    const file = await dataFile()
    writeFileSync(file, 'These are notes, and no database. '.repeat(50), { mode: 0o644 })
    expect(() => openDatabase(file)).toThrow(DataFileError)
    expect((statSync(file).mode & 0o777).toString(8)).toBe('644')
  })

  it('is refused, and not created, if SQLite can lose committed data', async () => {
    pretendSqlite('3.51.2')
    const file = await dataFile()
    expect(() => openDatabase(file)).toThrow(DataFileError)
    expect(() => openDatabase(file)).toThrow('whose SQLite 3.51.2 can lose committed transactions')
    expect(existsSync(file)).toBe(false)
    // Queries of the service fail with older versions of Node's interface to SQLite.
    expect(() => openDatabase(':memory:')).toThrow(DataFileError)
  })

  it('is not mapped into memory', async () => {
    expect(
      opened(await dataFile())
        .prepare('PRAGMA mmap_size')
        .get(),
    ).toEqual({ mmap_size: 0 })
  })

  it('is refused, and stays as it is, while another service has it open, under any path', async () => {
    const file = await dataFile()
    const first = openDatabase(file)
    first.exec('CREATE TABLE one (a)')
    const link = `${file}-link`
    symlinkSync(file, link)
    for (const path of [file, relative(process.cwd(), file), link]) {
      expect(() => openDatabase(path)).toThrow(DataFileError)
      expect(() => openDatabase(path)).toThrow('is in use by another research service')
    }
    // A refused one gives up nothing of the first.
    expect(() => openDatabase(file)).toThrow(DataFileError)
    first.exec('INSERT INTO one VALUES (1)')
    first.close()
    expect(opened(file).prepare('SELECT a FROM one').all()).toEqual([{ a: 1 }])
  })

  it('can be read by other programs while it is open, and is still refused after they close it', async () => {
    const file = await dataFile()
    opened(file).exec('CREATE TABLE one (a)')
    const reader = new DatabaseSync(file, { readOnly: true })
    expect(reader.prepare('SELECT count(*) AS count FROM one').get()).toEqual({ count: 0 })
    reader.close()
    expect(() => openDatabase(file)).toThrow(DataFileError)
  })

  it('with a second name is refused, since its write-ahead log has only one', async () => {
    const file = await dataFile()
    openDatabase(file).close()
    linkSync(file, `${file}-second`)
    expect(() => openDatabase(`${file}-second`)).toThrow(DataFileError)
    expect(() => openDatabase(`${file}-second`)).toThrow('hard links')
  })

  it('is refused in another process, and opens at once after the first process is killed', async () => {
    const file = await dataFile()
    const first = await openInProcess(file)
    expect(first.answer).toBe('open')
    expect(() => openDatabase(file)).toThrow('is in use by another research service')
    expect(await openInProcess(file)).toMatchObject({
      answer: `${file} is in use by another research service`,
    })
    await first.kill()
    opened(file)
  })

  it('is opened by exactly one of several processes that start at once', { timeout: 60_000 }, async () => {
    const file = await dataFile()
    for (let round = 0; round < 3; round++) {
      const started = await Promise.all(Array.from({ length: 4 }, () => openInProcess(file)))
      expect(started.filter(({ answer }) => answer === 'open')).toHaveLength(1)
      await Promise.all(started.map(({ kill }) => kill()))
    }
  })
})

/** Opens the file in a process of its own, which keeps it open until it is killed. */
async function openInProcess(file: string) {
  const child = fork(fileOf('test/service/database-process.ts'), [file], {
    execArgv: ['--conditions=rivulet-source', '--disable-warning=ExperimentalWarning'],
  })
  const exited = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  onTestFinished(kill)
  const [answer]: unknown[] = await once(child, 'message')
  return { answer, kill }
}
