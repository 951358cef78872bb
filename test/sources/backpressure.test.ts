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
import { createClient, memoryCheckpointStore, openCheckpoint } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { deliver, Gate, iterate, reconnect, underGate } from 'rivulet/operators'
import { pageOf } from '../support/monitor-page.ts'
import { answer, openStream, serve, sse } from '../support/serve.ts'
import { settled } from '../support/settled.ts'

/** Far more than any socket's buffers hold. */
const EVENTS = 1_000
const EVENT_BYTES = 64 * 1024

const run = (n: number) => ({
  type: 'task_run.state',
  event_id: String(n),
  run: { run_id: `run_${n}`, status: 'completed', is_active: false, filling: 'x'.repeat(EVENT_BYTES) },
})

/** What a service does with the first requests for a stream, one each, before the others get all that there is. */
type FirstConnections = readonly ((response: ServerResponse) => void)[]

/** A service whose groups have much to tell, and tell it as fast as the reader takes it. */
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

/** One event, and the connection breaks. */
function tellOneAndBreak(response: ServerResponse): void {
  openStream(response)
  response.write(sse(run(0)), () => response.destroy())
}

function tellOneAndEnd(response: ServerResponse): void {
  openStream(response)
  response.end(sse(run(0)))
}

/** The service no longer knows the position. */
function refuse(response: ServerResponse): void {
  answer(response, { detail: [{ loc: ['query', 'last_event_id'], msg: 'gone' }] }, 422)
}

/** A monitor with `e1` to `e{count}`, which counts the pages that were asked for; `refused` of them get another answer. */
async function paging(count: number, refused: (page: number) => boolean = () => false) {
  const list = Array.from({ length: count }, (_, n) => `e${n + 1}`)
  const asked = { pages: 0 }
  const baseUrl = await serve((request, response) => {
    asked.pages += 1
    if (refused(asked.pages)) return refuse(response)
    answer(response, pageOf(list.toReversed(), request))
  })
  return { client: createClient({ baseUrl, apiKey: 'key' }), list, asked }
}

describe('a group stream under a gate', () => {
  it('is read no faster than a loop takes its events, and loses none of them', async () => {
    const { client, flood } = await flooding()
    const seen: (string | undefined)[] = []
    let sentWhileBusy = Infinity

    for await (const { cursor } of iterate(client.taskGroups.runs('g'), { highWaterMark: 2 })) {
      if (seen.length === 0) {
        // The loop is busy until the service has sent all that the sockets' buffers take.
        await settled(() => flood.sent)
        sentWhileBusy = flood.sent
      }
      seen.push(cursor)
    }

    expect(sentWhileBusy).toBeLessThan(EVENTS)
    expect(seen).toEqual(Array.from({ length: EVENTS }, (_, n) => String(n + 1)))
  })

  it.each(['runs', 'untyped'] as const)(
    'reads nothing of %s while the gate is closed that it was opened under',
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

/** A pipe that ends in a group stream which floods whoever does not hold it back. */
interface Pipe {
  readonly first?: FirstConnections
  readonly of: (client: ResearchClient) => Observable<unknown> | Promise<Observable<unknown>>
}

const PIPES: Readonly<Record<string, Pipe>> = {
  'concat, behind a request': {
    of: ({ taskGroups }) => concat(taskGroups.get('g'), taskGroups.runs('g')),
  },
  'concat, behind another stream': {
    first: [tellOneAndEnd],
    of: (client) => concat(client.stream('/v1beta/tasks/groups/g/runs'), client.taskGroups.runs('g')),
  },
  'switchMap, behind a request': {
    of: ({ taskGroups }) => taskGroups.get('g').pipe(switchMap(() => taskGroups.runs('g'))),
  },
  'switchMap, behind a timer': {
    of: ({ taskGroups }) => timer(1).pipe(switchMap(() => taskGroups.runs('g'))),
  },
  'concatMap over ids': {
    first: [tellOneAndEnd],
    of: (client) =>
      from(['a', 'b']).pipe(concatMap((id) => client.stream(`/v1beta/tasks/groups/${id}/runs`))),
  },
  'retry with a delay': {
    first: [tellOneAndBreak],
    of: (client) => client.stream('/v1beta/tasks/groups/g/runs').pipe(retry({ delay: 1 })),
  },
  'retry with a delay, of what failed before the stream was opened': {
    of: ({ taskGroups }) => {
      let attempts = 0
      const down = throwError(() => new Error('down'))
      return defer(() => (attempts++ === 0 ? down : taskGroups.runs('g'))).pipe(retry({ delay: 1 }))
    },
  },
  'repeat with a delay': {
    first: [tellOneAndEnd],
    of: (client) => client.stream('/v1beta/tasks/groups/g/runs').pipe(repeat({ count: 2, delay: 1 })),
  },
  'reconnect after a delay': {
    first: [tellOneAndBreak],
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
  'watch with a checkpoint, behind a timer': {
    of: async (client) => {
      const checkpoint = await openCheckpoint(memoryCheckpointStore())
      // Only a `deliver` with the checkpoint says what was handled, here one that handles at once.
      return timer(1).pipe(
        switchMap(() => client.watch({ taskGroups: ['g'], checkpoint })),
        deliver(() => {}, { checkpoint }),
      )
    },
  },
  'a stream that was cut': {
    first: [tellOneAndBreak],
    of: ({ taskGroups }) => taskGroups.runs('g'),
  },
  'a stream that began again after a 422': {
    first: [tellOneAndBreak, refuse],
    of: ({ taskGroups }) => taskGroups.runs('g'),
  },
}

describe.each(Object.entries(PIPES))('a group stream through %s', (_name, { first, of }) => {
  it('is read no faster than a handler takes its events', async () => {
    const { client, flood } = await flooding(first)
    const pipe = await of(client)
    const busy = new Promise(() => {})
    const subscription = pipe.pipe(deliver(() => busy, { concurrency: 2, highWaterMark: 2 })).subscribe()
    onTestFinished(() => subscription.unsubscribe())

    await settled(() => flood.sent)

    expect(flood.sent).toBeLessThan(EVENTS)
  })

  it('is read no faster than a loop takes its events', async () => {
    const { client, flood } = await flooding(first)
    const loop = iterate(await of(client), { highWaterMark: 2 })
    onTestFinished(async () => void (await loop.return?.()))
    await loop.next()

    await settled(() => flood.sent)

    expect(flood.sent).toBeLessThan(EVENTS)
  })
})

describe('a group stream that is shared', () => {
  it('is read no faster than the handler whose gate it was put under, also when it is taken up again', async () => {
    const { client, flood } = await flooding([tellOneAndBreak])
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

  it('is read to its end by the others when a loop that held it is left', async () => {
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
  it('asks for one page ahead and for no more while the gate is closed', async () => {
    const { client, asked, list } = await paging(10)
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

    await settled(() => asked.pages)
    const whileClosed = { pages: asked.pages, seen: [...seen] }
    gate.open()
    await over

    expect(whileClosed).toEqual({ pages: 2, seen: ['e10'] })
    expect(seen).toEqual(list.toReversed())
  })

  it('stops in the midst of what a poll brought, and goes on from there', async () => {
    const { client, list } = await paging(6)
    const gate = new Gate()
    const seen: string[] = []
    const told = new Promise<void>((resolve, reject) => {
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
    await told

    expect(steps).toEqual([2, 4, 6])
    expect(seen).toEqual(list)
  })

  it('asks for one page ahead when the walk begins again, since the service no longer knew the next page', async () => {
    const gate = new Gate()
    const { client, asked, list } = await paging(10, (page) => {
      if (page === 2) gate.close()
      return page === 2
    })
    const seen: string[] = []
    const told = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) === list.length) resolve()
      }
      const follow = client.monitors.follow('m', { limit: 1, pollInterval: Infinity })
      const subscription = follow.pipe(underGate(gate)).subscribe({ next, error: reject })
      onTestFinished(() => subscription.unsubscribe())
    })

    // The page that was refused, then one to read and one ahead.
    await settled(() => Math.max(0, asked.pages - 2))
    const whileClosed = asked.pages
    gate.open()
    await told

    expect(whileClosed).toBe(4)
    expect(seen).toEqual(list)
  })

  it('asks for one page ahead in later polls too', async () => {
    const { client, asked, list } = await paging(1)
    const gate = new Gate()
    const wake = new Subject<void>()
    const seen: string[] = []
    const told = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) === 8) resolve()
      }
      const follow = client.monitors.follow('m', { limit: 1, pollInterval: Infinity, wake })
      const subscription = follow.pipe(underGate(gate)).subscribe({ next, error: reject })
      onTestFinished(() => subscription.unsubscribe())
    })
    await settled(() => seen.length)

    gate.close()
    asked.pages = 0
    list.push('e2', 'e3', 'e4', 'e5', 'e6', 'e7', 'e8')
    wake.next()
    await settled(() => asked.pages)
    const whileClosed = { pages: asked.pages, seen: [...seen] }
    gate.open()
    await told

    expect(whileClosed).toEqual({ pages: 2, seen: ['e1'] })
    expect(seen).toEqual(list)
  })
})
