/**
 * Appends the events of a run to a log: `recorder-process.ts FILE EVENTS SEED`. It appends up to the number that it gets, and sends
 * how many it has appended.
 */
import { once } from 'node:events'
import { sqliteLog } from 'rivulet/log/sqlite'
import { randomOf } from '../../../bench/random.ts'
import { eventsOf } from './cells.ts'

const [, , file = '', count = '', seed = ''] = process.argv
const store = sqliteLog(file)
const random = randomOf(Number(seed) + 1)
const fence = await store.claim('stream:cells')
const limit = { until: 0 }
let appended = 0
process.on('message', (given) => {
  limit.until = Number(given)
  process.send?.(appended)
})
process.on('disconnect', () => process.exit())
process.send?.(appended)

let size = 1
let entries = []
for (const event of eventsOf(Number(count), Number(seed))) {
  entries.push({ event })
  const isLast = appended + entries.length === Number(count)
  if (entries.length < size && !isLast) continue
  while (appended >= limit.until) await once(process, 'message')
  await store.append([{ fence, expect: null, entries }])
  appended += entries.length
  entries = []
  size = 1 + Math.floor(random() * 20)
  process.send?.(appended)
}
await store.close()
process.disconnect?.()
