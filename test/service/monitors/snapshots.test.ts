import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Monitor, MonitorEvent, EventOf } from 'rivulet'
import { ManualClock } from 'rivulet/service'
import { describe, expect, it, onTestFinished } from 'vitest'
import { BATTERY, startMonitors, summaries } from './service.ts'
import { json, text, TrackedRuns } from './tracked-runs.ts'

const HOUR = 3_600_000
const RUN = 'trun_1'
const SNAPSHOT = { type: 'snapshot', frequency: '1h', settings: { task_run_id: RUN } }
const HOOK = {
  url: 'http://127.0.0.1:9/hook',
  event_types: ['monitor.event.detected', 'monitor.execution.completed', 'monitor.execution.failed'],
}

const FIRST = json({ name: 'Solid Cells AG', ceo: 'Anna Keller' })
const SECOND = json({ name: 'Solid Cells AG', ceo: 'Max Meier' }, 'https://new.example.org/')

/** Monitors with one completed run. */
async function startWithRun(output = FIRST, parts: Parameters<typeof startMonitors>[0] = {}) {
  const service = await startMonitors(parts)
  service.runs.add(RUN, output)
  return service
}

function snapshotIn(events: readonly MonitorEvent[]): EventOf<'monitor.snapshot'>['data'] {
  const [event] = events
  if (event?.event_type !== 'snapshot') throw new Error(`no snapshot: ${JSON.stringify(event)}`)
  return event
}

describe('the creation of a snapshot monitor', () => {
  it('answers 201 with the input and the schema of the run', async () => {
    const service = await startMonitors()
    const output_schema = { type: 'json' as const, json_schema: { properties: { ceo: { type: 'string' } } } }
    service.runs.add(RUN, FIRST, { input: { company: 'Solid Cells AG' }, task_spec: { output_schema } })

    const { status, body } = await service.post<Monitor>('', {
      ...SNAPSHOT,
      settings: { task_run_id: RUN, query: 'not the input' },
    })

    expect(status).toBe(201)
    expect(body).toMatchObject({
      type: 'snapshot',
      status: 'active',
      processor: 'lite',
      settings: { task_run_id: RUN, query: { company: 'Solid Cells AG' }, output_schema },
      output: { latest_snapshot: FIRST },
    })
  })

  it('answers 422 for a run that has not completed', async () => {
    const { post, get } = await startMonitors()

    const { status, body } = await post('', SNAPSHOT)

    expect(status).toBe(422)
    expect(body.error.message).toContain('settings.task_run_id: Expected a completed run')
    expect((await get<{ monitors: unknown[] }>('')).body.monitors).toEqual([])
  })

  it('is listed with its type', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    await service.create(BATTERY)

    const { body } = await service.get<{ monitors: Monitor[] }>('?type=snapshot')

    expect(body.monitors.map(({ monitor_id }) => monitor_id)).toEqual([id])
  })
})

describe('an execution of a snapshot monitor', () => {
  it('repeats the task of the run, at once and then at the frequency', async () => {
    const service = await startMonitors()
    const input = { input: 'Solid Cells AG', processor: 'core', source_policy: { include_domains: ['.ch'] } }
    service.runs.add(RUN, FIRST, input)

    await service.create(SNAPSHOT)
    await service.advance(HOUR)
    await service.advance(HOUR - 1)

    expect(service.runs.tasks).toHaveLength(2)
    for (const task of service.runs.tasks) expect(task).toMatchObject({ input, context: [] })
  })

  it('completes when no value changed, even if the citations did', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    const cited = json(FIRST.content as Record<string, unknown>, 'https://new.example.org/')

    service.runs.next = cited
    await service.advance(HOUR)

    expect(summaries(await service.events(id))).toEqual(['completion', 'completion'])
    expect((await service.get<Monitor>(`/${id}`)).body.output).toEqual({ latest_snapshot: cited })
  })

  it('reports one event with the changed fields and the whole previous output', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)

    service.runs.next = SECOND
    await service.advance(HOUR)
    await service.advance(HOUR)

    const events = await service.events(id, '')
    expect(events).toEqual([
      {
        event_type: 'snapshot',
        event_id: expect.stringMatching(/^mevt_/),
        event_group_id: expect.stringMatching(/^mevtgrp_/),
        event_date: new Date(service.clock.now()).toISOString().slice(0, 10),
        changed_output: {
          type: 'json',
          content: { ceo: 'Max Meier' },
          basis: SECOND.basis.filter(({ field }) => field === 'ceo'),
        },
        previous_output: FIRST,
      },
    ])
    expect((await service.get<Monitor>(`/${id}`)).body.output).toEqual({ latest_snapshot: SECOND })
  })

  it('compares with the previous execution, not with the run', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    for (const output of [SECOND, FIRST]) {
      service.runs.next = output
      await service.advance(HOUR)
    }

    const event = snapshotIn(await service.events(id, ''))
    expect(event.changed_output.content).toEqual({ ceo: 'Anna Keller' })
    expect(event.previous_output).toEqual(SECOND)
  })

  it('reports a change since the run in the first execution', async () => {
    const service = await startWithRun(text('one'))
    service.runs.next = text('two')

    const id = await service.create(SNAPSHOT)

    const event = snapshotIn(await service.events(id))
    expect([event.previous_output, event.changed_output]).toEqual([text('one'), text('two')])
  })

  it('reports an error when the run fails, and the change afterwards', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    service.runs.next = new Error('no evidence')
    await service.advance(HOUR)
    service.runs.next = SECOND
    await service.advance(HOUR)

    const [change, error] = await service.events(id)
    expect(error).toMatchObject({ event_type: 'error', error_message: 'no evidence' })
    expect(snapshotIn(change === undefined ? [] : [change]).previous_output).toEqual(FIRST)
  })

  it('reports an error when the documents cannot be read', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    service.corpus.settled = () => Promise.reject(new Error('no such folder'))
    await service.advance(HOUR)

    expect((await service.events(id))[0]).toMatchObject({
      event_type: 'error',
      error_message: 'no such folder',
    })
  })

  it('posts the webhook of its outcome, each with the id of the execution', async () => {
    const service = await startWithRun()
    const id = await service.create({ ...SNAPSHOT, webhook: HOOK })
    service.runs.next = SECOND
    await service.advance(HOUR)
    service.runs.next = new Error('no evidence')
    await service.advance(HOUR)

    const sent = service.posted.map(({ payload }) => payload)
    expect(sent.map(({ type }) => type)).toEqual([
      'monitor.execution.completed',
      'monitor.event.detected',
      'monitor.execution.failed',
    ])
    const listed: unknown[] = []
    for (const { data } of sent) {
      const group = 'event' in data ? data.event?.event_group_id : undefined
      const query = `event_group_id=${group}&include_completions=true`
      listed.push(...summaries(await service.events(id, query)))
    }
    expect(listed).toEqual(['completion', 'snapshot', 'error'])
  })

  it('stores nothing when the monitor is cancelled meanwhile', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    const release = service.runs.hold()
    service.runs.next = SECOND
    service.clock.advance(HOUR)
    await expect.poll(() => service.runs.tasks.length).toBe(2)

    await service.post(`/${id}/cancel`)
    release()
    await service.monitors.settled()

    expect(summaries(await service.events(id))).toEqual(['completion'])
    expect((await service.get<Monitor>(`/${id}`)).body.output).toEqual({ latest_snapshot: FIRST })
  })

  it('aborts its run when the monitor is cancelled, and executes other monitors', async () => {
    const errors: unknown[] = []
    const service = await startWithRun(FIRST, { onError: (error) => errors.push(error) })
    const id = await service.create(SNAPSHOT)
    await service.monitors.settled()
    const release = service.runs.hold()
    onTestFinished(release)
    service.clock.advance(HOUR)
    await expect.poll(() => service.runs.signals.length).toBe(2)

    await service.post(`/${id}/cancel`)
    // The run ignores its signal, and the execution does not wait for it.
    await service.monitors.settled()

    expect(service.runs.signals.map(({ aborted }) => aborted)).toEqual([false, true])
    expect(summaries(await service.events(id))).toEqual(['completion'])
    release()
    const other = await service.create(SNAPSHOT)
    await service.monitors.settled()
    expect(summaries(await service.events(other))).toEqual(['completion'])
    expect(errors).toEqual([])
  })

  it('does not delay the monitors of search queries', async () => {
    const service = await startWithRun()
    const query = await service.create(BATTERY)
    for (let n = 0; n < 8; n++) await service.create(SNAPSHOT)
    const release = service.runs.hold()
    onTestFinished(release)
    service.corpus.put('https://example.org/a', ['solid battery'])

    service.clock.advance(HOUR)

    await expect.poll(async () => summaries(await service.events(query, ''))).toEqual(['solid battery'])
    release()
    await service.monitors.settled()
    expect(service.runs.tasks).toHaveLength(16)
  })
})

describe('a restart', () => {
  it('executes again what was interrupted, with one event', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'snapshots-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, 'service.db')
    const runs = new TrackedRuns()
    const first = await startWithRun(FIRST, { file, runs })
    const id = await first.create(SNAPSHOT)
    // A processor that ignores its signal does not prevent the service from closing.
    onTestFinished(runs.hold())
    first.clock.advance(HOUR)
    await expect.poll(() => runs.tasks.length).toBe(2)
    await first.stop()

    const again = new TrackedRuns()
    again.add(RUN, FIRST)
    again.next = SECOND
    const clock = new ManualClock(first.clock.now())
    const second = await startMonitors({ file, runs: again, clock })
    await second.monitors.settled()
    await second.advance(HOUR)

    expect(summaries(await second.events(id))).toEqual(['completion', 'snapshot', 'completion'])
    expect((await second.get<Monitor>(`/${id}`)).body.output).toEqual({ latest_snapshot: SECOND })
  })

  it('reports an error when the run is no longer stored', async () => {
    const service = await startWithRun()
    const id = await service.create(SNAPSHOT)
    service.runs.completed.clear()
    await service.advance(HOUR)

    expect((await service.events(id))[0]).toMatchObject({ error_message: `The run ${RUN} no longer exists` })
  })
})
