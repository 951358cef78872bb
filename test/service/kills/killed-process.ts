/**
 * A service that kills itself at a commit of its database. Arguments: the folder of documents, the data file, the API key, the
 * speed of its clock, the number of the commit, 0 for none, whether it dies `before` or `after` it, and the table that counted
 * commits have written to, '' for any. Sends its URL.
 */
import { flushCompileCache } from 'node:module'
import { DatabaseSync, StatementSync } from 'node:sqlite'
import { createResearchService } from '../../../src/service/index.ts'

// It may be killed before its end, where Node would store this.
flushCompileCache()

const [folder = '', data = '', apiKey = '', speed = '1', dieAt = '0', moment = 'before', table = ''] =
  process.argv.slice(2)
const { exec } = DatabaseSync.prototype
const writesTable = new RegExp(`^\\s*(INSERT|UPDATE|DELETE)\\b[^;]*\\b${table}\\b`, 'i')
/** Whether the open transaction has written to the table. */
let hasWritten = false
let commits = 0

for (const name of ['run', 'get', 'all'] as const) {
  const execute: (this: StatementSync, ...parameters: never[]) => unknown = StatementSync.prototype[name]
  Object.assign(StatementSync.prototype, {
    [name](this: StatementSync, ...parameters: never[]) {
      hasWritten ||= writesTable.test(this.sourceSQL)
      return execute.apply(this, parameters)
    },
  })
}

DatabaseSync.prototype.exec = function (sql) {
  if (sql.startsWith('BEGIN')) hasWritten = false
  const isCounted = sql === 'COMMIT' && (table === '' || hasWritten)
  const isLast = isCounted && (commits += 1) === Number(dieAt)
  if (isLast && moment === 'before') process.kill(process.pid, 'SIGKILL')
  exec.call(this, sql)
  if (isLast) process.kill(process.pid, 'SIGKILL')
}

const service = await createResearchService({
  docs: [{ folder, site: 'https://docs.example' }],
  data,
  apiKey,
  webhookSecret: 'secret',
  speed: Number(speed),
  quotas: false,
})
process.send?.(await service.listen())
