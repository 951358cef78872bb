import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { RowReader, startRowServer } from '../row-reader.ts'
import type { RowServer } from '../row-reader.ts'
import { alternately, perSecond } from '../rounds.ts'

const READERS = 500
const EVENTS = 100

/**
 * `gateway-fanout`: rows per second that 500 readers get together of events that are appended one after the other to a log in memory,
 * against a bare loop that writes each event to each of 500 responses.
 */
export const measure: Measure = async () => {
  const rows = await startRowServer('memory')
  await using _ = rows.server
  const ours = await crowd(rows, 'gateway')
  const theirs = await crowd(rows, 'bare')
  const { ratio, ...details } = await alternately(ours, theirs, { rounds: 7 })
  return [result('gateway-fanout', ratio, { atLeast: 0.5 }, { ...details, unit: 'rows/s' })]
}

/** Opens the readers of a side. Each call of the returned function writes events and measures until each reader has all. */
async function crowd(rows: RowServer, side: 'gateway' | 'bare'): Promise<() => Promise<number>> {
  const readers: RowReader[] = []
  let missing = 0
  let complete = () => {}
  const onRow = () => {
    missing -= 1
    if (missing === 0) complete()
  }
  while (readers.length < READERS) {
    const reader = await RowReader.open(rows, side)
    reader.onRow = onRow
    readers.push(reader)
  }
  return () =>
    perSecond(READERS * EVENTS, async () => {
      missing = READERS * EVENTS
      const all = new Promise<void>((resolve) => {
        complete = resolve
      })
      rows.server.process.send({ side, many: EVENTS })
      await all
    })
}
