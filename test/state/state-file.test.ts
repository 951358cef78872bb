import { expect, it, onTestFinished } from 'vitest'
import { StateFile } from '../../src/state/state-file.ts'
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
