import { once } from 'node:events'
import { expectCount } from '../expect-count.ts'
import { result } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { ended } from '../child.ts'
import { removeLog, startNats } from '../nats/server.ts'
import { compare, inTurns, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 8_000
/** Of each worker. */
const SOURCES = 8

/**
 * `nats-workers-2`, `nats-workers-4`: events of 900 bytes per second that two and four processes record into one log on a NATS server,
 * each from eight sources of its own, against one process that records as many events.
 */
export const measure: Measure = async () => {
  await using server = await startNats()
  let logs = 0
  const workers = (count: number) => async () => {
    const name = `workers-${(logs += 1)}`
    const own = EVENTS / count
    const started = await Promise.all(
      Array.from({ length: count }, (_, number) =>
        startServer('nats-worker', [server.url, name, String(number), String(own), String(SOURCES)]),
      ),
    )
    const rate = await perSecond(EVENTS, () =>
      Promise.all(
        started.map(async (worker) => {
          worker.process.send('begin')
          await once(worker.process, 'message')
        }),
      ),
    )
    for (const worker of started) worker.process.send('end')
    await Promise.all(started.map((worker) => ended(worker.process)))
    expectCount(await removeLog(server.url, name), EVENTS, 'recorded events')
    return rate
  }
  const [one, two, four] = await inTurns([workers(1), workers(2), workers(4)], { rounds: 5, warmUp: 1 })
  const figure = (name: string, mine: readonly number[]) => {
    const { ratio, ...details } = compare(mine, one)
    return result(name, ratio, { atLeast: 0.8 }, { ...details, unit: 'events/s' })
  }
  return [figure('nats-workers-2', two), figure('nats-workers-4', four)]
}
