import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import {
  concat,
  concatMap,
  defer,
  from,
  repeat,
  retry,
  share,
  Subject,
  switchMap,
  throwError,
  timer,
} from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { deliver, Gate, iterate, reconnect, underGate } from 'rivulet/operators'
import { pageOf } from '../support/monitor-page.ts'
import { answer, openStream, serve, sse } from '../support/serve.ts'
import { settled } from '../support/settled.ts'

/** Far more than the buffers of a socket hold. */
const EVENTS = 1_000
const EVENT_BYTES = 64 * 1024

const run = (n: number) => ({
  type: 'task_run.state',
  event_id: String(n),
  run: { run_id: `run_${n}`, status: 'completed', is_active: false, filling: 'x'.repeat(EVENT_BYTES) },
})

/** The responses to the first requests for a stream, one each. Later requests receive all events. */
type FirstConnections = readonly ((response: ServerResponse) => void)[]

/** A service whose groups send many events, as fast as the socket accepts them. */
async function flooding(first: FirstConnections = []) {
  const flood = { sent: 0 }
  let connections = 0
  function* messages() {
    while (flood.sent < EVENTS) {
      const event = run(++flood.sent)
      yield `id: ${event.event_id}\ndata: ${JSON.stringify(event)}\n\n`
    }
  }
  const baseUrl = await serve((request, response) => {
    if (!(request.url ?? '').includes('/runs')) {
      const counts = { num_task_runs: EVENTS, task_run_status_counts: { completed: EVENTS } }
      return answer(response, { taskgroup_id: 'g', status: { ...counts, is_active: false } })
    }
    const instead = first[connections++]
    if (instead !== undefined) return instead(response)
    openStream(response)
    Readable.from(messages(), { highWaterMark: 1 }).pipe(response)
  })
  return { client: createClient({ baseUrl, apiKey: 'key', initialDelay: 0 }), flood }
}

/** Sends one event and breaks the connection. */
function sendOneAndBreak(response: ServerResponse): void {
  openStream(response)
  response.write(sse(run(0)), () => response.destroy())
}

function sendOneAndEnd(response: ServerResponse): void {
  openStream(response)
  response.end(sse(run(0)))
}

/** The service no longer knows the position. */
function refuse(response: ServerResponse): void {
  answer(response, { detail: [{ loc: ['query', 'last_event_id'], msg: 'gone' }] }, 422)
}

/** A monitor with `e1` to `e{count}`, which counts the requested pages; those of `refused` get a 422. */
async function paging(count: number, refused: (page: number) => boolean = () => false) {
  const list = Array.from({ length: count }, (_, n) => `e${n + 1}`)
  const requested = { pages: 0 }
  const baseUrl = await serve((request, response) => {
    requested.pages += 1
    if (refused(requested.pages)) return refuse(response)
    answer(response, pageOf(list.toReversed(), request))
  })
  return { client: createClient({ baseUrl, apiKey: 'key' }), list, requested }
}

describe('a group stream under a gate', () => {
  it('is read no faster than a loop consumes it, without losing an event', async () => {
    const { client, flood } = await flooding()
    const seen: (string | undefined)[] = []
    let sentWhileBusy = Infinity

    for await (const { cursor } of iterate(client.taskGroups.runs('g'), { highWaterMark: 2 })) {
      if (seen.length === 0) {
        // The loop is busy until the buffers of the sockets are full.
        await settled(() => flood.sent)
        sentWhileBusy = flood.sent
      }
      seen.push(cursor)
    }

    expect(sentWhileBusy).toBeLessThan(EVENTS)
    expect(seen).toEqual(Array.from({ length: EVENTS }, (_, n) => String(n + 1)))
  })

  it.each(['runs', 'untyped'] as const)(
    'does not read %s if it was subscribed to under a closed gate',
    async (call) => {
      const { client, flood } = await flooding()
      const gate = new Gate()
      gate.close()
      let seen = 0
      const stream: Observable<unknown> =
        call === 'runs' ? client.taskGroups.runs('g') : client.stream('/v1beta/tasks/groups/g/runs')
      const over = new Promise<void>((resolve, reject) => {
        stream.pipe(underGate(gate)).subscribe({ next: () => (seen += 1), error: reject, complete: resolve })
      })

      await settled(() => flood.sent)
      const whileClosed = { seen, all: flood.sent === EVENTS }
      gate.open()
      await over

      expect(whileClosed).toEqual({ seen: 0, all: false })
      expect(seen).toBe(EVENTS)
    },
  )
})

/** A pipeline with a group stream that sends more than it can buffer. */
interface Pipe {
  readonly first?: FirstConnections
  readonly of: (client: ResearchClient) => Observable<unknown> | Promise<Observable<unknown>>
}

const PIPES: Readonly<Record<string, Pipe>> = {
  'concat, after a request': {
    of: ({ taskGroups }) => concat(taskGroups.get('g'), taskGroups.runs('g')),
  },
  'concat, after another stream': {
    first: [sendOneAndEnd],
    of: (client) => concat(client.stream('/v1beta/tasks/groups/g/runs'), client.taskGroups.runs('g')),
  },
  'switchMap, after a request': {
    of: ({ taskGroups }) => taskGroups.get('g').pipe(switchMap(() => taskGroups.runs('g'))),
  },
  'switchMap, after a timer': {
    of: ({ taskGroups }) => timer(1).pipe(switchMap(() => taskGroups.runs('g'))),
  },
  'concatMap over ids': {
    first: [sendOneAndEnd],
    of: (client) =>
      from(['a', 'b']).pipe(concatMap((id) => client.stream(`/v1beta/tasks/groups/${id}/runs`))),
  },
  'retry with a delay': {
    first: [sendOneAndBreak],
    of: (client) => client.stream('/v1beta/tasks/groups/g/runs').pipe(retry({ delay: 1 })),
  },
  'retry with a delay, after a failure before the stream': {
    of: ({ taskGroups }) => {
      let attempts = 0
      const down = throwError(() => new Error('down'))
      return defer(() => (attempts++ === 0 ? down : taskGroups.runs('g'))).pipe(retry({ delay: 1 }))
    },
  },
  'repeat with a delay': {
    first: [sendOneAndEnd],
    of: (client) => client.stream('/v1beta/tasks/groups/g/runs').pipe(repeat({ count: 2, delay: 1 })),
  },
  'reconnect after a delay': {
    first: [sendOneAndBreak],
    of: (client) =>
      client
        .stream('/v1beta/tasks/groups/g/runs')
        .pipe(reconnect({ initialDelay: 2, random: () => 0.5, retryable: () => true })),
  },
  'another deliver': {
    of: ({ taskGroups }) =>
      taskGroups.get('g').pipe(
        deliver(async () => {}),
        concatMap(() => taskGroups.runs('g')),
      ),
  },
  'watch, after a timer': {
    of: async (client) =>
      timer(1).pipe(
        switchMap(() => client.watch({ taskGroups: ['g'] })),
        deliver(() => {}),
      ),
  },
  'a stream whose connection broke': {
    first: [sendOneAndBreak],
    of: ({ taskGroups }) => taskGroups.runs('g'),
  },
  'a stream that restarted after a 422': {
    first: [sendOneAndBreak, refuse],
    of: ({ taskGroups }) => taskGroups.runs('g'),
  },
}

describe.each(Object.entries(PIPES))('a group stream through %s', (_name, { first, of }) => {
  it('is read no faster than a handler consumes it', async () => {
    const { client, flood } = await flooding(first)
    const pipe = await of(client)
    const busy = new Promise(() => {})
    const subscription = pipe.pipe(deliver(() => busy, { concurrency: 2, highWaterMark: 2 })).subscribe()
    onTestFinished(() => subscription.unsubscribe())

    await settled(() => flood.sent)

    expect(flood.sent).toBeLessThan(EVENTS)
  })

  it('is read no faster than a loop consumes it', async () => {
    const { client, flood } = await flooding(first)
    const loop = iterate(await of(client), { highWaterMark: 2 })
    onTestFinished(async () => void (await loop.return?.()))
    await loop.next()

    await settled(() => flood.sent)

    expect(flood.sent).toBeLessThan(EVENTS)
  })
})

describe('a group stream that is shared', () => {
  it('is read no faster than the handler whose gate it is under, also after a reconnection', async () => {
    const { client, flood } = await flooding([sendOneAndBreak])
    const gate = new Gate()
    const shared = client
      .stream('/v1beta/tasks/groups/g/runs')
      .pipe(retry({ delay: 1 }), underGate(gate), share())
    const busy = new Promise(() => {})
    const watching = shared.subscribe()
    const handling = shared.pipe(deliver(() => busy, { concurrency: 1, highWaterMark: 1, gate })).subscribe()
    onTestFinished(() => {
      watching.unsubscribe()
      handling.unsubscribe()
    })

    await settled(() => flood.sent)

    expect(flood.sent).toBeLessThan(EVENTS)
  })

  it('is read to its end for other subscribers after a loop that paused it has ended', async () => {
    const { client, flood } = await flooding()
    const shared = client.taskGroups.runs('g').pipe(share())
    const loop = iterate(shared, { highWaterMark: 1 })
    const first = loop.next()
    let seen = 0
    const over = new Promise<void>((resolve, reject) => {
      shared.subscribe({ next: () => (seen += 1), error: reject, complete: resolve })
    })
    await first
    await settled(() => flood.sent)

    await loop.return?.()
    await over

    expect(seen).toBe(EVENTS)
  })
})

describe("a monitor's events under a gate", () => {
  it('prefetches one page and no more while the gate is closed', async () => {
    const { client, requested, list } = await paging(10)
    const gate = new Gate()
    const seen: string[] = []
    const over = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) === 1) gate.close()
      }
      client.monitors
        .events('m', { limit: 1 })
        .pipe(underGate(gate))
        .subscribe({ next, error: reject, complete: resolve })
    })

    await settled(() => requested.pages)
    const whileClosed = { pages: requested.pages, seen: [...seen] }
    gate.open()
    await over

    expect(whileClosed).toEqual({ pages: 2, seen: ['e10'] })
    expect(seen).toEqual(list.toReversed())
  })

  it('pauses within the events of a poll, and resumes there', async () => {
    const { client, list } = await paging(6)
    const gate = new Gate()
    const seen: string[] = []
    const done = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) % 2 === 0) gate.close()
        if (seen.length === list.length) resolve()
      }
      const follow = client.monitors.follow('m', { limit: 100, pollInterval: Infinity })
      const subscription = follow.pipe(underGate(gate)).subscribe({ next, error: reject })
      onTestFinished(() => subscription.unsubscribe())
    })

    const steps: number[] = []
    for (let step = 0; step < 3; step++) {
      await settled(() => seen.length - 2 * step)
      steps.push(seen.length)
      gate.open()
    }
    await done

    expect(steps).toEqual([2, 4, 6])
    expect(seen).toEqual(list)
  })

  it('prefetches one page after the service rejected a cursor', async () => {
    const gate = new Gate()
    const { client, requested, list } = await paging(10, (page) => {
      if (page === 2) gate.close()
      return page === 2
    })
    const seen: string[] = []
    const done = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) === list.length) resolve()
      }
      const follow = client.monitors.follow('m', { limit: 1, pollInterval: Infinity })
      const subscription = follow.pipe(underGate(gate)).subscribe({ next, error: reject })
      onTestFinished(() => subscription.unsubscribe())
    })

    // The rejected page, one to read and one that is prefetched.
    await settled(() => Math.max(0, requested.pages - 2))
    const whileClosed = requested.pages
    gate.open()
    await done

    expect(whileClosed).toBe(4)
    expect(seen).toEqual(list)
  })

  it('prefetches one page in later polls too', async () => {
    const { client, requested, list } = await paging(1)
    const gate = new Gate()
    const wake = new Subject<void>()
    const seen: string[] = []
    const done = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) === 8) resolve()
      }
      const follow = client.monitors.follow('m', { limit: 1, pollInterval: Infinity, wake })
      const subscription = follow.pipe(underGate(gate)).subscribe({ next, error: reject })
      onTestFinished(() => subscription.unsubscribe())
    })
    await settled(() => seen.length)

    gate.close()
    requested.pages = 0
    list.push('e2', 'e3', 'e4', 'e5', 'e6', 'e7', 'e8')
    wake.next()
    await settled(() => requested.pages)
    const whileClosed = { pages: requested.pages, seen: [...seen] }
    gate.open()
    await done

    expect(whileClosed).toEqual({ pages: 2, seen: ['e1'] })
    expect(seen).toEqual(list)
  })
})
