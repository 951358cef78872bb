/**
 * Records the webhooks of a log's inbox until none is pending. At a commit of its choice it is killed: before it, or after it and
 * before the writer has the result.
 */
import { flushCompileCache } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { SqliteLogStore } from '../../src/log/sqlite/store.ts'

const [file = '', baseUrl = '', commits = '', step = 'before'] = process.argv.slice(2)
let left = Number(commits)

class Connection extends DatabaseSync {
  #isWriting = false

  override exec(sql: string): void {
    const isStruck = sql === 'COMMIT' && this.#isWriting && --left === 0
    if (isStruck && step === 'before') process.kill(process.pid, 'SIGKILL')
    super.exec(sql)
    if (isStruck) process.kill(process.pid, 'SIGKILL')
    this.#isWriting = sql === 'BEGIN IMMEDIATE'
  }
}

const store = new SqliteLogStore(file, {
  owner: `test process ${process.pid}`,
  clock: Date.now,
  connect: (path) => new Connection(path, { timeout: 0 }),
})
const log = await openLog(store)
// It may be killed before its end, where Node would store this.
flushCompileCache()
const client = createClient({ baseUrl, apiKey: 'key-of-a-test', initialDelay: 0 })
log.record({ client, monitors: [{ id: 'own', pollInterval: Infinity }], webhooks: true, tick: Infinity })
// Not at once again: the recorder has the same connection.
while ((await store.inbox.pending(null, 1)).length > 0) await delay(10)
process.exit()
