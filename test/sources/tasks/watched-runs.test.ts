import { ArgumentError, NotFoundError } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { Entry, EventLog } from 'rivulet/log'
import { lastValueFrom, of, toArray } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { answer } from '../../support/serve.ts'
import { brief, done, message, runAs, runService, state } from './run-service.ts'

const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()))
const trace = [state('running'), message('again'), message('again'), message('read'), done]
const missing = { error: { ref_id: 'x', message: 'no such run' } }

async function entriesOf(log: EventLog): Promise<readonly Entry[]> {
  const page = await log.read(await log.positionAt('start'), { limit: 1_000 })
  return page.entries.filter(({ via }) => via !== 'log')
}

describe('watched runs', () => {
  it('come with their trace and complete with it', async () => {
    const { client } = await runService({ events: (response) => response.end(trace.join('')) })

    expect(brief(await all(client.watch({ runs: ['r'] })))).toEqual([
      'running',
      'again',
      'again',
      'read',
      'completed',
    ])
  })

  it('come once if a webhook has the end too', async () => {
    const { client } = await runService({ events: (response) => response.end(trace.join('')) })
    const payload = { type: 'task_run.status', data: runAs('completed') }
    const deliveries = of({ id: 'w', timestamp: 0, payload })

    const events = await all(client.watch({ runs: ['r'], webhooks: { deliveries }, hold: 0 }))

    expect(brief(events).filter((word) => word === 'completed')).toHaveLength(1)
  })

  it('that do not exist are source.failed, and the others go on', async () => {
    const { client } = await runService({
      stream: (response, nth) => {
        if (nth === 1) return answer(response, missing, 404)
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end(trace.join(''))
      },
    })

    const events = await all(client.watch({ runs: of(['none', 'r', '..']) }))

    const failures = events.flatMap((event) => (event.type === 'source.failed' ? [event.data.error] : []))
    expect(failures.some((error) => error instanceof NotFoundError)).toBe(true)
    expect(failures.some((error) => error instanceof ArgumentError)).toBe(true)
    expect(failures).toHaveLength(2)
  })

  it('have ids that are checked at the call', async () => {
    const { client } = await runService()
    expect(() => client.watch({ runs: ['..'] })).toThrow('runs[0] must be an id')
    expect(() => client.watch({ runs: [{ id: 'r', until: 'done' }] as never })).toThrow('no option until')
  })
})

describe('recorded runs', () => {
  it('have each event once in the log, over any number of recordings that the trace begins again for', async () => {
    const breaksAt = 3
    const { client, lines } = await runService({
      events: (response, nth) => {
        if (nth > 1) return response.end(trace.join(''))
        response.write(trace.slice(0, breaksAt).join(''))
      },
    })
    const root = memoryStore()
    await using log = await openLog(root)
    const first = log.record({ client, runs: ['r'] })
    while ((await entriesOf(log)).length < breaksAt) await new Promise((resolve) => setImmediate(resolve))
    await first.stop()

    await log.record({ client, runs: ['r'] }).done
    expect(brief(await entriesOf(log))).toEqual(['running', 'again', 'again', 'read', 'completed'])

    // A run that has ended is not requested again.
    const before = lines().length
    await log.record({ client, runs: ['r'] }).done
    expect(lines()).toHaveLength(before)
    expect(await entriesOf(log)).toHaveLength(5)
  })

  it('can be replaced', async () => {
    const { client, lines } = await runService({ events: (response) => response.end(trace.join('')) })
    await using log = await openLog(memoryStore())
    const recording = log.record({ client, runs: [], webhooks: true })

    recording.set({ runs: ['r'] })
    while ((await entriesOf(log)).length < 5) await new Promise((resolve) => setImmediate(resolve))
    expect(() => recording.set({ runs: [''] })).toThrow(ArgumentError)
    await recording.stop()

    expect(lines()).toHaveLength(1)
  })
})
