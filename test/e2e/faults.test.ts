import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ResearchEvent } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { createResearchService } from 'rivulet/service'
import type { Fault, Processor, ProcessorResult } from 'rivulet/service'
import { firstValueFrom, lastValueFrom, take, tap, toArray, VirtualTimeScheduler } from 'rxjs'
import type { Observable } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { withoutReceived } from '../operators/events.ts'
import { write } from '../service/corpus/folder.ts'
import { all, HeldRuns, receiving, research } from './research.ts'
import type { Research } from './research.ts'

const QUESTIONS = ['one', 'zwei Möwen', 'three', '四', 'five']
const STREAMS = ['events', 'runs'] as const

/** The client's idle timeout in ms. A spurious timeout costs only a connection. */
const SILENCE = 50

const STREAM_FAULTS: readonly (readonly Fault[])[] = [
  [{ kind: 'cut', at: 'line', after: 1, times: 3 }],
  [{ kind: 'cut', at: 'character', after: 1, times: 3 }],
  [{ kind: 'cut', at: 'character', times: 2 }],
  [{ kind: 'cut', at: 'chunk', after: 2, times: 3 }],
  [{ kind: 'cut', after: 1 }],
  [{ kind: 'stall', times: 2 }],
  [{ kind: 'stall', after: 2, times: 2 }],
  [{ kind: 'close', times: 1 }],
  [{ kind: 'close', after: 1 }],
  [{ kind: 'slow', bytes: 7, interval: 0, times: 3 }],
  [{ kind: 'slow', bytes: 100, interval: 1 }],
  [{ kind: 'malformed', after: 1, times: 2 }],
  [{ kind: 'malformed', times: 2 }],
  [{ kind: 'wrong-type', times: 2 }],
  [{ kind: 'truncated', times: 2 }],
  [{ kind: 'gzip' }],
  [{ kind: 'gzip' }, { kind: 'cut', after: 1 }],
  [{ kind: 'gzip' }, { kind: 'slow', bytes: 40, interval: 0 }],
  [{ kind: 'gzip' }, { kind: 'close', after: 2 }],
  [{ kind: 'status', status: 503, retryAfter: 0, times: 2 }],
  [{ kind: 'status', status: 429, retryAfter: 0, retryAfterForm: 'date', times: 2 }],
  [{ kind: 'status', status: 408, times: 1 }],
  [
    { kind: 'cut', at: 'chunk', after: 1, times: 1 },
    { kind: 'slow', bytes: 16, interval: 0, times: 2 },
    { kind: 'close', after: 2, times: 1 },
    { kind: 'stall', after: 1, times: 1 },
    { kind: 'malformed', after: 1, times: 1 },
    { kind: 'wrong-type', times: 1 },
  ],
]

describe.each(STREAMS)('the stream of %s', (stream) => {
  it.each(STREAM_FAULTS.map((faults) => [faults]))('emits the same events under %j', async (faults) => {
    const { client, service, group } = await research({ client: { timeouts: { silence: SILENCE } } })
    const id = await group(...QUESTIONS)
    const whole = await all(client.taskGroups[stream](id))
    for (const fault of faults) service.faults.add(fault)

    const emitted = await all(client.taskGroups[stream](id))

    expect(withoutReceived(emitted)).toEqual(withoutReceived(whole))
    expect(Object.keys(service.faults.struck).toSorted()).toEqual(
      [...new Set(faults.map(({ kind }) => kind))].toSorted(),
    )
  })

  it('loses nothing of a done group when the service repeatedly accepts and closes', async () => {
    const { client, service, group } = await research()
    const id = await group(...QUESTIONS)
    const whole = await all(client.taskGroups[stream](id))
    service.faults.add({ kind: 'close', times: 4 })

    const emitted = await all(client.taskGroups[stream](id))

    expect(withoutReceived(emitted)).toEqual(withoutReceived(whole))
  })

  it('backs off while the service accepts and closes, even if runs are active', async () => {
    const processor = new HeldRuns()
    const scheduler = new VirtualTimeScheduler()
    const { client, service, group, diagnostics } = await research({
      processor,
      client: { maxDelay: 500, random: () => 1, scheduler },
    })
    const id = await group(...QUESTIONS)
    service.faults.add({ kind: 'close' })
    const emitted = all(client.taskGroups[stream](id).pipe(ofType('task_run.state')))

    const connectedAt: number[] = []
    while (connectedAt.length < 8) {
      await until(() => diagnostics.length > connectedAt.length)
      // The clock advances only during a wait, so this is the time of the connection at the service.
      expect(service.faults.struck.close).toBe(diagnostics.length)
      connectedAt.push(scheduler.now())
      if (connectedAt.length === 8) service.faults.clear()
      scheduler.flush()
    }
    processor.release()

    // The service sends a `retry:` of 20 ms, from which the backoff grows.
    const gaps = connectedAt.slice(1).map((time, n) => time - (connectedAt[n] ?? 0))
    expect(gaps).toEqual([20, 40, 80, 160, 320, 500, 500])
    expect(await emitted).toHaveLength(QUESTIONS.length)
  })

  it('emits all active runs while it breaks, stalls and closes', async () => {
    const processor = new HeldRuns()
    const { client, service, group } = await research({
      processor,
      client: { timeouts: { silence: SILENCE } },
    })
    const id = await group(...QUESTIONS)
    service.faults.add({ kind: 'close', times: 1 })
    service.faults.add({ kind: 'stall', times: 1 })
    service.faults.add({ kind: 'cut', at: 'line', after: 1, times: 2 })
    const emitted = all(client.taskGroups[stream](id).pipe(ofType('task_run.state')))
    await until(() => service.faults.struck.stall === 1)

    processor.release()
    const runs = (await emitted).map(({ data }) => data.run.run_id)

    expect(runs.toSorted()).toEqual(
      service
        .records()
        .runs.map(({ run_id }) => run_id)
        .toSorted(),
    )
  })

  it('errors with a NotFoundError when its group is deleted, after the events before', async () => {
    const processor = new HeldRuns()
    const { client, service, group } = await research({ processor })
    const id = await group(...QUESTIONS)
    service.faults.add({ kind: 'deleted-group', after: 2 })
    processor.release()
    const emitted: ResearchEvent[] = []

    const error = await failure(client.taskGroups[stream](id).pipe(tap((event) => emitted.push(event))))

    expect(error).toMatchObject({ name: 'NotFoundError', status: 404 })
    expect(emitted).toHaveLength(2)
  })

  it('restarts with a gap when the service does not know its position any more', async () => {
    const { client, service, group } = await research()
    const id = await group(...QUESTIONS)
    const whole = await all(client.taskGroups[stream](id))
    service.faults.add({ kind: 'cut', after: 2, times: 1 })
    service.faults.add({ kind: 'invalid-cursor' })

    const emitted = await all(client.taskGroups[stream](id))

    expect(emitted.map(({ type }) => type).indexOf('stream.gap')).toBe(2)
    expect(withoutReceived(emitted.slice(0, 2))).toEqual(withoutReceived(whole.slice(0, 2)))
    expect(withoutReceived(emitted.slice(3))).toEqual(withoutReceived(whole))
  })

  it('errors with a ValidationError when the service does not know the initial position', async () => {
    const { client, service, group } = await research()
    const id = await group(...QUESTIONS)
    const [first] = await all(client.taskGroups[stream](id))
    service.faults.add({ kind: 'invalid-cursor' })

    const error = await failure(client.taskGroups[stream](id, { last_event_id: first?.cursor ?? 'none' }))

    expect(error).toMatchObject({ name: 'ValidationError', status: 422 })
    expect(error).toHaveProperty('issues.0.loc', ['query', 'last_event_id'])
  })
})

const REQUEST_FAULTS: readonly Fault[] = [
  { kind: 'status', status: 408, times: 1 },
  { kind: 'status', status: 429, retryAfter: 0, times: 3 },
  { kind: 'status', status: 429, retryAfter: 0, retryAfterForm: 'date', times: 3 },
  { kind: 'status', status: 500, retryAfter: 0, times: 3 },
  { kind: 'status', status: 502, retryAfter: 0, times: 3 },
  { kind: 'status', status: 503, retryAfter: 0, times: 3 },
  { kind: 'wrong-type', times: 3 },
  { kind: 'malformed', times: 3 },
  { kind: 'truncated', times: 3 },
  { kind: 'gzip' },
]

describe.each(REQUEST_FAULTS.map((fault) => [fault]))('under %j', (fault) => {
  it('a search succeeds', async () => {
    const { client, service } = await research({ files: note(1) })
    service.faults.add(fault)

    const [answer] = await all(client.search({ search_queries: ['spring tide'] }))

    expect(answer?.results).toHaveLength(1)
    expect(service.faults.struck[fault.kind]).toBeGreaterThan(0)
  })

  it('the events of a monitor are listed, page by page', async () => {
    const both = await research()
    const monitor = await reporting(both, 3)
    both.service.faults.add(fault)

    const listed = await all(both.client.monitors.events(monitor, { limit: 1 }))

    expect(listed.map(({ id }) => id)).toEqual(reported(both).toReversed())
    expect(both.service.faults.struck[fault.kind]).toBeGreaterThan(0)
  })

  it('a monitor is followed, each event once', async () => {
    const both = await research()
    const monitor = await reporting(both, 3)
    both.service.faults.add(fault)

    const followed = await lastValueFrom(
      both.client.monitors.follow(monitor, { limit: 2 }).pipe(take(3), toArray()),
    )

    expect(followed.map(({ id }) => id)).toEqual(reported(both))
    expect(both.service.faults.struck[fault.kind]).toBeGreaterThan(0)
  })
})

describe('adding runs', () => {
  it.each<Fault>([
    { kind: 'truncated', times: 1 },
    { kind: 'malformed', times: 1 },
  ])('does not happen twice when the response is lost: %j', async (fault) => {
    const { client, service, group } = await research()
    const id = await group()
    service.faults.add(fault)

    const error = await failure(
      client.taskGroups.addRuns(id, { inputs: [{ input: 'x', processor: 'base' }] }),
    )

    expect(error).toMatchObject({ name: 'UncertainWriteError', inDoubt: [0] })
    expect(service.records().runs).toHaveLength(1)
  })

  it('accepts a gzip response', async () => {
    const { client, service, group } = await research()
    const id = await group()
    service.faults.add({ kind: 'gzip' })

    const [answer] = await all(client.taskGroups.addRuns(id, { inputs: [{ input: 'x', processor: 'base' }] }))

    expect(answer?.run_ids).toEqual(service.records().runs.map(({ run_id }) => run_id))
  })
})

describe('a cursor that is no longer valid', () => {
  it('ends a list of events with a ValidationError, after the previous pages', async () => {
    const both = await research()
    const monitor = await reporting(both, 3)
    both.service.faults.add({ kind: 'invalid-cursor' })
    const emitted: ResearchEvent[] = []

    const error = await failure(
      both.client.monitors.events(monitor, { limit: 1 }).pipe(tap((event) => emitted.push(event))),
    )

    expect(error).toMatchObject({ name: 'ValidationError', status: 422, ref_id: expect.any(String) })
    expect(emitted).toHaveLength(1)
  })
})

describe('a cursor that is invalid once', () => {
  it('loses no event of a followed monitor', async () => {
    const both = await research()
    const monitor = await reporting(both, 3)
    both.service.faults.add({ kind: 'invalid-cursor', times: 1 })

    const followed = await lastValueFrom(
      both.client.monitors.follow(monitor, { limit: 1 }).pipe(take(3), toArray()),
    )

    expect(followed.map(({ id }) => id)).toEqual(reported(both))
    expect(both.service.faults.struck).toEqual({ 'invalid-cursor': 1 })
  })
})

describe('webhooks', () => {
  it.each<Fault>([
    { kind: 'repeat' },
    { kind: 'reorder' },
    { kind: 'delay', by: 1_000, times: 3 },
    { kind: 'lose', times: 3 },
    { kind: 'lose-answer', times: 3 },
  ])('deliver each run once under %j', async (fault) => {
    const both = await research({ faults: [fault] })
    const { receiver, url } = await receiving(both)
    const emitted: string[] = []
    const watching = both.client
      .watch({ webhooks: receiver, hold: 0 })
      .pipe(ofType('task_run.state'))
      .subscribe(({ data }) => emitted.push(data.run.run_id))
    onTestFinished(() => watching.unsubscribe())
    const id = await both.group()
    const webhook = { url, event_types: ['task_run.status'] }
    const inputs = ['a', 'b', 'c', 'd'].map((input) => ({ input, processor: 'base', webhook }))
    await all(both.client.taskGroups.addRuns(id, { inputs }))
    const runs = both.service.records().runs.map(({ run_id }) => run_id)

    // Late webhooks arrive within seconds of the clock. The receiver would refuse one that is minutes old.
    await until(() => {
      both.clock.advance(5)
      return emitted.length >= runs.length
    })
    for (let n = 0; n < 12; n++) {
      both.clock.advance(1_000)
      await all(both.client.monitors.list())
    }

    expect(emitted.toSorted()).toEqual(runs.toSorted())
    expect(both.service.faults.struck[fault.kind]).toBeGreaterThan(0)
  })
})

describe('a restart of the service within a stream', () => {
  it.each(STREAMS)('is survived by the stream of %s, with the same port and file', async (stream) => {
    const later = new HeldRuns()
    const processor: Processor = {
      run: (task, signal) => (task.input.input === 'one' ? answered : later.run(task, signal)),
    }
    const data = join(await temporaryFolder(), 'service.db')
    const settings = { data, apiKey: 'key_of_the_test', processor }
    const { service, client, docs, clock, group, diagnostics } = await research(settings)
    const id = await group(...QUESTIONS)
    const emitted: string[] = []
    const watching = all(
      client.taskGroups[stream](id).pipe(
        ofType('task_run.state'),
        tap(({ data: { run } }) => emitted.push(run.run_id)),
      ),
    )
    await until(() => emitted.length === 1)

    await service.close()
    later.release()
    const again = await createResearchService({ ...settings, docs, clock })
    onTestFinished(() => again.close())
    const url = await again.listen({ port: Number(new URL(service.url ?? '').port) })
    await watching

    expect(url).toBe(service.url)
    expect(emitted.toSorted()).toEqual(
      again
        .records()
        .runs.map(({ run_id }) => run_id)
        .toSorted(),
    )
    expect(diagnostics).toContainEqual(expect.objectContaining({ kind: 'reconnect' }))
  })
})

const answered = Promise.resolve<ProcessorResult>({ output: { type: 'text', content: 'found', basis: [] } })

function note(n: number) {
  return { [`note-${n}.md`]: `# Note ${n}\n\nThe tide gauge number ${n} measured a spring tide today.\n` }
}

/** A monitor with this many events, each from a separate execution. */
async function reporting(both: Research, count: number): Promise<string> {
  const { client, docs } = both
  const { monitor_id } = await firstValueFrom(
    client.monitors.create({ type: 'event_stream', frequency: '1h', settings: { query: 'spring tide' } }),
  )
  for (let n = 1; n <= count; n++) {
    await write(docs, note(n))
    await firstValueFrom(client.monitors.trigger(monitor_id))
    await until(() => reported(both).length === n)
  }
  return monitor_id
}

/** Ids of the monitors' events, oldest first. */
function reported({ service }: Research): string[] {
  return service
    .records()
    .monitor_events.filter(({ event }) => event.event_type === 'event_stream')
    .map(({ id }) => id)
}

function failure(stream: Observable<unknown>): Promise<unknown> {
  return all(stream).then(
    () => undefined,
    (error: unknown) => error,
  )
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-faults-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}
