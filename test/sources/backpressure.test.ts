import { Readable } from 'node:stream'
import { Subject } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createClient } from 'rivulet'
import { Gate, iterate, throughGate } from 'rivulet/operators'
import { answer, openStream, queryOf, serve } from '../support/serve.ts'
import { settled } from '../support/settled.ts'

/** Far more than any socket's buffers hold. */
const EVENTS = 1_000
const EVENT_BYTES = 64 * 1024

const run = (n: number) => ({
  type: 'task_run.state',
  event_id: String(n),
  run: { run_id: `run_${n}`, status: 'completed', is_active: false, filling: 'x'.repeat(EVENT_BYTES) },
})

/** A service whose one group has much to tell, and tells it as fast as the reader takes it. */
async function flooding() {
  const flood = { sent: 0 }
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
    openStream(response)
    Readable.from(messages(), { highWaterMark: 1 }).pipe(response)
  })
  return { client: createClient({ baseUrl, apiKey: 'key' }), flood }
}

/** A monitor with `e1` to `e{count}`, one on each page, which counts the pages that were asked for. */
async function paging(count: number) {
  const list = Array.from({ length: count }, (_, n) => `e${n + 1}`)
  const asked = { pages: 0 }
  const baseUrl = await serve((request, response) => {
    asked.pages += 1
    const query = queryOf(request)
    const newestFirst = list.toReversed()
    const start = newestFirst.indexOf(query.get('cursor') ?? '') + 1
    const events = newestFirst.slice(start, start + Number(query.get('limit')))
    const last = events.at(-1)
    answer(response, {
      events: events.map((event_id) => ({
        event_type: 'event_stream',
        event_id,
        event_group_id: 'x',
        event_date: null,
        output: {},
      })),
      ...(last !== undefined && last !== newestFirst.at(-1) && { next_cursor: last }),
    })
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
        throughGate(gate, () =>
          stream.subscribe({ next: () => (seen += 1), error: reject, complete: resolve }),
        )
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

describe("a monitor's events under a gate", () => {
  it('asks for one page ahead and for no more while the gate is closed', async () => {
    const { client, asked, list } = await paging(10)
    const gate = new Gate()
    const seen: string[] = []
    const over = new Promise<void>((resolve, reject) => {
      const next = ({ id }: { id: string }) => {
        if (seen.push(id) === 1) gate.close()
      }
      throughGate(gate, () =>
        client.monitors.events('m', { limit: 1 }).subscribe({ next, error: reject, complete: resolve }),
      )
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
      const subscription = throughGate(gate, () => follow.subscribe({ next, error: reject }))
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
      const subscription = throughGate(gate, () => follow.subscribe({ next, error: reject }))
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
