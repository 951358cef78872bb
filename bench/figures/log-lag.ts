import { join } from 'node:path'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { quantile } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 1_000
const WARM_UP = 100

/**
 * `log-lag-p50-ms` and `log-lag-p99-ms`: from the server's write of an event to the handler of a consumer in another process: the
 * socket, the synced transaction of the recorder, and the consumer that notices it. The server writes an event after the previous
 * one was handled.
 */
export const measure: Measure = async (folder) => {
  await using server = await startServer('metronome')
  const file = join(folder, 'log.db')
  const log = await openLog(sqliteStore(file))
  await using consumer = await startServer('log-consumer', [file])
  const lags: number[] = []
  consumer.process.on('message', ({ lag }: { readonly lag: number }) => {
    lags.push(lag / 1_000)
    if (lags.length < EVENTS) server.process.send('next')
  })
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const handled = new Promise<void>((resolve) => {
    consumer.process.on('message', () => {
      if (lags.length === EVENTS) resolve()
    })
  })
  await log.record({ client, taskGroups: [`${EVENTS}x400`] }).done
  await handled
  await log.close()
  const measured = lags.slice(WARM_UP)
  expectCount(measured.length, EVENTS - WARM_UP)
  return [
    result('log-lag-p50-ms', quantile(measured, 0.5), { atMost: 25 }),
    result('log-lag-p99-ms', quantile(measured, 0.99), { atMost: 100 }),
  ]
}
