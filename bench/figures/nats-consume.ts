import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import { natsStore } from 'rivulet/log/nats'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { findings } from '../nats/events.ts'
import { opened } from '../nats/recording.ts'
import { startNats } from '../nats/server.ts'
import { alternately, perSecond } from '../rounds.ts'

const ENTRIES = 30_000
const SOURCES = 8
const NAME = 'bench'

/**
 * `nats-consume`: entries of 900 bytes per second from a log on a NATS server through `log.consume` with a synchronous handler and
 * saved cursors, against a bare ordered consumer of the same messages that parses their JSON.
 */
export const measure: Measure = async () => {
  await using server = await startNats()
  await using log = await openLog(natsStore({ servers: server.url, name: NAME }))
  const events = findings(ENTRIES, SOURCES)
  const recording = await opened(log, [...new Set(events.map(({ source }) => source))])
  await recording.record(events)
  await recording.close()
  const { ratio, ...details } = await alternately(
    () => perSecond(ENTRIES, () => consumed(log)),
    () => perSecond(ENTRIES, async () => expectCount(await read(server.url), ENTRIES, 'messages')),
    { rounds: 7, warmUp: 2 },
  )
  return [result('nats-consume', ratio, { atLeast: 0.7 }, { ...details, unit: 'entries/s' })]
}

let consumers = 0

/** Consumes all entries with a new consumer. */
async function consumed(log: EventLog): Promise<void> {
  let left = ENTRIES
  const end = Promise.withResolvers<void>()
  const job = log.consume(`bench ${(consumers += 1)}`, () => {
    left -= 1
    if (left === 0) end.resolve()
  })
  await Promise.race([end.promise, job.done])
  await job.stop()
  expectCount(ENTRIES - left, ENTRIES, 'consumed entries')
}

/** Reads all messages with an ordered consumer. */
async function read(servers: string): Promise<number> {
  const nats = await connect({ servers, noAsyncTraces: true })
  const stream = `rivulet_${NAME}_events`
  const consumer = await jetstream(nats).consumers.get(stream)
  let count = 0
  const messages = await consumer.consume()
  for await (const message of messages) {
    const event: ResearchEvent = JSON.parse(message.string())
    if (event.id !== '') count += 1
    if (count === ENTRIES) break
  }
  await nats.close()
  return count
}
