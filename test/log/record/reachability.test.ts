import { describe, expect, it } from 'vitest'
import { answer } from '../../support/serve.ts'
import { allEntriesOf, entriesOf, recordingLog, settled, until } from './recording-log.ts'

/** The changes of reachability in the log. */
async function changesOf(log: Parameters<typeof allEntriesOf>[0]) {
  return (await allEntriesOf(log)).filter(({ type }) => type === 'source.live' || type === 'source.lost')
}

describe('the reachability of a source', () => {
  it('is recorded: live, lost once for each outage, and live again with the time of the loss', async () => {
    const { client, log, service, time } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [{ id: 'm1', pollInterval: 1_000 }], tick: Infinity })
    await until(async () => (await changesOf(log)).length === 1)
    await service.stop()
    await until(async () => {
      time.advance(500)
      return (await changesOf(log)).length === 2
    })
    const lostAt = new Date(time.now()).toISOString()
    // The outage lasts for many attempts.
    for (let n = 0; n < 20; n++) {
      time.advance(60_000)
      await settled()
    }
    await service.start()
    await until(async () => {
      time.advance(60_000)
      return (await changesOf(log)).length === 3
    })
    await recording.stop()
    const changes = await changesOf(log)
    expect(changes).toMatchObject([
      { type: 'source.live', source: '/v1/monitors/m1', via: 'log', data: { lost: null } },
      { type: 'source.lost', source: '/v1/monitors/m1', data: { message: expect.any(String) } },
      { type: 'source.live', data: { lost: lostAt } },
    ])
    expect(new Set(changes.map(({ id }) => id)).size).toBe(3)
    expect(changes[1]?.time).toBe(lostAt)
  })

  it('does not change with a stream that closes, nor with one that breaks and is resumed', async () => {
    const { client, log, service, time } = await recordingLog()
    let connections = 0
    service.intercept = (path, response) => {
      if (!path.includes('/tasks/groups/tgrp_1')) return false
      if (path.endsWith('/tgrp_1')) {
        answer(response, { taskgroup_id: 'tgrp_1', status: { is_active: true, num_task_runs: 1 } })
        return true
      }
      connections += 1
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      // Every other one breaks.
      if (connections % 2 === 0) response.write('data: {"cut', () => response.destroy())
      else response.end()
      return true
    }
    const recording = log.record({ client, taskGroups: ['tgrp_1'], tick: Infinity })
    await until(async () => {
      time.advance(60_000)
      return connections > 12
    })
    await recording.stop()
    expect(await changesOf(log)).toMatchObject([{ type: 'source.live', source: '/v1/tasks/groups/tgrp_1' }])
  })

  it('is one for the two streams of a group, and lost after the first failed attempt to reconnect', async () => {
    const { client, log, service, time } = await recordingLog()
    let isDown = true
    let requests = 0
    service.intercept = (path, response) => {
      if (!path.includes('/tasks/groups/tgrp_1/')) return false
      requests += 1
      if (isDown) answer(response, { message: 'down' }, 503)
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return true
    }
    const recording = log.record({ client, taskGroups: ['tgrp_1'], tick: Infinity })
    await until(() => requests === 2)
    await settled()
    expect(await changesOf(log)).toEqual([])
    await until(async () => {
      time.advance(1_000)
      return requests > 12
    })
    expect(await changesOf(log)).toMatchObject([{ type: 'source.lost' }])
    isDown = false
    await until(async () => {
      time.advance(60_000)
      return (await changesOf(log)).length === 2
    })
    await settled()
    await recording.stop()
    expect(await changesOf(log)).toMatchObject([{ type: 'source.lost' }, { type: 'source.live' }])
  })

  it('is recorded again by the next recording', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    for (let n = 1; n <= 2; n++) {
      const recording = log.record({ client, monitors: ['m1'] })
      await until(async () => (await changesOf(log)).length === n)
      await recording.stop()
    }
    expect((await changesOf(log)).map(({ type }) => type)).toEqual(['source.live', 'source.live'])
  })
})

describe('backfill', () => {
  it('marks the events of a monitor until its first walk has caught up, also over a restart within it', async () => {
    const { client, log, store, service, time } = await recordingLog()
    service.monitors.set(
      'm1',
      Array.from({ length: 30 }, (_, n) => `g${30 - n}`),
    )
    const monitors = [{ id: 'm1', pollInterval: 0 }]
    // Within the walk, the log can take nothing more.
    const append = store.append.bind(store)
    let room = 10
    store.append = async (appends, done) => {
      const entries = appends.flatMap((each) => each.entries)
      const cut = appends.map((each) => ({ ...each, entries: each.entries.slice(0, room) }))
      if (entries.length <= room) return append(appends, done)
      const [first] = cut
      const last = first?.entries.at(-1)?.event.id
      const position = JSON.stringify({ mark: last, time: null, before: [last], first: true })
      await append([{ ...first, position } as never])
      room = Infinity
      throw new Error('killed')
    }
    await expect(log.record({ client, monitors }).done).rejects.toThrow('killed')
    store.append = append
    expect(await entriesOf(log)).toHaveLength(9)
    const recording = log.record({ client, monitors })
    await until(async () => (await entriesOf(log)).length === 30)
    service.monitors.set('m1', ['g31', ...(service.monitors.get('m1') ?? [])])
    await until(async () => {
      time.advance(1)
      return (await entriesOf(log)).length === 31
    })
    await recording.stop()
    const marks = (await entriesOf(log)).map(({ backfill }) => backfill)
    expect(marks).toEqual([...Array.from({ length: 30 }, () => true), false])
  })

  it('does not mark what a monitor brings after a walk that found nothing, also by a later recording', async () => {
    const { client, log, store, service } = await recordingLog()
    service.monitors.set('m1', [])
    const first = log.record({ client, monitors: ['m1'] })
    await until(async () => (await store.streamPositions(['stream:monitors/m1']))[0] !== null)
    await first.stop()
    service.monitors.set('m1', ['g1'])
    const second = log.record({ client, monitors: ['m1'] })
    await until(async () => (await entriesOf(log)).length === 1)
    await second.stop()
    expect(await entriesOf(log)).toMatchObject([{ id: 'g1-event', backfill: false }])
  })

  it('marks the events of a new group that happened before the recording began, also in a changing set', async () => {
    const { client, log, service, time } = await recordingLog()
    time.advance(Date.parse('2026-06-01T00:00:00Z'))
    const runOf = (id: string, modified_at: string) => {
      const fields = {
        run_id: id,
        status: 'completed',
        is_active: false,
        processor: 'base',
        created_at: modified_at,
      }
      const data = { type: 'task_run.state', event_id: `at-${id}`, run: { ...fields, modified_at } }
      return `id: at-${id}\ndata: ${JSON.stringify(data)}\n\n`
    }
    service.intercept = (path, response) => {
      if (!path.includes('/tasks/groups/')) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      if (!path.includes('/runs')) return true
      const group = path.split('/')[4] ?? ''
      response.write(
        runOf(`${group}-old`, '2026-05-31T23:59:59Z') + runOf(`${group}-new`, '2026-06-01T00:00:01Z'),
      )
      return true
    }
    const recording = log.record({ client, taskGroups: ['one'] })
    recording.set({ taskGroups: ['one', 'two'] })
    await until(async () => (await entriesOf(log)).length === 4)
    await recording.stop()
    const marks = (await entriesOf(log)).map(({ id, backfill }) => `${id} ${backfill}`)
    expect(marks.toSorted()).toEqual([
      'one-new:completed false',
      'one-old:completed true',
      'two-new:completed false',
      'two-old:completed true',
    ])
  })
})

describe('completions of a monitor', () => {
  it('are recorded unless include_completions is false', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1']).set('m2', ['g2'])
    const recording = log.record({ client, monitors: ['m1', { id: 'm2', include_completions: false }] })
    await until(async () => (await entriesOf(log)).length === 2)
    await recording.stop()
    const queries = service.requests.filter((path) => path.includes('/events')).toSorted()
    expect(queries[0]).toContain('/m1/events?limit=100&include_completions=true')
    expect(queries.at(-1)).toContain('/m2/events?limit=100&include_completions=false')
  })
})
