/**
 * Runs rules over the log in a file, and kills itself at a commit of a transaction. Arguments: the file, the number of rules, the
 * number of the commit, 0 for none, and whether it dies `before` or `after` it. The message `next` makes it the next commit, and is answered.
 * The message `end` ends it once it has read everything.
 */
import { flushCompileCache } from 'node:module'
import { setTimeout } from 'node:timers/promises'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from '../../../src/log/event-log/open-log.ts'
import { SqliteLogStore } from '../../../src/log/sqlite/store.ts'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import { rulesToKill } from './kill-rules.ts'

// It may be killed before its end, where Node would store this.
flushCompileCache()

const [file = '', rules = '', first = '0', moment = 'before'] = process.argv.slice(2)
let dieAt = Number(first)
let commits = 0

class Connection extends DatabaseSync {
  #isWriting = false

  override exec(sql: string): void {
    const isLast = sql === 'COMMIT' && this.#isWriting && (commits += 1) === dieAt
    if (isLast && moment === 'before') process.kill(process.pid, 'SIGKILL')
    super.exec(sql)
    if (isLast) process.kill(process.pid, 'SIGKILL')
    this.#isWriting = sql === 'BEGIN IMMEDIATE'
  }
}

const store = new SqliteLogStore(file, {
  owner: `rules ${process.pid}`,
  // Alerts are recorded when the last event was, in each run.
  clock: () => 0,
  connect: (path) => new Connection(path, { timeout: 0 }),
})
const log = await openLog(store)
const running = runRules(log, rulesToKill(Number(rules)), {
  startAt: 'start',
  wait: new AbortController().signal,
})
process.on('message', async (message) => {
  if (message === 'next') {
    dieAt = commits + 1
    process.send?.(message)
    return
  }
  while ((await store.reader('process:rules'))?.cursor !== (await store.positionAt('end')))
    await setTimeout(20)
  await running.stop()
  await log.close()
  process.disconnect()
})
