import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { StateFileError } from '../../src/state/errors.ts'
import { sqliteCheckpointStore } from '../../src/state/sqlite-checkpoint-store.ts'
import { sqliteInbox } from '../../src/state/sqlite-inbox.ts'
import { StateFile } from '../../src/state/state-file.ts'
import { pretendSqlite } from '../support/sqlite-version.ts'
import { scratchFile } from './scratch.ts'

const LAYOUT = { part: 'test', version: 1, tables: [], schema: '' }

it.each([
  ['NORMAL', 1, 4_000],
  ['FULL', 2, 1_000],
] as const)(
  'a file whose commits are synced %s has the write-ahead log that goes with it',
  (synchronous, level, pages) => {
    const file = new StateFile(scratchFile(), LAYOUT, { synchronous })
    onTestFinished(() => file.close())
    const setting = (name: string) => Object.values(file.database.prepare(`PRAGMA ${name}`).get() ?? {})

    expect(setting('synchronous')).toEqual([level])
    expect(setting('wal_autocheckpoint')).toEqual([pages])
    expect(setting('journal_mode')).toEqual(['wal'])
  },
)

it('no memory is mapped, which would make a fault of the log one of the file', () => {
  const file = new StateFile(scratchFile(), LAYOUT, { synchronous: 'FULL' })
  onTestFinished(() => file.close())
  expect(file.database.prepare('PRAGMA mmap_size').get()).toEqual({ mmap_size: 0 })
})

describe('where SQLite can lose what was committed', () => {
  const stores = [
    ['a checkpoint store', sqliteCheckpointStore],
    ['an inbox', sqliteInbox],
  ] as const

  it.each(stores)('%s refuses a file, and creates none', (_, open) => {
    pretendSqlite('3.51.2')
    const file = scratchFile()
    expect(() => open(file)).toThrow(StateFileError)
    expect(() => open(file)).toThrow(`${file} cannot be kept safe by this Node, whose SQLite 3.51.2`)
    expect(existsSync(file)).toBe(false)
  })

  it.each(stores)('%s refuses an open database that has a write-ahead log', (_, open) => {
    pretendSqlite('3.50.4')
    const database = new DatabaseSync(scratchFile())
    onTestFinished(() => database.close())
    database.exec('PRAGMA journal_mode = WAL')
    expect(() => open(database)).toThrow(StateFileError)
  })

  it.each(stores)('%s takes memory, and an open database without such a log', (_, open) => {
    pretendSqlite('3.50.4')
    const database = new DatabaseSync(scratchFile())
    onTestFinished(() => database.close())
    expect(() => open(database).close()).not.toThrow()
    expect(() => open(':memory:').close()).not.toThrow()
  })
})
