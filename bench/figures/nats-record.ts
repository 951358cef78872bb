import { openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import { natsStore } from 'rivulet/log/nats'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { barePublisher } from '../nats/bare-publisher.ts'
import type { Expectation } from '../nats/bare-publisher.ts'
import { findings } from '../nats/events.ts'
import { opened } from '../nats/recording.ts'
import { removeLog, startNats } from '../nats/server.ts'
import { compare, inTurns, median, perSecond } from '../rounds.ts'

const EVENTS = 12_000
const SOURCES = 8

/**
 * Events of 900 bytes per second into a new log on a NATS server, by the recorder that `log.record` uses, against a bare publisher of the
 * same messages.
 *
 * - `nats-record-1`, `nats-record-8`: from one source and from eight, against one message in flight for each source, which expects the
 *   number of the one before.
 * - `nats-record-pipelined`: from eight sources, against batches of 256 in flight, in which each message expects the one before: what
 *   the recorder sends.
 */
export const measure: Measure = async () => {
  await using server = await startNats()
  let logs = 0
  const ours = (events: readonly ResearchEvent[]) => async () => {
    const name = `ours-${(logs += 1)}`
    const log = await openLog(natsStore({ servers: server.url, name }))
    const recording = await opened(log, [...new Set(events.map(({ source }) => source))])
    const rate = await perSecond(events.length, () => recording.record(events))
    await recording.close()
    await log.close()
    expectCount(await removeLog(server.url, name), events.length, 'recorded events')
    return rate
  }
  const theirs = (events: readonly ResearchEvent[], expectation: Expectation) => async () => {
    const publisher = await barePublisher(server.url, String((logs += 1)))
    const rate = await perSecond(events.length, () => publisher.publish(events, expectation))
    expectCount(await publisher.remove(), events.length, 'published events')
    return rate
  }
  const one = findings(EVENTS, 1)
  const eight = findings(EVENTS, SOURCES)
  const [ours1, ours8, bare1, bare8, pipelined, free] = await inTurns(
    [
      ours(one),
      ours(eight),
      theirs(one, 'sequence'),
      theirs(eight, 'sequence'),
      theirs(eight, 'previous'),
      theirs(eight, 'none'),
    ],
    { rounds: 7, warmUp: 2 },
  )
  const details = { unit: 'events/s', withoutExpectation: rounded(median(free)) }
  const figure = (name: string, mine: readonly number[], others: readonly number[]) => {
    const { ratio, ...rest } = compare(mine, others)
    return result(name, ratio, { atLeast: 0.8 }, { ...rest, ...details })
  }
  return [
    figure('nats-record-1', ours1, bare1),
    figure('nats-record-8', ours8, bare8),
    figure('nats-record-pipelined', ours8, pipelined),
  ]
}
