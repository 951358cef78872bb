import { fetchEventSource } from '@microsoft/fetch-event-source'
import { EventSource } from 'eventsource'
import { EventSource as LaunchDarkly } from 'launchdarkly-eventsource'
import { Stream } from 'openai/core/streaming'
import { createClient } from 'rivulet'
import type { ResearchClient, ResearchEvent } from 'rivulet'
import { dedupe } from 'rivulet/operators'
import { identity, lastValueFrom, map } from 'rxjs'
import type { MonoTypeOperatorFunction } from 'rxjs'
import { expectCount } from '../expect-count.ts'
import { result, rounded } from '../figure.ts'
import type { Measure } from '../figure.ts'
import { compare, inTurns, median, perSecond } from '../rounds.ts'
import { startServer } from '../server.ts'

const EVENTS = 100_000
/** Few events, for a reader that takes a hundred times as long per event. */
const FEW_EVENTS = 2_000
const BYTES = 400
/** The `event:` field of each event. */
const TYPE = 'task_run.state'

/** One group's runs. */
interface Runs {
  readonly group: string
  readonly url: string
  readonly events: number
}

/** Reads the runs once: calls `next` with the parsed JSON of each event, and resolves after the last. */
type Read = (runs: Runs, next: (wire: unknown) => void) => Promise<unknown>

/**
 * Events per second of one group's runs, 100,000 of 400 B, as typed events with `dedupe`, against other readers of event streams
 * as their documentation shows them. All alternate in one process, on the same bytes and server, and parse each event's JSON.
 *
 * `eventsource`, `@microsoft/fetch-event-source` and the stream reader of `openai` read Node's `fetch`, `launchdarkly-eventsource`
 * `node:http`, and only 2,000 events: it scans each chunk from its start for each line. The fastest has the highest median.
 */
export const measure: Measure = async () => {
  await using server = await startServer('groups')
  const side = (read: Read, events = EVENTS) => {
    const group = `${events}x${BYTES}`
    const runs = { group, url: `${server.url}/v1beta/tasks/groups/${group}/runs`, events }
    return () => perSecond(events, () => readAll(read, runs))
  }
  const client = createClient({ baseUrl: server.url, apiKey: 'none' })
  const [ours, plain, ...theirs] = await inTurns(
    [
      side(rivulet(client, dedupe())),
      side(rivulet(client, identity)),
      side(eventSource((url) => new EventSource(url))),
      side(openAi),
      side(fetchEventSourceInNode),
      side(
        eventSource((url) => new LaunchDarkly(url)),
        FEW_EVENTS,
      ),
    ],
    { rounds: 7, warmUp: 1 },
  )
  const [byEventSource, byOpenAi, byFetchEventSource, byLaunchDarkly] = theirs
  const details = {
    ours: rounded(median(ours)),
    eventsource: rounded(median(byEventSource)),
    openai: rounded(median(byOpenAi)),
    '@microsoft/fetch-event-source': rounded(median(byFetchEventSource)),
    'launchdarkly-eventsource': rounded(median(byLaunchDarkly)),
    rounds: ours.length,
    unit: 'events/s',
  }
  const fastest = theirs.reduce((best, rates) => (median(rates) > median(best) ? rates : best))
  const against = (name: string, rates: readonly number[], atLeast: number) => {
    const withoutDedupe = rounded(compare(plain, rates).ratio)
    return result(name, compare(ours, rates).ratio, { atLeast }, { ...details, withoutDedupe })
  }
  return [against('stream-vs-fastest-client', fastest, 1.4), against('stream-vs-openai', byOpenAi, 4.5)]
}

/** Fails unless every event was received, with the last one last. */
async function readAll(read: Read, runs: Runs): Promise<void> {
  let count = 0
  let last: unknown
  await read(runs, (wire) => {
    count += 1
    last = wire
  })
  const { event_id }: { readonly event_id?: unknown } = Object(last)
  expectCount(count, runs.events)
  if (event_id !== String(runs.events)) throw new Error(`the last received event is ${String(event_id)}`)
}

function rivulet(client: ResearchClient, operator: MonoTypeOperatorFunction<ResearchEvent>): Read {
  return ({ group }, next) =>
    lastValueFrom(
      client.taskGroups.runs(group).pipe(
        operator,
        map(({ data }) => next(data)),
      ),
    )
}

/** The common part of `eventsource` and `launchdarkly-eventsource`. */
interface Emitter {
  addEventListener(type: string, listener: (event: { readonly data: string }) => void): void
  addEventListener(type: 'error', listener: (event: { readonly message?: string }) => void): void
  close(): void
}

function eventSource(open: (url: string) => Emitter): Read {
  return ({ url, events }, next) =>
    new Promise<void>((resolve, reject) => {
      const source = open(url)
      let left = events
      source.addEventListener(TYPE, ({ data }) => {
        next(JSON.parse(data))
        left -= 1
        if (left > 0) return
        // It would reconnect at the end of the response.
        source.close()
        resolve()
      })
      source.addEventListener('error', ({ message }: { readonly message?: string }) => {
        source.close()
        reject(new Error(message))
      })
    })
}

async function openAi({ url }: Runs, next: (wire: unknown) => void): Promise<void> {
  const controller = new AbortController()
  const response = await fetch(url, { signal: controller.signal })
  for await (const wire of Stream.fromSSEResponse(response, controller)) next(wire)
}

/** Sets the globals of a browser while it reads, and removes them for the other readers. */
async function fetchEventSourceInNode({ url }: Runs, next: (wire: unknown) => void): Promise<void> {
  Object.assign(globalThis, { window: globalThis, document: new EventTarget() })
  try {
    await fetchEventSource(url, {
      openWhenHidden: true,
      onmessage: ({ data }) => next(JSON.parse(data)),
      onerror(error) {
        // Without this it would reconnect.
        throw error
      },
    })
  } finally {
    Reflect.deleteProperty(globalThis, 'window')
    Reflect.deleteProperty(globalThis, 'document')
  }
}
