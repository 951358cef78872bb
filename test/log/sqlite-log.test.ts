import { mkdtempSync, rmSync, unlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { LogStore } from 'rivulet/log/store'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describeLogStore } from './conformance.ts'

describeLogStore('a log in an SQLite file', async ({ clock, inbox = {} }) => {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-log-'))
  const file = join(folder, 'log.db')
  const owners = new Map<LogStore, string>()
  return {
    async connect(owner) {
      const log = sqliteStore(file, { owner, clock, inbox })
      owners.set(log, owner)
      return log
    },
    async loseClaims(log) {
      const database = new DatabaseSync(file)
      const slots = database
        .prepare('SELECT DISTINCT slot FROM rivulet_claim WHERE owner = ? AND slot IS NOT NULL')
        .all(owners.get(log) ?? null)
      database.close()
      for (const { slot } of slots) unlinkSync(`${file}-lock-${slot}`)
    },
    async remove() {
      await Promise.all([...owners.keys()].map((log) => log.close()))
      rmSync(folder, { recursive: true })
    },
  }
})
