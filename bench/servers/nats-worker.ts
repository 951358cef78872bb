/**
 * Records events of its own sources into a log on a NATS server, in a process of its own: `nats-worker.ts {url} {log} {number}
 * {events} {sources}`. It announces itself, begins when it is sent a message, and sends one when all are recorded.
 */
import { once } from 'node:events'
import { openLog } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { findings } from '../nats/events.ts'
import { opened } from '../nats/recording.ts'

const [servers = '', name = '', ...numbers] = process.argv.slice(2)
const [number = 0, count = 0, sources = 1] = numbers.map(Number)
const events = findings(count, sources, number * sources)
const log = await openLog(natsStore({ servers, name }))
const recording = await opened(log, [...new Set(events.map(({ source }) => source))])
process.send?.({ port: 0 })
await once(process, 'message')
await recording.record(events)
process.send?.({ done: true })
await once(process, 'message')
await recording.close()
await log.close()
process.disconnect()
