import type { ServerResponse } from 'node:http'
import { asyncScheduler, firstValueFrom, lastValueFrom, tap, toArray, VirtualTimeScheduler } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { createClient, IncompleteStreamError, NotFoundError } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { ClientOptions, Diagnostic, ResearchEvent } from 'rivulet'
import { ofType } from 'rivulet/operators'
import { entriesOf } from '../../log/entries.ts'
import { answer, openStream, queryOf, serve, sse } from '../../support/serve.ts'

const run = (n: number) => ({
  type: 'task_run.state',
  event_id: String(n),
  run: {
    run_id: `run_${n}`,
    status: 'completed',
    is_active: false,
    processor: 'base',
    created_at: 'c',
    modified_at: 'm',
  },
})
const status = (n: number, is_active: boolean) => ({
  type: 'task_group_status',
  event_id: String(n),
  status: {
    num_task_runs: 3,
    task_run_status_counts: {},
    is_active,
    status_message: '',
    modified_at: '2026-01-01T00:00:00Z',
  },
})
const six = [1, 2, 3, 4, 5, 6].map(run)
type Log = readonly { readonly type: string; readonly event_id: string; readonly status?: object }[]

/** The group at the end of a log. */
const group = (log: Log) => {
  const completed = log.filter(({ type }) => type === 'task_run.state').length
  const counted = {
    ...status(0, false).status,
    num_task_runs: completed,
    task_run_status_counts: { completed },
  }
  return {
    taskgroup_id: 'g',
    status: log.findLast((event) => event.status)?.status ?? counted,
    created_at: 'c',
  }
}

/**
 * A client of a service whose stream serves `log`; `script` decides what each connection sends. A resumed stream repeats the
 * last `repeats` events.
 */
async function scripted(
  log: Log,
  script: (response: ServerResponse, rest: string[], connection: number) => void,
  repeats = 0,
  options: ClientOptions = {},
) {
  const requested: (string | null)[] = []
  const baseUrl = await serve((request, response) => {
    if (!/\/(events|runs)$/.test((request.url ?? '').split('?')[0] ?? '')) return answer(response, group(log))
    const after = queryOf(request).get('last_event_id')
    requested.push(after)
    const reached = after === null ? 0 : log.findIndex(({ event_id }) => event_id === after) + 1
    const rest = log.slice(Math.max(0, reached - repeats)).map(sse)
    openStream(response)
    script(response, rest, requested.length)
  })
  const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, ...options })
  const diagnostics: Diagnostic[] = []
  client.diagnostics.subscribe((diagnostic) => diagnostics.push(diagnostic))
  return { client, requested, diagnostics }
}

describe('a group stream', () => {
  it.each([0, 1, 2, 3, 4])(
    'resumes after a connection that broke after event %i, with each event once',
    async (cut) => {
      const log = [status(1, true), run(2), run(3), run(4), status(5, false)]
      const { client, requested } = await scripted(log, (response, rest, connection) => {
        if (connection > 1) return response.end(rest.join(''))
        if (cut === 0) return response.destroy()
        response.write(rest.slice(0, cut).join(''), () => response.destroy())
      })

      const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

      expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3', '4', '5'])
      // Bytes in flight may be lost when the connection breaks.
      expect(Number(requested[1] ?? 0)).toBeLessThanOrEqual(cut)
    },
  )

  it('reconnects from its initial position if the connection breaks before the first event', async () => {
    const log = [status(1, true), run(2), status(3, false)]
    const { client, requested } = await scripted(log, (response, rest, connection) =>
      connection === 1 ? response.destroy() : response.end(rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.events('g', { last_event_id: '1' }).pipe(toArray()))

    expect(requested).toEqual(['1', '1'])
    expect(events.map(({ id }) => id)).toEqual(['run_2:completed', '3'])
  })

  it('reconnects immediately after a clean close while runs are active', async () => {
    const log = [status(1, true), run(2), status(3, false)]
    const { client, requested, diagnostics } = await scripted(log, (response, rest, connection) =>
      response.end(connection === 1 ? rest.slice(0, 2).join('') : rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events).toHaveLength(3)
    expect(requested).toEqual([null, '2'])
    expect(diagnostics).toEqual([expect.objectContaining({ kind: 'reconnect', delay: 0, cause: undefined })])
  })

  it('of runs emits a run that ended between the close and the request for the group', async () => {
    const log = [run(1), run(2)]
    const { client, requested } = await scripted(log, (response, rest, connection) => {
      response.end(connection === 1 ? rest.slice(0, 1).join('') : rest.join(''))
    })

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ id }) => id)).toEqual(['run_1:completed', 'run_2:completed'])
    expect(requested).toEqual([null, '1'])
  })

  it('of runs reconnects after empty connections while runs are missing', async () => {
    const log = [run(1), run(2)]
    const { client, requested } = await scripted(log, (response, rest, connection) => {
      if (connection === 1) response.end(rest[0])
      else response.end(connection < 6 ? '' : rest.join(''))
    })

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ id }) => id)).toEqual(['run_1:completed', 'run_2:completed'])
    expect(requested).toEqual([null, '1', '1', '1', '1', '1'])
  })

  it.each(['close', 'no content'])(
    'of runs errors after its patience without a new event, with the number of missing runs: %s',
    async (end) => {
      const log = [run(1), run(2), run(3)]
      const baseUrl = await serve((request, response) => {
        if (!(request.url ?? '').includes('/runs')) return answer(response, group(log))
        const isResumed = queryOf(request).has('last_event_id')
        if (isResumed && end === 'no content') return response.writeHead(204).end()
        openStream(response)
        response.end(isResumed ? '' : sse(run(1)))
      })
      const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 1, patience: 20 })
      const events: ResearchEvent[] = []

      const last = lastValueFrom(client.taskGroups.runs('g').pipe(tap((event) => events.push(event))))

      await expect(last).rejects.toBeInstanceOf(IncompleteStreamError)
      await expect(last).rejects.toMatchObject({
        missing: 2,
        expected: 3,
        retryable: true,
        path: '/v1beta/tasks/groups/g/runs',
        message: expect.stringContaining('2 of 3 ended runs are missing'),
      })
      expect(events.map(({ id }) => id)).toEqual(['run_1:completed'])
    },
  )

  it('of runs errors in watch too, since a filter would hide source.failed', async () => {
    const log = [run(1), run(2)]
    const baseUrl = await serve((request, response) => {
      const path = (request.url ?? '').split('?')[0] ?? ''
      if (!/\/(events|runs)$/.test(path)) return answer(response, group(log))
      openStream(response)
      const ended = { ...status(1, false), status: group(log).status }
      if (path.endsWith('/events')) return response.end(sse(ended))
      response.end(queryOf(request).has('last_event_id') ? '' : sse(run(1)))
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, patience: 0 })
    const runs = client.watch({ taskGroups: ['g'] }).pipe(ofType('task_run.state'))

    await expect(lastValueFrom(runs)).rejects.toMatchObject({
      name: 'IncompleteStreamError',
      missing: 1,
      expected: 2,
    })
  })

  it('of events errors if the last status of the group never comes', async () => {
    const log = [status(1, true), run(2), status(3, false)]
    const { client } = await scripted(
      log,
      (response, rest, connection) => response.end(connection === 1 ? rest[0] : ''),
      0,
      { patience: 0 },
    )

    const last = lastValueFrom(client.taskGroups.events('g'))

    await expect(last).rejects.toMatchObject({ name: 'IncompleteStreamError', missing: 0 })
  })

  it('backs off from `retry:` if the service repeats an event and closes, and requests the group once', async () => {
    const log = [run(1), run(2)]
    let groups = 0
    const requested: string[] = []
    const baseUrl = await serve((request, response) => {
      const [path = ''] = (request.url ?? '').split('?')
      if (!path.endsWith('/runs')) {
        groups += 1
        return answer(response, group(log))
      }
      requested.push(path)
      openStream(response)
      response.end(`retry: 2000\n\n${sse(run(1))}`)
    })
    const scheduler = new VirtualTimeScheduler()
    const client = createClient({ baseUrl, apiKey: 'key', scheduler, random: () => 1 })
    const delays: number[] = []
    client.diagnostics.subscribe((diagnostic) => {
      if (diagnostic.kind === 'reconnect') delays.push(diagnostic.delay)
    })
    const reading = client.taskGroups.runs('g').subscribe()
    for (let connection = 1; connection <= 6; connection++) {
      await until(() => delays.length === connection)
      scheduler.flush()
    }
    reading.unsubscribe()

    expect(delays).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
    expect(groups).toBe(1)
  })

  it.each([
    [
      'a page of HTML',
      (response: ServerResponse) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    ],
    ['a 202', (response: ServerResponse) => response.writeHead(202).end()],
  ])('errors after five responses in a row that are %s', async (_what, wrong) => {
    const scripts = ['wrong', 'wrong', 'wrong', 'right']
    let requested = 0
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/runs')) return answer(response, group([run(1), run(2)]))
      requested += 1
      if (scripts.shift() !== 'right') return wrong(response)
      openStream(response)
      response.end(sse(run(1)))
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const last = lastValueFrom(client.taskGroups.runs('g'))

    await expect(last).rejects.toMatchObject({ name: 'ProtocolError' })
    expect(requested).toBe(4 + 5)
  })

  it('errors after five responses in a row that are not a group', async () => {
    let requested = 0
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/runs')) {
        requested += 1
        return response.writeHead(200, { 'content-type': 'text/html' }).end('<p>')
      }
      openStream(response)
      response.end(sse(run(1)))
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, retries: 0 })

    await expect(lastValueFrom(client.taskGroups.runs('g'))).rejects.toMatchObject({ name: 'ProtocolError' })
    expect(requested).toBe(5)
  })

  it('is done after a 204 if the group is done, and if it has no counts', async () => {
    for (const counts of [{ completed: 1 }, {}]) {
      const baseUrl = await serve((request, response) => {
        if (!(request.url ?? '').includes('/runs')) {
          const { status: counted, ...rest } = group([run(1)])
          return answer(response, { ...rest, status: { ...counted, task_run_status_counts: counts } })
        }
        if (queryOf(request).has('last_event_id')) return response.writeHead(204).end()
        openStream(response)
        response.write(sse(run(1)), () => response.destroy())
      })
      const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

      const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

      expect(events.map(({ cursor }) => cursor)).toEqual(['1'])
    }
  })

  it('reconnects with backoff after a 204 of an active group', async () => {
    const log = [run(1)]
    let isOver = false
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/runs')) {
        const { status: counted, ...rest } = group(log)
        return answer(response, { ...rest, status: { ...counted, is_active: !isOver } })
      }
      if (!isOver) return response.writeHead(204).end()
      openStream(response)
      response.end(sse(run(1)))
    })
    const scheduler = new VirtualTimeScheduler()
    const client = createClient({ baseUrl, apiKey: 'key', scheduler, random: () => 1 })
    const delays: number[] = []
    client.diagnostics.subscribe((diagnostic) => {
      if (diagnostic.kind === 'reconnect') delays.push(diagnostic.delay)
    })
    const reading = lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))
    for (let connection = 1; connection <= 4; connection++) {
      await until(() => delays.length === connection)
      isOver = connection === 4
      scheduler.flush()
    }
    const events = await reading

    expect(delays).toEqual([500, 1_000, 2_000, 4_000])
    expect(events).toHaveLength(1)
  })

  it('skips an oversized event and reports it in its place', async () => {
    const long = { ...run(2), output: 'x'.repeat(5_000) }
    const longer = { ...run(3), output: 'x'.repeat(5_000) }
    const log = [run(1), long, longer, run(4)]
    const scheduler = new VirtualTimeScheduler()
    const { client, diagnostics } = await scripted(log, (response, rest) => response.end(rest.join('')), 0, {
      maxEventLength: 1_000,
      scheduler,
      initialDelay: 500,
      random: () => 1,
    })
    const reading = lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))
    // The number of its events is unknown, so the stream is done when none is new for 10 s.
    const delays = [500, 1_000, 2_000, 4_000, 8_000]
    for (let close = 1; close <= delays.length; close++) {
      await until(() => diagnostics.length === close)
      scheduler.flush()
    }
    const events = await reading

    expect(events.map(({ type, cursor, data }) => [type, cursor, data])).toMatchObject([
      ['task_run.state', '1', {}],
      ['stream.oversized', '1', { limit: 1_000 }],
      ['stream.oversized', '1', { limit: 1_000 }],
      ['task_run.state', '4', {}],
    ])
    expect(new Set(events.map(({ id }) => id)).size).toBe(4)
    expect(diagnostics).toMatchObject(delays.map((delay) => ({ kind: 'reconnect', delay })))
  })

  it('resumes after an id without data', async () => {
    const log = [run(1), run(2)]
    const requested: (string | null)[] = []
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/runs')) return answer(response, group(log))
      requested.push(queryOf(request).get('last_event_id'))
      openStream(response)
      if (requested.length === 1) response.end(`${sse(run(1))}id: further\n\n`)
      else if (requested.length === 2) response.end('id: further still\ndata:\n\n')
      else response.end(sse(run(2)))
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2'])
    expect(requested).toEqual([null, 'further', 'further still'])
  })

  it('takes up again after a close within an event, as after a drop', async () => {
    const log = [run(1), run(2)]
    const { client, requested, diagnostics } = await scripted(log, (response, rest, connection) =>
      response.end(connection === 1 ? `${rest[0]}${rest[1]?.slice(0, -1)}` : rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2'])
    expect(requested).toEqual([null, '1'])
    expect(diagnostics).toMatchObject([{ kind: 'reconnect', cause: { reason: 'broken' } }])
  })

  it('of runs passes a status on as something unknown', async () => {
    const log = [status(1, true), run(2)]
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/runs')) return answer(response, group([run(2)]))
      openStream(response)
      response.end(log.map(sse).join(''))
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ type, cursor }) => [type, cursor])).toEqual([
      ['unknown', '1'],
      ['task_run.state', '2'],
    ])
  })

  it.each([
    ['until', { until: 'never' }],
    ['untill', { untill: 'closed' }],
  ])('rejects a wrong option %s at the call', (name, options) => {
    const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })
    for (const stream of ['events', 'runs'] as const) {
      expect(() => Reflect.apply(client.taskGroups[stream], undefined, ['g', options])).toThrow(name)
    }
  })

  it('does not error while new events come', async () => {
    const log = Array.from({ length: 8 }, (_, n) => run(n + 1))
    const { client } = await scripted(
      log,
      (response, rest, connection) => response.end(connection % 2 === 0 ? '' : rest[0]),
      0,
      { patience: 0 },
    )

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3', '4', '5', '6', '7', '8'])
  })

  it.each([1, 2, 3])('of runs does not count %i repeated events as new ones', async (repeats) => {
    const log = [run(1), run(2), run(3), run(4), run(5)]
    const { client, requested } = await scripted(
      log,
      (response, rest, connection) => {
        if (connection === 1) response.write(rest.slice(0, 3).join(''), () => response.destroy())
        // By then as many events were sent as the group has, some of them twice.
        else if (connection === 2) response.end(rest.slice(0, 2).join(''))
        else response.end(rest.join(''))
      },
      repeats,
    )

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    const emitted = new Set(events.map(({ type, cursor }) => cursor ?? type))
    expect([...emitted]).toEqual(['1', '2', '3', '4', '5'])
    expect(requested).not.toContain('5')
  })

  it('of runs counts a run once that is repeated within a connection', async () => {
    const log = [run(1), run(2), run(3)]
    const { client } = await scripted(log, (response, rest, connection) =>
      response.end(connection === 1 ? `${rest[0]}${rest[0]}${rest[1]}` : rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '1', '2', '3'])
  })

  it('of runs emits every run of a service without cursors, which restarts each time', async () => {
    const log = [run(1), run(2), run(3)]
    const { client } = await scripted(log, (response, rest, connection) => {
      const unnumbered = rest.map((event) => event.replace(/^id:.*\n/, '').replace(/"event_id":"\d+",?/, ''))
      response.end(unnumbered.slice(0, connection < 3 ? 2 : 3).join(''))
    })

    const events = await lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    const [one, two, three] = log.map(({ run: { run_id } }) => `${run_id}:completed`)
    expect(events.map(({ id }) => id)).toEqual([one, two, one, two, one, two, three])
  })

  it('of runs does not count a run twice after a restart of the process', async () => {
    const all = [run(1), run(2), run(3)]
    let connections = 0
    const baseUrl = await serve((request, response) => {
      const [path = ''] = (request.url ?? '').split('?')
      if (!/\/(events|runs)$/.test(path)) return answer(response, group(all))
      openStream(response)
      if (path.endsWith('/events')) return response.end(sse(status(1, false)))
      connections += 1
      if (connections === 1) response.write(sse(run(1)))
      else if (connections === 2) response.end(sse(run(1)) + sse(run(2)))
      else response.end(queryOf(request).get('last_event_id') === '2' ? sse(run(3)) : '')
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })
    await using log = await openLog(memoryStore())

    const stopped = log.record({ client, taskGroups: ['g'] })
    await firstValueFrom(log.consume('first run', { types: ['task_run.state'] }))
    await stopped.stop()
    await log.record({ client, taskGroups: ['g'] }).done

    const runs = (await entriesOf(log)).filter(({ type }) => type === 'task_run.state')
    expect(runs.map(({ id }) => id)).toEqual(['run_1:completed', 'run_2:completed', 'run_3:completed'])
  })

  it('of events reconnects until a status without active runs', async () => {
    const log = [status(1, true), run(2), status(3, false)]
    const { client } = await scripted(log, (response, rest, connection) => {
      if (connection === 1) response.end(rest[0])
      else response.end(connection < 5 ? '' : rest.join(''))
    })

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3'])
  })

  it('that resumes at its end is done after connections without a new event', async () => {
    const log = [status(1, true), run(2), status(3, false)]
    const { client, requested } = await scripted(log, (response) => response.end(), 0, { patience: 0 })

    const events = await lastValueFrom(client.taskGroups.events('g', { last_event_id: '3' }).pipe(toArray()))

    expect(events).toEqual([])
    expect(requested).toEqual(['3', '3', '3'])
  })

  it.each<[string, { readonly last_event_id?: string }, (response: ServerResponse) => void]>([
    ['with a cursor of the caller', { last_event_id: '0' }, (response) => answer(response, group(six))],
    ['of a service without the endpoint for groups', {}, (response) => response.writeHead(404).end()],
  ])('%s is done after ten seconds without a new event', async (_name, params, answerGroup) => {
    let time = 0
    const scheduler = Object.assign(Object.create(asyncScheduler), { now: () => time })
    let connections = 0
    const baseUrl = await serve((request, response) => {
      if (request.url?.includes('/runs') !== true) return answerGroup(response)
      connections += 1
      openStream(response)
      if (connections === 1) return response.end(six.slice(0, 3).map(sse).join(''))
      // Many connections follow without a delay before the next event.
      if (connections === 20) time += 9_999
      if (connections === 30) return response.end(six.slice(3).map(sse).join(''))
      if (connections === 50) time += 10_000
      response.end()
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, scheduler })

    const events = await lastValueFrom(client.taskGroups.runs('g', params).pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3', '4', '5', '6'])
    expect(connections).toBe(50)
  })

  it('compares the total number of runs if the counts per status do not add up', async () => {
    let connections = 0
    const baseUrl = await serve((request, response) => {
      if (request.url?.includes('/runs') !== true) {
        const { status: counted, ...rest } = group(six)
        return answer(response, { ...rest, status: { ...counted, task_run_status_counts: {} } })
      }
      connections += 1
      openStream(response)
      response.end(connections === 1 ? six.slice(1).map(sse).join('') : '')
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0, patience: 0 })

    const events = lastValueFrom(client.taskGroups.runs('g').pipe(toArray()))

    await expect(events).rejects.toMatchObject({ name: 'IncompleteStreamError', missing: 1, expected: 6 })
  })

  it('emits a gap and restarts if the service rejects a cursor that it sent', async () => {
    const log = [run(1), run(2), status(3, false)]
    let connections = 0
    const baseUrl = await serve((request, response) => {
      if (!(request.url ?? '').includes('/events')) return answer(response, group(log))
      connections += 1
      if (queryOf(request).has('last_event_id')) {
        return answer(
          response,
          { detail: [{ loc: ['query', 'last_event_id'], msg: 'unknown', type: 'value' }] },
          422,
        )
      }
      openStream(response)
      if (connections === 1) response.write(sse(run(1)), () => response.destroy())
      else response.end(log.map(sse).join(''))
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 0 })

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ type, cursor }) => cursor ?? type)).toEqual(['1', 'stream.gap', '1', '2', '3'])
  })

  it('emits an unknown event unchanged', async () => {
    const { client } = await scripted(
      [{ type: 'task_run.dreamt', event_id: '1' }, status(2, false)],
      (response, rest) => response.end(rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events[0]).toMatchObject({
      type: 'unknown',
      id: expect.stringContaining('/v1/tasks/groups/g:unknown:'),
      data: { type: 'task_run.dreamt' },
      cursor: '1',
    })
  })

  it('emits a very deeply nested event, and continues after it', async () => {
    const deep = `id: 1\ndata: {"type":"task_run.dreamt","event_id":"1","in":${'['.repeat(50_000)}${']'.repeat(50_000)}}\n\n`
    const log = [status(2, false)]
    const { client, requested } = await scripted(log, (response, rest) => response.end(deep + rest.join('')))

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ type, cursor }) => [type, cursor])).toEqual([
      ['unknown', '1'],
      ['task_group.status', '2'],
    ])
    expect(requested).toEqual([null])
  })

  it('reconnects after an event that is not JSON', async () => {
    const log = [run(1), run(2), status(3, false)]
    const { client, requested } = await scripted(log, (response, rest, connection) =>
      response.end(connection === 1 ? `${rest[0]}id: 2\ndata: {"type":"task_run.st\n\n` : rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3'])
    expect(requested).toEqual([null, '1'])
  })

  it('emits an event that is still not JSON after several connections, and continues after it', async () => {
    const broken = 'id: 2\ndata: {"type":"task_run.st\n\n'
    const log = [run(1), status(3, false)]
    const { client } = await scripted(log, (response, rest) => {
      const after =
        rest.length === 2 ? [rest[0], broken, rest[1]] : rest.length === 1 ? [broken, rest[0]] : []
      response.end(after.join(''))
    })

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ type, cursor }) => [type, cursor])).toEqual([
      ['task_run.state', '1'],
      ['unknown', '2'],
      ['task_group.status', '3'],
    ])
  })

  it('continues after messages that are not events', async () => {
    const log = [run(1), run(2), status(3, false)]
    const { client, requested } = await scripted(log, (response, rest) =>
      response.end(`${rest[0]}event: ping\ndata: keep-alive\n\ndata:\n\n${rest[1]}${rest[2]}`),
    )

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ cursor, data }) => cursor ?? data)).toEqual(['1', 'keep-alive', '2', '3'])
    expect(requested).toEqual([null])
  })

  it('of events does not end with an earlier status without active runs', async () => {
    const reopened = { ...status(6, false), status: { ...status(6, false).status, num_task_runs: 4 } }
    const log = [status(1, true), run(2), status(3, false), status(4, true), run(5), reopened]
    const { client } = await scripted(log, (response, rest, connection) =>
      response.end(connection === 1 ? rest.slice(0, 3).join('') : rest.join('')),
    )

    const events = await lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    expect(events.map(({ cursor }) => cursor)).toEqual(['1', '2', '3', '4', '5', '6'])
  })

  it('errors without a retry if the group does not exist', async () => {
    const baseUrl = await serve((_request, response) =>
      answer(response, { type: 'error', error: { ref_id: 'r-1', message: 'no such group' } }, 404),
    )
    const client = createClient({ baseUrl, apiKey: 'key' })

    const events = lastValueFrom(client.taskGroups.events('g').pipe(toArray()))

    await expect(events).rejects.toBeInstanceOf(NotFoundError)
    await expect(events).rejects.toMatchObject({
      status: 404,
      ref_id: 'r-1',
      method: 'GET',
      path: '/v1/tasks/groups/g/events',
    })
  })

  it("waits for the server's `retry:` instead of a shorter backoff", async () => {
    let cut = () => {}
    const baseUrl = await serve((_request, response) => {
      cut = () => response.destroy()
      openStream(response)
      response.write(`retry: 7000\n\n${sse(run(1))}`)
    })
    const client = createClient({ baseUrl, apiKey: 'key', initialDelay: 10, random: () => 0 })

    const reconnect = firstValueFrom(client.diagnostics)
    const subscription = client.taskGroups.runs('g').subscribe(() => cut())

    await expect(reconnect).resolves.toMatchObject({ kind: 'reconnect', attempt: 1, delay: 7_000 })
    subscription.unsubscribe()
  })

  it('destroys its socket when the subscriber unsubscribes', async () => {
    let closed: () => void
    const socketClosed = new Promise<void>((resolve) => (closed = resolve))
    const baseUrl = await serve((_request, response) => {
      response.on('close', closed)
      openStream(response)
      response.write(sse(run(1)))
    })
    const client = createClient({ baseUrl, apiKey: 'key' })

    for await (const event of client.taskGroups.runs('g')) {
      expect(event.id).toBe('run_1:completed')
      break
    }

    await socketClosed
  })

  it('errors with the reason of its signal', async () => {
    const baseUrl = await serve((_request, response) => {
      openStream(response)
      response.write(sse(run(1)))
    })
    const client = createClient({ baseUrl, apiKey: 'key' })
    const controller = new AbortController()
    const reason = new Error('enough')

    const events = client.taskGroups.runs('g', { signal: controller.signal })
    const outcome = new Promise((resolve) => {
      events.subscribe({ next: () => controller.abort(reason), error: resolve })
    })

    await expect(outcome).resolves.toBe(reason)
  })
})

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

describe('the silence limit of a group stream', () => {
  const silenceOf = (timeouts: ClientOptions['timeouts'], timeout: number | undefined) =>
    new Promise<number>((resolve) => {
      const client = createClient({
        baseUrl: 'http://127.0.0.1:1',
        apiKey: 'key',
        timeouts,
        exchange: (request) => {
          resolve(request.timeouts.silence)
          return { pause() {}, resume() {}, abort() {} }
        },
      })
      client.taskGroups.events('g', { timeout }).subscribe().unsubscribe()
    })

  it.each([
    ["the client's own without a requested timeout", { silence: 20_000 }, undefined, 20_000],
    ["the client's own with a shorter requested timeout", { silence: 20_000 }, 5, 20_000],
    ['the requested timeout and 5 s if that is longer', { silence: 1_000 }, 5, 10_000],
    ['the default with a shorter requested timeout', undefined, 5, 60_000],
    ['the requested timeout and 5 s if that is longer than the default', undefined, 60, 65_000],
    ['no limit if the client has none', { silence: Infinity }, 5, Infinity],
  ])('is %s', async (_, timeouts, timeout, silence) => {
    expect(await silenceOf(timeouts, timeout)).toBe(silence)
  })
})
