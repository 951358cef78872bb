/**
 * A service that kills itself at a commit of its database. Arguments: the folder of documents, the data file, the API key, the
 * speed of its clock, the number of the commit, 0 for none, and whether it dies `before` or `after` it. Sends its URL.
 */
import { flushCompileCache } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { createResearchService } from '../../../src/service/index.ts'

// It may be killed before its end, where Node would store this.
flushCompileCache()

const [folder = '', data = '', apiKey = '', speed = '1', dieAt = '0', moment = 'before'] =
  process.argv.slice(2)
const { exec } = DatabaseSync.prototype
let commits = 0

DatabaseSync.prototype.exec = function (sql) {
  const isLast = sql === 'COMMIT' && (commits += 1) === Number(dieAt)
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
