import { firstValueFrom, lastValueFrom, toArray, VirtualTimeScheduler } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it } from 'vitest'
import * as fc from 'fast-check'
import { IncompleteStreamError, NotFoundError, ProtocolError } from 'rivulet'
import { answer, sse } from '../../support/serve.ts'
import { MAX_CONTENTS } from '../../../src/sources/tasks/seen-trace.ts'
import { brief, done, message, runAs, runService, state, stats, text } from './run-service.ts'

const all = <T>(source: Observable<T>) => lastValueFrom(source.pipe(toArray()))
const trace = [state('queued'), message('plan'), state('running'), message('search'), message('read'), done]

describe('the events of a run', () => {
  it.each([0, 1, 2, 3, 4, 5])(
    'come once and in order if the connection breaks after message %i and the trace begins again',
    async (cut) => {
      const { client, lines } = await runService({
        events: (response, nth) => {
          if (nth > 1) return response.end(trace.join(''))
          if (cut === 0) return response.destroy()
          response.write(trace.slice(0, cut).join(''), () => response.destroy())
        },
      })

      expect(brief(await all(client.tasks.events('r')))).toEqual([
        'queued',
        'plan',
        'running',
        'search',
        'read',
        'completed',
      ])
      expect(lines()).toEqual(['GET /v1/tasks/runs/r/events', 'GET /v1/tasks/runs/r/events'])
    },
  )

  it('come once if connections break at any byte', async () => {
    const bytes = Buffer.from(trace.join(''))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(bytes.length - 1), { maxLength: 4 }), async (cuts) => {
        const { client } = await runService({
          events: (response, nth) => {
            const cut = cuts[nth - 1]
            if (cut === undefined) return response.end(bytes)
            response.write(bytes.subarray(0, cut), () => response.destroy())
          },
        })
        expect(brief(await all(client.tasks.events('r')))).toEqual([
          'queued',
          'plan',
          'running',
          'search',
          'read',
          'completed',
        ])
      }),
      { numRuns: 25 },
    )
  })

  it('are two events for two equal messages of one trace, with two ids', async () => {
    const twice = [state('running'), message('again'), message('again'), message('more'), done]
    const { client } = await runService({
      events: (response, nth) => response.end(twice.slice(0, nth === 1 ? 2 : 5).join('')),
      get: (response) => answer(response, runAs('running')),
    })

    const events = await all(client.tasks.events('r'))

    expect(brief(events)).toEqual(['running', 'again', 'again', 'more', 'completed'])
    expect(new Set(events.map(({ id }) => id)).size).toBe(5)
    expect(events[2]?.id).toBe(`${events[1]?.id}:2`)
  })

  it('come once if a reconnection sends the trace in another order', async () => {
    const { client } = await runService({
      events: (response, nth) =>
        response.end(
          nth === 1
            ? [state('running'), message('a'), message('b'), message('a')].join('')
            : [state('running'), message('b'), message('a'), message('a'), message('c'), done].join(''),
        ),
      get: (response) => answer(response, runAs('running')),
    })

    expect(brief(await all(client.tasks.events('r')))).toEqual(['running', 'a', 'b', 'a', 'c', 'completed'])
  })

  it('have the progress only when it has changed', async () => {
    const { client } = await runService({
      events: (response, nth) =>
        response.end(
          nth === 1
            ? [state('running'), stats(10), stats(10), stats(20), stats(10)].join('')
            : [state('running'), stats(10), stats(30), done].join(''),
        ),
      get: (response) => answer(response, runAs('running')),
    })

    expect(brief(await all(client.tasks.events('r')))).toEqual([
      'running',
      '10',
      '20',
      '10',
      '30',
      'completed',
    ])
  })

  it('of a run that has ended come with its whole trace, and end with the state that has the output', async () => {
    const { client } = await runService({
      events: (response) => response.end([state('completed'), message('a'), message('b'), done].join('')),
    })

    const events = await all(client.tasks.events('r'))

    expect(brief(events)).toEqual(['a', 'b', 'completed'])
    expect(events.at(-1)?.data).toMatchObject({ output: text('42') })
  })

  it('are one state for a stream with nothing else, twice, since a proxy may have closed the first one', async () => {
    const { client, lines } = await runService({ events: (response) => response.end(done) })

    expect(brief(await all(client.tasks.events('r')))).toEqual(['completed'])
    expect(lines()).toHaveLength(2)
  })

  it('are the whole trace of a run that has failed, if a proxy ends the stream cleanly within it', async () => {
    const whole = [state('failed'), message('a'), message('b'), message('c'), state('failed')]
    const { client } = await runService({
      events: (response, nth) => response.end(whole.slice(0, nth + 1).join('')),
      get: (response) => answer(response, runAs('failed')),
    })

    expect(brief(await all(client.tasks.events('r')))).toEqual(['a', 'b', 'c', 'failed'])
  })

  it('complete with the state of a run that has failed, if the service sends it only first', async () => {
    const { client, lines } = await runService({
      events: (response) => response.end([state('failed'), message('a')].join('')),
    })

    expect(brief(await all(client.tasks.events('r')))).toEqual(['a', 'failed'])
    expect(lines()).toHaveLength(2)
  })

  it('are no fewer after a reconnection, with more progress than is remembered', async () => {
    const progress = Array.from({ length: MAX_CONTENTS + 100 }, (_, n) => stats(n)).join('')
    const messages = [message('a'), message('b')].join('')
    const { client } = await runService({
      events: (response, nth) =>
        response.end(
          state('running') + (nth === 1 ? progress + messages : `${messages}${message('c')}${done}`),
        ),
      get: (response) => answer(response, runAs('running')),
    })

    const events = await all(client.tasks.events('r'))

    expect(brief(events).slice(-4)).toEqual(['a', 'b', 'c', 'completed'])
    expect(events).toHaveLength(MAX_CONTENTS + 105)
    // Another subscription, without the earlier progress, gives the same ids.
    expect(events.filter(({ id }) => /:\d+$/.test(id))).toEqual([])
  })

  it('complete after the last state, if the service does not close the stream', async () => {
    const { client } = await runService({ events: (response) => void response.write(trace.join('')) })

    expect(brief(await all(client.tasks.events('r')))).toHaveLength(6)
  })

  it('complete after a silence, if a run that has ended has no more events and the service does not close', async () => {
    const { client } = await runService(
      { events: (response) => void response.write(done) },
      { timeouts: { silence: 50 } },
    )

    expect(brief(await all(client.tasks.events('r')))).toEqual(['completed'])
  })

  it('go on over any number of clean closes while the run is active', async () => {
    const { client } = await runService(
      {
        events: (response, nth) => response.end(nth < 8 ? state('running') : trace.join('')),
        get: (response) => answer(response, runAs('running')),
      },
      { patience: 0 },
    )

    expect(brief(await all(client.tasks.events('r')))).toEqual([
      'running',
      'queued',
      'plan',
      'search',
      'read',
      'completed',
    ])
  })

  it.each([
    ['before the output came', [state('completed'), message('a')]],
    ['without any state', [message('a')]],
    ['without any event', []],
  ])('error if the run has ended and the service always closes the stream %s', async (_, sent) => {
    const { client, lines } = await runService(
      { events: (response) => response.end(sent.join('')) },
      { patience: 0 },
    )

    const error = await firstValueFrom(client.tasks.events('r').pipe(toArray())).catch((e: unknown) => e)

    expect(error).toBeInstanceOf(IncompleteStreamError)
    expect(error).toMatchObject({ missing: 1, expected: 1, retryable: true })
    expect(String(error)).toContain('tasks.result')
    expect(lines().filter((line) => line.endsWith('/events')).length).toBeGreaterThanOrEqual(4)
  })

  it('wait for the last state as long as the patience', async () => {
    const { client } = await runService({
      events: (response, nth) => response.end(nth < 10 ? state('running') : trace.join('')),
    })

    expect(brief(await all(client.tasks.events('r'))).at(-1)).toBe('completed')
  })

  it('error with a NotFoundError for a run that does not exist', async () => {
    const { client } = await runService({
      stream: (response) => answer(response, { error: { ref_id: 'x', message: 'no run' } }, 404),
    })

    await expect(all(client.tasks.events('r'))).rejects.toThrow(NotFoundError)
  })

  it('error with the fifth answer in a row that is no stream', async () => {
    const { client, lines } = await runService({ stream: (response) => answer(response, {}) })

    await expect(all(client.tasks.events('r'))).rejects.toThrow(ProtocolError)
    expect(lines()).toHaveLength(5)
  })

  it('go on after what is malformed, unknown, of another run or too long', async () => {
    const sent = [
      state('running'),
      'data: {"type": "task_run.progress_msg.plan", \n\n',
      'data: null\n\n',
      'data: [1]\n\n',
      sse({ type: 'task_run.later', x: 1 } as never),
      sse({ type: 'task_run.later', x: 1 } as never),
      sse({ type: 'task_run.state', run: { ...runAs('completed'), run_id: 'other' } } as never),
      sse({ type: 'task_run.state', run: null } as never),
      sse({ type: 'task_run.progress_msg.plan', message: null, timestamp: 7 } as never),
      sse({ type: 'task_run.progress_stats', source_stats: null, progress_meter: null } as never),
      sse({ type: 'error', error: { ref_id: 'e1', message: 'a tool failed' } } as never),
      sse({ type: 'error', error: { ref_id: 'e1', message: 'a tool failed' } } as never),
      message('x'.repeat(5_000)),
      message('y'.repeat(5_000)),
      done,
    ]
    const { client } = await runService(
      {
        events: (response, nth) => response.end(sent.slice(0, nth === 1 ? -1 : undefined).join('')),
        get: (response) => answer(response, runAs('running')),
      },
      { maxEventLength: 1_000 },
    )

    const events = await all(client.tasks.events('r'))

    expect(events.map(({ type }) => type)).toEqual([
      'task_run.state',
      ...Array.from({ length: 7 }, () => 'unknown'),
      'task_run.progress_msg',
      'task_run.progress_stats',
      'error',
      'stream.oversized',
      'stream.oversized',
      'task_run.state',
    ])
    expect(new Set(events.map(({ id }) => id)).size).toBe(events.length)
    expect(new Set(events.map(({ source }) => source))).toEqual(new Set(['/v1/tasks/runs/r']))
  })

  it('are whole if a message is malformed for some connections, and else have it as unknown once', async () => {
    const broken = (name: string) => `data: {"type": "${name}\n\n`
    const { client, lines } = await runService({
      events: (response, nth) =>
        response.end([nth < 3 ? broken('a') : message('a'), broken('b'), message('c'), done].join('')),
    })

    const events = await all(client.tasks.events('r'))

    expect(brief(events.filter(({ type }) => type !== 'unknown'))).toEqual(['a', 'c', 'completed'])
    expect(events.map(({ type }) => type).indexOf('unknown')).toBe(1)
    expect(lines()).toHaveLength(8)
  })

  it('complete if the last message of an ended run is too long to read', async () => {
    const { client } = await runService(
      {
        events: (response) =>
          response.end(state('running') + state('completed', { output: text('x'.repeat(5_000)) })),
      },
      { maxEventLength: 1_000 },
    )

    expect((await all(client.tasks.events('r'))).map(({ type }) => type)).toEqual([
      'task_run.state',
      'stream.oversized',
    ])
  })

  it('end with the status that a service invents, once it is not active', async () => {
    const expired = sse({ type: 'task_run.state', run: { ...runAs('expired'), is_active: false } } as never)
    const { client } = await runService({ events: (response) => response.end(state('running') + expired) })

    expect(brief(await all(client.tasks.events('r')))).toEqual(['running', 'expired'])
  })

  it('back off while a service closes each stream at once without a new event', async () => {
    const scheduler = new VirtualTimeScheduler()
    const { client, diagnostics } = await runService(
      {
        events: (response, nth) => response.end(nth < 5 ? state('running') : trace.join('')),
        get: (response) => answer(response, runAs('running')),
      },
      { initialDelay: 100, random: () => 1, scheduler },
    )
    const events = all(client.tasks.events('r'))
    const timer = setInterval(() => scheduler.flush(), 1)
    await events.finally(() => clearInterval(timer))

    const delays = diagnostics.flatMap((d) => (d.kind === 'reconnect' ? [d.delay] : []))
    expect(delays).toEqual([100, 200, 400, 800])
  })

  it('are not requested before the subscription, and no more after it ends', async () => {
    const closed = Promise.withResolvers<void>()
    const { client, lines } = await runService({
      events: (response) => {
        response.on('close', () => closed.resolve())
        response.write(state('running'))
      },
    })
    const source = client.tasks.events('r')
    expect(lines()).toEqual([])

    await firstValueFrom(source)
    await closed.promise

    expect(lines()).toHaveLength(1)
  })

  it('have an id that is checked at the call', async () => {
    const { client } = await runService()
    expect(() => client.tasks.events('..')).toThrow('runId must be an id')
    expect(() => client.tasks.events('r', { until: 'done' } as never)).toThrow('no option until')
  })
})
