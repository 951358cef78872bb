import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import type { TaskRun } from '../../src/protocol/index.ts'
import { HttpProblem } from '../../src/service/http/problem.ts'
import { Quotas } from '../../src/service/http/quota.ts'
import { type Clock, ManualClock } from '../../src/service/index.ts'
import { HeldProcessor, running } from './running.ts'

/** An hour of this clock is a millisecond. */
const SPEED = 3_600_000
const HOUR = 3_600_000

const passed = (clock: Clock, ms: number) => new Promise<void>((resolve) => clock.schedule(ms, resolve))

describe('on a clock that runs an hour in a millisecond', () => {
  it.each(['', '?timeout=600'])('a stream of events%s stays open for an hour of real time', async (query) => {
    const processor = new HeldProcessor()
    const caller = await running({ speed: SPEED, processor })
    const id = await caller.group()
    const { run_ids } = await caller.add(id, 'one')
    const reader = await caller.stream(`/v1/tasks/groups/${id}/events${query}`)
    const run = await processor.next()
    await passed(caller.service.clock, 10 * HOUR)
    run.complete()
    const events = await reader.rest()
    expect(events.flatMap(({ data }) => data.run?.run_id ?? [])).toEqual(run_ids)
  })

  it('the result of a run is awaited in real time', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ speed: SPEED, processor })
    const { body } = await caller.post<TaskRun>('/v1/tasks/runs', { input: 'one', processor: 'base' })
    const run = await processor.next()
    const answer = caller.get(`/v1/tasks/runs/${body.run_id}/result?timeout=600`)
    await passed(caller.service.clock, 10 * HOUR)
    run.complete()
    expect((await answer).status).toBe(200)
  })

  it('requests are counted per minute of real time', async () => {
    const realTime = new ManualClock()
    const fast = new ManualClock()
    const clock: Clock = {
      now: () => fast.now(),
      schedule: (delay, task) => fast.schedule(delay, task),
      realTime,
    }
    const app = new Hono()
    const quotas = new Quotas(clock, { search: { requests: 1, window: 60_000 } })
    app.onError((error) => new Response(null, { status: error instanceof HttpProblem ? error.status : 500 }))
    app.get('/', (c) => {
      quotas.take('search', 'key')
      return c.text('ok')
    })
    const ask = async () => (await app.request('/')).status
    const [first, second] = [await ask(), await ask()]
    fast.advance(HOUR)
    const third = await ask()
    realTime.advance(60_000)
    expect([first, second, third, await ask()]).toEqual([200, 429, 429, 200])
  })
})
