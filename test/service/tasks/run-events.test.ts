import { join } from 'node:path'
import type { TaskRun } from 'rivulet'
import { ManualClock } from 'rivulet/service'
import type { Processor, ProcessorProgress } from 'rivulet/service'
import { describe, expect, it } from 'vitest'
import { answerTo, documentFolder, HeldProcessor, running, temporaryFolder } from '../running.ts'
import type { Caller, ServerEvent } from '../running.ts'

async function create({ post }: Caller, more: object = { enable_events: true }): Promise<string> {
  const { body } = await post<TaskRun>('/v1/tasks/runs', { input: 'x', processor: 'base', ...more })
  return body.run_id
}

/** The kind of each event, and the status or message that it has. */
function brief(events: readonly ServerEvent[]): string[] {
  return events.map(({ event, data }) => {
    const { message } = data as { message?: string }
    return [event.replace('task_run.', '').replace('progress_msg.', ''), data.run?.status ?? message]
      .filter((part) => part !== undefined)
      .join(' ')
  })
}

/** A processor that reports this and answers. */
const reporting = (...progress: readonly ProcessorProgress[]): Processor => ({
  async run({ input, report }) {
    progress.forEach(report)
    return answerTo(input.input)
  },
})

const message = (text: string): ProcessorProgress => ({ message: { kind: 'search', text } })

describe('the events of a run', () => {
  it.each(['/v1', '/v1beta'])(
    'begin and end with its state, with the output at the end, under %s',
    async (prefix) => {
      const processor = new HeldProcessor()
      const caller = await running({ processor })
      const id = await create(caller)
      const held = await processor.next()
      const stream = await caller.stream(`${prefix}/tasks/runs/${id}/events`)
      const first = [await stream.next(), await stream.next(), await stream.next()].filter(
        (e) => e !== undefined,
      )
      held.task.report({
        ...message('Looking'),
        meter: 40,
        sourcesConsidered: 7,
        sourcesRead: 2,
        sourcesSample: ['u'],
      })
      held.complete()
      const rest = await stream.rest()

      expect(stream.headers.get('content-type')).toBe('text/event-stream')
      expect(brief(first)).toEqual(['state running', 'progress_stats', 'exec_status The run has started'])
      expect(brief(rest).at(0)).toBe('progress_stats')
      expect(rest.map(({ data }) => data)).toContainEqual({
        type: 'task_run.progress_msg.search',
        message: 'Looking',
        timestamp: '2026-01-01T00:00:00.000Z',
      })
      expect(rest.at(-1)?.data).toEqual({
        type: 'task_run.state',
        event_id: null,
        run: expect.objectContaining({ run_id: id, status: 'completed', is_active: false }),
        output: answerTo('x').output,
      })
      expect([...first, ...rest].every((event) => event.id === '')).toBe(true)
    },
  )

  it('say when a queued run is started', async () => {
    const processor = new HeldProcessor()
    const caller = await running({ processor, concurrency: 1 })
    await create(caller)
    const other = await processor.next()
    const stream = await caller.stream(`/v1/tasks/runs/${await create(caller, {})}/events`)
    const queued = await stream.next()
    other.complete()
    const held = await processor.next()
    const started = await stream.next()
    held.complete()
    const statuses = [queued, started, ...(await stream.rest())].map((event) => event?.data.run?.status)

    expect(statuses).toEqual(['queued', 'running', 'completed'])
  })

  it('repeat the whole trace, in order, on each connection, with the latest statistics only', async () => {
    const caller = await running({
      processor: reporting(
        { ...message('one'), meter: 10 },
        { ...message('two'), sourcesRead: 3, meter: 60 },
      ),
    })
    const path = `/v1/tasks/runs/${await create(caller)}/events`
    await caller.events(path)
    const [again, andAgain] = [await caller.events(path), await caller.events(path)]

    expect(brief(again)).toEqual([
      'state completed',
      'progress_stats',
      'exec_status The run has started',
      'search one',
      'search two',
      'exec_status The run has completed',
      'state completed',
    ])
    expect(again[1]?.data).toEqual({
      type: 'task_run.progress_stats',
      source_stats: { num_sources_considered: null, num_sources_read: 3, sources_read_sample: null },
      progress_meter: 100,
    })
    expect(andAgain).toEqual(again)
  })

  it('of a failed run end with its error', async () => {
    const caller = await running()
    const path = `/v1/tasks/runs/${await create(caller, { input: 'fail', enable_events: true })}/events`
    const events = await caller.events(path)

    expect(brief(events).at(-2)).toBe('exec_status The run has failed')
    expect(events.at(-1)?.data).toMatchObject({
      run: { status: 'failed', error: { message: 'It was asked to fail' } },
    })
    expect(events.at(-1)?.data).not.toHaveProperty('output')
  })

  it.each([{}, { enable_events: false }])('are states only with %j', async (more) => {
    const processor = new HeldProcessor()
    const caller = await running({ processor })
    const path = `/v1/tasks/runs/${await create(caller, more)}/events`
    const held = await processor.next()
    const stream = await caller.stream(path)
    const first = await stream.next()
    held.task.report(message('ignored'))
    held.complete()

    expect(brief([...(first === undefined ? [] : [first]), ...(await stream.rest())])).toEqual([
      'state running',
      'state completed',
    ])
    expect(brief(await caller.events(path))).toEqual(['state completed'])
  })

  it('are bounded, whatever the processor reports', async () => {
    const junk: ProcessorProgress[] = [
      { meter: Number.NaN, sourcesRead: -1, sourcesConsidered: 1.5 },
      { meter: 1_000 },
      { meter: -5, sourcesSample: Array.from({ length: 1_000 }, () => 'u'.repeat(9_000)) },
      JSON.parse('{"message":{"kind":"plan"}}'),
      JSON.parse('null'),
    ]
    const many = Array.from({ length: 5_000 }, (_, index) => message(`${index} ${'x'.repeat(5_000)}`))
    const errors: unknown[] = []
    const caller = await running({
      processor: reporting(...junk, ...many),
      onError: (error) => errors.push(error),
    })
    const events = await caller.events(`/v1/tasks/runs/${await create(caller)}/events`)

    expect(events.length).toBeLessThan(520)
    expect(brief(events).at(-1)).toBe('state completed')
    expect(brief(events)).toContain('exec_status Further messages are omitted')
    expect(JSON.stringify(events).length).toBeLessThan(1_200_000)
    expect(events.find(({ event }) => event === 'task_run.progress_stats')?.data).toMatchObject({
      progress_meter: 100,
      source_stats: { num_sources_considered: null, num_sources_read: null },
    })
    // The two reports that are no progress at all.
    expect(errors).toHaveLength(2)
  })

  it('close after 570 s of real time, and a new connection gets the rest', async () => {
    const clock = new ManualClock()
    const processor = new HeldProcessor()
    const caller = await running({ processor, clock })
    const path = `/v1/tasks/runs/${await create(caller)}/events`
    const held = await processor.next()
    const stream = await caller.stream(path)
    await stream.next()
    clock.advance(569_999)
    held.task.report(message('late'))
    const before = [await stream.next(), await stream.next(), await stream.next()]
    clock.advance(1)
    const after = await stream.rest()
    held.complete()

    expect(before.every((event) => event !== undefined)).toBe(true)
    expect(after).toEqual([])
    expect(brief(await caller.events(path))).toContain('search late')
  })

  it('of an unknown run are a 404', async () => {
    const { get } = await running()
    expect((await get('/v1/tasks/runs/trun_unknown/events')).status).toBe(404)
  })

  it('are kept over a restart, and begin again for a run that is executed again', async () => {
    const [docs, data] = [await documentFolder(), join(await temporaryFolder(), 'service.db')]
    const processor = new HeldProcessor()
    const before = await running({ docs, data, processor, concurrency: 1 })
    const [done, interrupted] = [await create(before), await create(before)]
    const path = `/v1/tasks/runs/${done}/events`
    const first = await processor.next()
    first.task.report(message('kept'))
    first.complete()
    const second = await processor.next()
    second.task.report(message('of the first execution'))
    const events = await before.events(path)
    await before.service.close()

    const after = await running({ docs, data, processor: reporting(message('of the second')) })

    expect(brief(events)).toContain('search kept')
    expect(await after.events(path)).toEqual(events)
    const messages = brief(await after.events(`/v1/tasks/runs/${interrupted}/events`))
    expect(messages).toContain('search of the second')
    expect(messages).not.toContain('search of the first execution')
  })

  it('are cut, closed and malformed by faults, and complete on the next connection', async () => {
    const caller = await running({ processor: reporting(message('one'), message('two')) })
    const path = `/v1/tasks/runs/${await create(caller)}/events`
    await caller.events(path)
    const whole = await caller.events(path)
    caller.service.faults.add({ kind: 'cut', after: 2, times: 1, path: '/v1/tasks/runs/' })
    const cut = await (await caller.stream(path)).untilBroken()
    caller.service.faults.add({ kind: 'close', after: 1, times: 1, path: '/v1/tasks/runs/' })
    const closed = await caller.events(path)
    caller.service.faults.add({ kind: 'malformed', after: 1, times: 1, path: '/v1/tasks/runs/' })
    const malformed = caller.events(path)

    await expect(malformed).rejects.toThrow(SyntaxError)
    expect([cut.length, closed.length]).toEqual([2, 1])
    expect(await caller.events(path)).toEqual(whole)
  })
})
