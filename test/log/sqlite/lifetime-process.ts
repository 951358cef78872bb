/** Sends what keeps the process alive before, during and after a wait for entries, and does nothing more. */
import { sqliteStore } from '../../../src/log/sqlite/index.ts'
import { appendTo, detections } from './events.ts'

const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length

const log = sqliteStore(process.argv[2] ?? '')
const end = await log.positionAt('end')
const before = timers()
const waiting = log.wait(end, new AbortController().signal)
await log.positionAt('end')
const during = timers()
await appendTo(log, detections(1, 1))
await waiting
process.send?.({ before, during, after: timers() })
