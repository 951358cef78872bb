import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { DataFileError, openDatabase } from '../../src/service/database.ts'
import { pretendSqlite } from '../support/sqlite-version.ts'
import { temporaryFolder } from './running.ts'

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
    expect(() => openDatabase(':memory:').close()).not.toThrow()
  })

  it('is not mapped into memory', async () => {
    expect(
      opened(await dataFile())
        .prepare('PRAGMA mmap_size')
        .get(),
    ).toEqual({ mmap_size: 0 })
  })
})
