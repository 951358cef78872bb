/** A consumer of the log in a file that posts each entry. Arguments: the file, and the URL. It runs until it is killed. */
import { flushCompileCache } from 'node:module'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { httpSink } from 'rivulet/webhooks'

const [file = '', url = ''] = process.argv.slice(2)
const log = await openLog(sqliteStore(file))
// It may be killed before its end, where Node would store this.
flushCompileCache()

const sink = httpSink({ url, secrets: 'secret of the sink' })
await log.consume(
  'http',
  {
    retries: Infinity,
    initialDelay: 1,
    maxDelay: 10,
    deadLetters: 'log',
    wait: new AbortController().signal,
  },
  sink,
).done
