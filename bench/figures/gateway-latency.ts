import { join } from 'node:path'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { RowReader, startRowServer } from '../row-reader.ts'
import { quantile } from '../rounds.ts'

const EVENTS = 600
const WARM_UP = 100

/**
 * `gateway-latency-p50-ms` and `gateway-latency-p99-ms`: from the append of an event to a subscriber in another process: the synced
 * transactions of the log and of the view, and the gateway. An event is appended after the previous one was received. Beside it,
 * the same of a bare server of events (`theirs`), which stores nothing.
 */
export const measure: Measure = async (folder) => {
  const rows = await startRowServer(join(folder, 'log.db'))
  await using _ = rows.server
  const times = async (side: 'gateway' | 'bare') => {
    const reader = await RowReader.open(rows, side)
    const measured: number[] = []
    for (let event = 0; event < WARM_UP + EVENTS; event++) {
      const received = new Promise<number>((resolve) => {
        reader.onRow = (at) => resolve(Number(process.hrtime.bigint() - at) / 1e6)
      })
      rows.server.process.send({ side, many: 1 })
      const time = await received
      if (event >= WARM_UP) measured.push(time)
    }
    reader.close()
    return measured
  }
  const theirs = await times('bare')
  const ours = await times('gateway')
  const figure = (name: string, share: number, atMost: number) =>
    result(name, quantile(ours, share), { atMost }, { theirs: rounded(quantile(theirs, share)), unit: 'ms' })
  return [figure('gateway-latency-p50-ms', 0.5, 25), figure('gateway-latency-p99-ms', 0.99, 100)]
}
