/**
 * Consumes a log in a process of its own: sends the parent process, for each run, the time from its write by the server to the
 * handler, in µs.
 */
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'

const [file = ''] = process.argv.slice(2)
const log = await openLog(sqliteStore(file))
log.consume('lag', { types: ['task_run.state'] }, ({ data: { run } }) => {
  const now = process.hrtime.bigint()
  const written = run.metadata?.['written']
  if (typeof written !== 'string') throw new Error('a run does not have the time of its write')
  process.send?.({ lag: Number(now - BigInt(written)) / 1_000 })
})
process.send?.({ port: 0 })
process.once('disconnect', () => void log.close().then(() => process.exit()))
