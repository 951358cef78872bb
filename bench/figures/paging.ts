import { setTimeout as sleep } from 'node:timers/promises'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { deliver } from 'rivulet/operators'
import { count, lastValueFrom } from 'rxjs'
import { Agent } from 'undici'
import type { Dispatcher } from 'undici'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure, Result } from '../figure.ts'
import { alternately, compare, inTurns, median, perSecond, seconds } from '../rounds.ts'
import type { Side } from '../rounds.ts'
import { startServer } from '../server.ts'

const LIMIT = 100
const BYTES = 1_000
const EVENTS = 10_000
/** Passes over all pages per round. One alone would be too short. */
const WALKS = 10
const SLOW_PAGES = 40
/** Long compared with a timer's delay of about 1 ms. */
const SLOW_MS = 20

/**
 * `paging`: events per second of a monitor's 10,000 events of 1 KB, 100 a page, through `client.monitors.events`, against a loop with
 * undici's dispatch, one decoding per chunk, one `JSON.parse` per page, and the next page requested before the current one is read.
 * `paging-slow-consumer`: the server and the consumer take 20 ms for each of 40 pages. Total time against the slower of the two
 * alone: the server with the loop, or the same consumer with immediate pages. The details have `for await`, and 40 × 20 ms.
 */
export const measure: Measure = async () => {
  await using server = await startServer('monitors')
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  return [await paging(client, server.url), await slowConsumer(client, server.url)]
}

async function paging(client: ResearchClient, url: string): Promise<Result> {
  const monitor = `${EVENTS}x${BYTES}x0`
  const times = async (walk: () => Promise<number>) => {
    for (let n = 0; n < WALKS; n++) expectCount(await walk(), EVENTS)
  }
  const ours = () => lastValueFrom(client.monitors.events(monitor, { limit: LIMIT }).pipe(count()))
  const { ratio, ...details } = await alternately(
    () => perSecond(WALKS * EVENTS, () => times(ours)),
    () => perSecond(WALKS * EVENTS, () => times(() => bareWalk(url, monitor))),
    { rounds: 21, warmUp: 4 },
  )
  return result('paging', ratio, { atLeast: 0.95 }, { ...details, unit: 'events/s' })
}

async function slowConsumer(client: ResearchClient, url: string): Promise<Result> {
  const events = SLOW_PAGES * LIMIT
  const pages = (ms: number) => client.monitors.events(`${events}x${BYTES}x${ms}`, { limit: LIMIT })
  const delivered = (ms: number) =>
    lastValueFrom(
      pages(ms).pipe(
        deliver(() => sleep(SLOW_MS), { concurrency: LIMIT }),
        count(),
      ),
    )
  const iterated = async () => {
    let got = 0
    for await (const _ of pages(SLOW_MS)) {
      got += 1
      if (got % LIMIT === 0) await sleep(SLOW_MS)
    }
    return got
  }
  const timed =
    (walk: () => Promise<number>): Side =>
    () =>
      seconds(async () => expectCount(await walk(), events))

  const [both, loop, servers, consumers] = await inTurns(
    [
      timed(() => delivered(SLOW_MS)),
      timed(iterated),
      timed(() => bareWalk(url, `${events}x${BYTES}x${SLOW_MS}`)),
      timed(() => delivered(0)),
    ],
    { rounds: 7, warmUp: 1 },
  )
  const larger = servers.map((time, round) => Math.max(time, consumers[round] ?? NaN))
  const against = (times: readonly number[]) => compare(times, larger).ratio
  const nominal = (SLOW_PAGES * SLOW_MS) / 1_000
  return result(
    'paging-slow-consumer',
    against(both),
    { atMost: 1.15 },
    {
      forAwait: rounded(against(loop)),
      againstNominal: rounded(median(both) / nominal),
      forAwaitAgainstNominal: rounded(median(loop) / nominal),
      ours: rounded(median(both)),
      serverAlone: rounded(median(servers)),
      consumerAlone: rounded(median(consumers)),
      rounds: both.length,
      unit: 's',
    },
  )
}

interface Page {
  readonly events: readonly unknown[]
  readonly next_cursor?: string
}

const agent = new Agent()

/** Reads all pages, requesting the next one while the current one is consumed. Resolves with the number of events. */
async function bareWalk(url: string, monitor: string): Promise<number> {
  let events = 0
  let upcoming: Promise<Page> | undefined = barePage(url, monitor)
  while (upcoming !== undefined) {
    const page: Page = await upcoming
    upcoming = page.next_cursor === undefined ? undefined : barePage(url, monitor, page.next_cursor)
    for (const event of page.events) if (event !== undefined) events += 1
  }
  return events
}

function barePage(url: string, monitor: string, cursor?: string): Promise<Page> {
  return new Promise((resolve, reject) => {
    const decoder = new TextDecoder()
    let text = ''
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart: () => {},
      onResponseStart: () => {},
      onResponseData(_controller, bytes) {
        text += decoder.decode(bytes, { stream: true })
      },
      onResponseEnd: () => resolve(JSON.parse(text)),
      onResponseError: (_controller, error) => reject(error),
    }
    const after = cursor === undefined ? '' : `&cursor=${cursor}`
    const path = `/v1/monitors/${monitor}/events?limit=${LIMIT}${after}`
    // Without timeouts, as in the library's own transport.
    agent.dispatch({ origin: url, path, method: 'GET', headersTimeout: 0, bodyTimeout: 0 }, handler)
  })
}
