/**
 * Appends the events of a run to a log: `recorder-process.ts FILE EVENTS SEED KEEP`. It appends up to the number that it gets, and
 * deletes entries beyond the last KEEP of them, where this is not 0. Sends how many it has appended and deleted.
 */
import { once } from 'node:events'
import { sqliteStore } from 'rivulet/log/sqlite'
import { randomOf } from '../../../bench/random.ts'
import { eventsOf } from './cells.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

const [, , file = '', count = '', seed = '', keep = ''] = process.argv
const kept = Number(keep) || Infinity
const store = sqliteStore(file)
const random = randomOf(Number(seed) + 1)
const fence = await store.claim('stream:cells')
const limit = { until: 0 }
let appended = 0
let deleted = 0
const report = () => process.send?.({ appended, deleted })
process.on('message', (given) => {
  limit.until = Number(given)
  report()
})
process.on('disconnect', () => process.exit())
report()

let size = 1
let entries = []
for (const event of eventsOf(Number(count), Number(seed))) {
  entries.push(newEntry(event))
  const isLast = appended + entries.length === Number(count)
  if (entries.length < size && !isLast) continue
  while (appended >= limit.until) await once(process, 'message')
  await store.append([{ fence, expect: null, entries }])
  appended += entries.length
  entries = []
  size = 1 + Math.floor(random() * 20)
  // A step may delete fewer, and none where a view needs the oldest one.
  for (let excess = appended - deleted - kept; excess > 0; excess = appended - deleted - kept) {
    const step = await store.retention.trim({ limit: excess })
    if (step.deleted === 0) break
    deleted += step.deleted
  }
  report()
}
await store.close()
process.disconnect?.()
