import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { ResearchEvent } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { EventLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { deliver } from 'rivulet/operators'
import { instrument } from 'rivulet/otel'
import { bufferCount, lastValueFrom, of } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { research } from '../e2e/research.ts'
import { until } from '../log/record/recording-log.ts'
import { tickAt } from '../support/ticks.ts'
import { collecting, failing, keepContext, total } from './telemetry.ts'
import { newEntry } from '../../src/log/store/new-entry.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { StoreWrite } from '../../src/log/memory/store.ts'

async function openedLog(store: LogStore = simulatedStore()): Promise<EventLog> {
  const log = await openLog(store)
  onTestFinished(() => log.close())
  return log
}

/** A log with the ends of runs, and what is needed to record more. */
async function recordedRuns(...inputs: string[]) {
  const { client, group } = await research()
  const log = await openedLog()
  const id = await group(...inputs)
  const record = () => log.record({ client, taskGroups: [id] }).done
  return { client, log, record }
}

/** Sets the position of the clock of a log, as its recording does. */
async function moveClock(store: LogStore, tick: unknown, ...events: readonly ResearchEvent[]): Promise<void> {
  const fence = await store.claim('stream:clock')
  const [before = null] = await store.streamPositions([fence.name])
  const entries = events.map((each) => newEntry(each))
  await store.append([{ fence, expect: before, position: JSON.stringify(tick), entries }])
  await store.release(fence)
}

/** Handles the ends of runs until this many calls have ended. */
function consume(log: EventLog, calls: number, handler: (call: number) => void | PromiseLike<unknown>) {
  const { promise, resolve } = Promise.withResolvers<void>()
  let called = 0
  const options = { types: ['task_run.state'], initialDelay: 0, concurrency: 1 } as const
  const job = log.consume('billing', options, (): void | PromiseLike<unknown> => {
    called += 1
    if (called === calls) resolve()
    return handler(called)
  })
  return promise.then(() => job.stop())
}

describe('what is recorded', () => {
  it('is counted, with what was known, and its appends are measured', async () => {
    const { log, record } = await recordedRuns('a', 'b')
    const { meter, tracer, series, spans } = collecting()
    instrument({ log, meter, tracer })
    await record()
    const entries = (await log.read(await log.positionAt('start'))).entries.length

    expect(await series('rivulet.log.recorded')).toEqual([{ attributes: {}, value: entries }])
    const appends = total(await series('rivulet.log.append.duration'))
    expect(appends).toBeGreaterThanOrEqual(1)
    expect(spans()).toHaveLength(appends)
    expect(spans()[0]).toMatchObject({ name: 'rivulet.log append', kind: SpanKind.INTERNAL })
  })

  it('has the error of an append that failed, which still ends the recording', async () => {
    const { client, group } = await research()
    const faults = (write: StoreWrite) => {
      if (write === 'append') throw new RangeError('no space')
    }
    const log = await openedLog(simulatedStore({ faults }))
    const { meter, tracer, series, spans } = collecting()
    instrument({ log, meter, tracer })

    await expect(log.record({ client, taskGroups: [await group('a')] }).done).rejects.toThrow('no space')
    expect(await series('rivulet.log.append.duration')).toEqual([
      { attributes: { 'error.type': 'RangeError' }, value: 1 },
    ])
    expect(spans()).toMatchObject([
      { status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'RangeError' } },
    ])
  })
})

describe('events from the future', () => {
  const event = (id: string, ms: number, time?: string) => ({
    id,
    source: '/orders/1',
    type: 'order.paid',
    data: {},
    time: time ?? new Date(Date.now() + ms).toISOString(),
  })

  it('are counted when they are appended, if they are ahead of the log by more than a second', async () => {
    const log = await openedLog()
    const { meter, tracer, series } = collecting()
    instrument({ log, meter, tracer })
    await log.append([event('1', 0), event('2', -5_000), event('3', 500), event('4', 60_000)])
    await log.append(event('5', 0, '2999-01-01T00:00:00Z'))
    expect(await series('rivulet.log.future_events')).toEqual([{ attributes: {}, value: 2 }])
  })

  it('are not counted if the append failed', async () => {
    const faults = (write: StoreWrite) => {
      if (write === 'append') throw new RangeError('no space')
    }
    const log = await openedLog(simulatedStore({ faults }))
    const { meter, tracer, series } = collecting()
    instrument({ log, meter, tracer })
    await expect(log.append(event('1', 60_000))).rejects.toThrow('no space')
    expect(await series('rivulet.log.future_events')).toEqual([])
  })
})

describe('the handlers of a log', () => {
  it('are measured for each attempt, with their outcome, and retries are counted', async () => {
    const { log, record } = await recordedRuns('a')
    await record()
    const { meter, tracer, series, spans } = collecting()
    instrument({ log, meter, tracer })
    await consume(log, 2, async (call) => {
      if (call === 1) throw new TypeError('at first')
    })

    const attributes = {
      'messaging.system': 'rivulet',
      'messaging.operation.name': 'process',
      'messaging.consumer.group.name': 'billing',
      'rivulet.reader.kind': 'consumer',
      'rivulet.event.type': 'task_run.state',
    }
    expect(await series('messaging.process.duration')).toEqual([
      { attributes: { ...attributes, 'error.type': 'TypeError' }, value: 1 },
      { attributes, value: 1 },
    ])
    expect(await series('rivulet.handler.retries')).toEqual([{ attributes, value: 1 }])
    const { entries } = await log.read(await log.positionAt('start'), { types: ['task_run.state'] })
    const [entry] = entries
    expect(spans()).toMatchObject([
      { name: 'process billing', kind: SpanKind.CONSUMER, status: { code: SpanStatusCode.ERROR } },
      {
        status: { code: SpanStatusCode.UNSET },
        attributes: {
          ...attributes,
          'messaging.message.id': entry?.id,
          'rivulet.event.source': entry?.source,
          'rivulet.log.position': entry?.position,
          'rivulet.log.revision': 1,
        },
      },
    ])
  })

  it('are the functions of processes too, with their outcome', async () => {
    const { log, record } = await recordedRuns('a', 'b')
    await record()
    const { meter, tracer, series, spans } = collecting()
    instrument({ log, meter, tracer })
    let calls = 0
    const { done } = log.process('rules', {
      version: 1,
      types: ['task_run.state'],
      key: ({ id }) => id,
      init: () => 0,
      event: (_state, _entry, context) => {
        calls += 1
        if (calls === 2) throw new TypeError('no such rule')
        context.set(1)
      },
    })
    await expect(done).rejects.toThrow('no such rule')
    const measured = await series('messaging.process.duration')
    expect(measured.map(({ attributes }) => attributes)).toContainEqual({
      'messaging.system': 'rivulet',
      'messaging.operation.name': 'process',
      'messaging.consumer.group.name': 'rules',
      'rivulet.reader.kind': 'process',
      'rivulet.event.type': 'task_run.state',
      'error.type': 'ProcessError',
    })
    expect(spans().at(-1)).toMatchObject({ name: 'process rules', status: { code: SpanStatusCode.ERROR } })
  })

  it('have their span active, so that what they request is a child of it', async () => {
    keepContext()
    const { client, log, record } = await recordedRuns('a')
    await record()
    const { meter, tracer, spans } = collecting()
    instrument({ client, log, meter, tracer })
    await consume(log, 1, async () => {
      expect(trace.getActiveSpan()).toBeDefined()
      await client.taskGroups.create()
    })

    const process = spans().find(({ name }) => name === 'process billing')
    const request = spans().find(({ name }) => name === 'POST /v1/tasks/groups')
    expect(request?.parentSpanContext?.spanId).toBe(process?.spanContext().spanId)
  })

  it('of `deliver` are wrapped by hand, also those that take batches or return nothing', async () => {
    const { meter, tracer, series, spans } = collecting()
    const telemetry = instrument({ log: await openedLog(), meter, tracer })
    const handled: number[][] = []
    const handler = telemetry.handler<number[]>('batches', (batch) => void handled.push(batch))
    await lastValueFrom(of(1, 2, 3).pipe(bufferCount(2), deliver(handler)))

    expect(handled).toEqual([[1, 2], [3]])
    expect(await series('messaging.process.duration')).toMatchObject([{ value: 2 }])
    expect(spans().map(({ attributes }) => attributes['messaging.batch.message_count'])).toEqual([2, 1])
  })

  it('return a thenable that runs once, as a query of some libraries does at each `then`', async () => {
    const { meter, tracer } = collecting()
    const telemetry = instrument({ log: await openedLog(), meter, tracer })
    let runs = 0
    const query: PromiseLike<string> = {
      // oxlint-disable-next-line unicorn/no-thenable -- It is what is tested.
      then(onFulfilled, onRejected) {
        runs += 1
        return Promise.resolve('row').then(onFulfilled, onRejected)
      },
    }
    await lastValueFrom(of(1).pipe(deliver(telemetry.handler('queries', () => query))))

    expect(runs).toBe(1)
  })

  it('are not affected by a meter and a tracer that fail', async () => {
    const { log, record } = await recordedRuns('a', 'b')
    instrument({ log, ...failing() })
    await record()
    const calls: number[] = []
    await consume(log, 3, (call) => {
      calls.push(call)
      if (call === 1) throw new Error('at first')
    })

    expect(calls).toEqual([1, 2, 3])
  })
})

describe('the numbers of a log', () => {
  it('are how far each reader is behind, whenever metrics are collected', async () => {
    const { client, group } = await research()
    const log = await openedLog()
    await log.record({ client, taskGroups: [await group('a')] }).done
    await consume(log, 1, () => {})
    await log.record({ client, taskGroups: [await group('b')] }).done
    const { meter, tracer, series } = collecting()
    instrument({ log, meter, tracer })
    const stats = await log.stats()
    const [reader] = stats.readers
    const attributes = { 'messaging.consumer.group.name': 'billing', 'rivulet.reader.kind': 'consumer' }

    expect(reader?.lag.entries).toBeGreaterThan(0)
    expect(await series('rivulet.log.reader.lag')).toEqual([{ attributes, value: reader?.lag.entries }])
    const [time] = await series('rivulet.log.reader.lag.time')
    expect(time?.value).toBeGreaterThanOrEqual(reader?.lag.seconds ?? Infinity)
    expect(await series('rivulet.log.reader.dead_letters')).toEqual([{ attributes, value: 0 }])
    expect(await series('rivulet.log.entries')).toEqual([{ attributes: {}, value: stats.entries }])
    expect(await series('rivulet.log.paused')).toEqual([{ attributes: {}, value: 0 }])
    expect(total(await series('rivulet.log.size'))).toBeGreaterThan(0)
  })

  it('are how far event time and the watermarks of processes are behind, once there is a tick', async () => {
    let now = Date.UTC(2026, 0, 1)
    const store = simulatedStore({ clock: () => now })
    const log = await openedLog(store.connect())
    const { meter, tracer, series } = collecting()
    instrument({ log, meter, tracer })
    log.process('rules', { version: 1, lateness: 500, key: ({ id }) => id, init: () => 0, event: () => {} })
    log.consume('prints', () => {})
    await moveClock(store, { number: 0, through: null, complete: true })
    expect(await series('rivulet.log.event_time.lag')).toEqual([])
    expect(await series('rivulet.log.event_time.complete')).toEqual([{ attributes: {}, value: 1 }])

    await moveClock(store, { number: 1, through: now, complete: false }, tickAt(now, now, false))
    now += 2_000
    await until(async () => (await log.stats()).readers.every(({ lag }) => lag.entries === 0))
    expect(await series('rivulet.log.event_time.lag')).toEqual([{ attributes: {}, value: 2 }])
    expect(await series('rivulet.log.event_time.complete')).toEqual([{ attributes: {}, value: 0 }])
    const attributes = { 'messaging.consumer.group.name': 'rules', 'rivulet.reader.kind': 'process' }
    expect(await series('rivulet.log.reader.watermark.lag')).toEqual([{ attributes, value: 2.5 }])
  })

  it('are not there once the log is closed, or the instrumentation is disposed of', async () => {
    const [closed, left] = [await openedLog(), await openedLog()]
    const { meter, tracer, series, metrics } = collecting()
    instrument({ log: closed, meter, tracer })
    await closed.close()
    expect(await series('rivulet.log.entries')).toEqual([])
    instrument({ log: left, meter, tracer }).dispose()
    expect(await series('rivulet.log.entries')).toEqual([])
    expect(await metrics()).toEqual(expect.any(Array))
  })
})
