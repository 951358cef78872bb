import { AuthenticationError } from 'rivulet'
import { openLog } from 'rivulet/log'
import { createWebhookReceiver } from 'rivulet/webhooks'
import { describe, expect, it, onTestFinished } from 'vitest'
import { answer } from '../../support/serve.ts'
import { completed, detected, ended, idsOf, recordingLog, run, settled, until } from './recording-log.ts'
import { simulatedStore } from '../../../src/log/memory/store.ts'

const EXPANSION = /event_group_id=/

/** Polls only when a webhook wakes it. */
const quiet = (id: string) => ({ id, pollInterval: Infinity })

describe('the webhooks of a log', () => {
  it('are recorded in the order of arrival, and done with their entries', async () => {
    const { client, log, put, entries, isDrained } = await recordingLog()
    await put('a', ended('r1', { status: 'failed', error: { message: 'no' } }))
    await put('b', completed('m1', '2026-01-01T00:00:00Z'))
    const recording = log.record({ client, webhooks: true })
    await until(isDrained)
    await put('c', { type: 'unheard.of', data: 5 })
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toMatchObject([
      { type: 'task_run.state', via: 'webhook', id: 'r1:failed:2026-01-01T00:00:01.000Z' },
      { type: 'monitor.completion', source: '/v1/monitors/m1' },
      { type: 'unknown', source: '/v1/webhooks', data: { type: 'unheard.of', data: 5 } },
    ])
  })

  it('that nothing has recorded when the process was killed are recorded once by the next', async () => {
    const { client, log, store, put, entries, root, open, isDrained } = await recordingLog()
    for (let n = 0; n < 3; n++) await put(`${n}`, completed('m1', `2026-01-01T00:00:0${n}Z`))
    // The first append has its effect, and the recorder does not get the result.
    const append = store.append.bind(store)
    store.append = async (...args) => {
      await append(...args)
      throw new Error('killed')
    }
    await expect(log.record({ client, webhooks: true }).done).rejects.toThrow('killed')
    root.loseClaims()
    const next = await open()
    await put('3', completed('m1', '2026-01-01T00:00:03Z'))
    const recording = next.log.record({ client, webhooks: true })
    await until(isDrained)
    await recording.stop()
    expect(idsOf(await entries())).toHaveLength(4)
    expect((await entries()).every(({ revision }) => revision === 1)).toBe(true)
  })

  it('stay in the inbox where the append fails', async () => {
    const { client, log, store, put, pending, entries } = await recordingLog()
    await put('a', completed('m1', '2026-01-01T00:00:00Z'))
    store.append = () => Promise.reject(new Error('the disk is full'))
    await expect(log.record({ client, webhooks: true }).done).rejects.toThrow('the disk is full')
    expect(await pending()).toEqual(['a'])
    expect(await entries()).toEqual([])
  })

  it('are done where the log has their events already', async () => {
    const { client, log, put, entries, isDrained } = await recordingLog()
    await put('a', completed('m1', '2026-01-01T00:00:00Z'))
    await put('b', completed('m1', '2026-01-01T00:00:00.000Z'))
    const recording = log.record({ client, webhooks: true })
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toHaveLength(1)
  })

  it('are taken over when the recording that takes them ends, in this process and in another one', async () => {
    const { client, log, open, put, pending, entries, isDrained } = await recordingLog()
    const other = await open()
    const recordings = [log, log, other.log].map((each) => each.record({ client, webhooks: true }))
    for (const [n, recording] of recordings.entries()) {
      await put(`${n}`, completed('m1', `2026-01-01T00:00:0${n}Z`))
      await until(isDrained)
      await recording.stop()
    }
    await put('left', completed('m1', '2026-01-01T00:01:00Z'))
    await settled()
    expect(await pending()).toEqual(['left'])
    expect(await entries()).toHaveLength(3)
  })

  it('are recorded by the recording that had passed them on and lost its turn before they were appended', async () => {
    const { service, client, open, root, put, pending, entries, isDrained } = await recordingLog(
      {},
      simulatedStore({ partitions: 4 }),
    )
    const store = root.connect()
    const { log } = await open(store)
    service.monitors.set('m1', ['g1'])
    const held = Promise.withResolvers<void>()
    const appending = Promise.withResolvers<void>()
    const append = store.append.bind(store)
    store.append = async (...given) => {
      appending.resolve()
      await held.promise
      return append(...given)
    }
    const recording = log.record({ client, webhooks: true, share: 'all', tick: Infinity })
    await put('a', detected('m1', 'g1'))
    await appending.promise
    store.loseClaims()
    // Another one had its turn, and has recorded nothing.
    const other = root.connect()
    await other.release(await other.claim('stream:webhooks'))
    expect(await pending()).toEqual(['a'])
    held.resolve()
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toMatchObject([{ source: '/v1/monitors/m1', id: 'g1-event' }])
  })

  it('are refused from the inbox of another log', async () => {
    const { client, log, root } = await recordingLog()
    const other = await openLog(root.connect())
    onTestFinished(() => other.close())
    const receiver = createWebhookReceiver({ secrets: 'secret', inbox: other.inbox })
    expect(() => log.record({ client, webhooks: receiver })).toThrow('inbox: log.inbox')
    expect(() => log.record({ client, webhooks: createWebhookReceiver({ secrets: 's' }) })).toThrow('inbox')
    expect(() => log.record({ client, webhooks: false as never })).toThrow('webhooks')
    const own = createWebhookReceiver({ secrets: 'secret', inbox: log.inbox })
    await log.record({ client, webhooks: own }).stop()
  })

  it('that are hostile become entries', async () => {
    const { client, log, put, entries, isDrained } = await recordingLog()
    const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
    const payloads = [
      {},
      { type: 'monitor.event.detected' },
      { type: 'monitor.event.detected', data: { monitor_id: '../x', event: { event_group_id: 'g' } } },
      { type: 'monitor.event.detected', data: { monitor_id: 'm', event: { event_group_id: '' } } },
      { type: 'monitor.execution.failed', data: { monitor_id: 'm', event: null } },
      { type: 'task_run.status', data: null },
      { type: 'task_run.status', data: { run_id: 5 } },
      { type: 'unheard.of', deep: nested(2_000) },
      { type: '__proto__', data: { monitor_id: 'constructor' } },
    ]
    for (const [n, payload] of payloads.entries()) await put(`${n}`, payload)
    const tooDeep = `{"type":"x","data":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    await log.inbox.put({ id: 'deep', timestamp: 1_760_000_000, payload: JSON.parse(tooDeep) }, tooDeep)
    const recording = log.record({ client, webhooks: true })
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toHaveLength(payloads.length + 1)
  })
})

describe('a completion of a recorded monitor', () => {
  it('is recorded also where completions are not listed', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const monitor = { ...quiet('m1'), include_completions: false }
    const recording = log.record({ client, monitors: [monitor], webhooks: true })
    await until(async () => (await entries()).length === 1)
    await put('a', completed('m1', '2026-01-01T00:00:00Z'))
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toMatchObject([
      { type: 'monitor.event_stream', via: 'poll' },
      { type: 'monitor.completion', via: 'webhook' },
    ])
    expect(service.requests.filter((path) => path.includes('include_completions=true'))).toEqual([])
  })
})

describe('a detection of a recorded monitor', () => {
  it('wakes its poll, which records the group in the order of the monitor, and is not expanded', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [quiet('m1')], webhooks: true })
    await until(async () => (await entries()).length === 1)
    service.monitors.set('m1', ['g3', 'g2', 'g1'])
    // The webhook of the newer group arrives first.
    await put('a', detected('m1', 'g3'))
    await until(isDrained)
    await put('b', detected('m1', 'g2'))
    await until(isDrained)
    await recording.stop()
    expect(idsOf(await entries())).toEqual(['g1-event', 'g2-event', 'g3-event'])
    expect((await entries()).every(({ via }) => via === 'poll')).toBe(true)
    expect(service.requests.filter((path) => EXPANSION.test(path))).toEqual([])
  })

  it('that arrives while a failed walk is resumed waits for the next poll, and keeps the order', async () => {
    const { client, log, service, put, entries, isDrained, time } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [{ id: 'm1', pollInterval: 60_000 }], webhooks: true })
    await until(async () => (await entries()).length === 1)
    // A list of two pages, whose second page fails.
    let isDown = true
    const listed = (group: string) => ({ event_type: 'completion', timestamp: `2026-01-0${group}T00:00:00Z` })
    service.intercept = (path, response) => {
      if (!path.includes('/m1/events') || EXPANSION.test(path)) return false
      if (!path.includes('cursor=')) {
        if (!isDown) return false
        answer(response, { events: [listed('3')], next_cursor: 'older' })
      } else if (isDown) answer(response, { message: 'down' }, 503)
      else answer(response, { events: [listed('2'), listed('1')] })
      return true
    }
    time.advance(66_000)
    await until(() => service.requests.some((path) => path.includes('cursor=older')))
    await settled()
    service.monitors.set('m1', ['g5', 'g4', 'g1'])
    isDown = false
    await put('a', detected('m1', 'g5'))
    await settled()
    await until(async () => {
      time.advance(10)
      await settled()
      return isDrained()
    })
    await recording.stop()
    expect(idsOf(await entries()).slice(-2)).toEqual(['g4-event', 'g5-event'])
    expect(service.requests.filter((path) => EXPANSION.test(path))).toEqual([])
  })

  it('that a whole poll has not brought is expanded', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    service.intercept = (path, response) => {
      if (!EXPANSION.test(path)) return false
      answer(response, { events: [{ event_type: 'event_stream', event_id: 'e9', event_group_id: 'g9' }] })
      return true
    }
    const recording = log.record({ client, monitors: [quiet('m1')], webhooks: true })
    await until(async () => (await entries()).length === 1)
    const polls = service.requests.length
    await put('a', detected('m1', 'g9'))
    await put('b', detected('m1', 'g9'))
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toMatchObject([{ id: 'g1-event' }, { id: 'e9', via: 'webhook' }])
    // A poll or two, and one expansion for both.
    expect(service.requests.slice(polls).filter((path) => EXPANSION.test(path))).toHaveLength(1)
  })

  it('waits for the poll while the service is down, and holds up no other webhook', async () => {
    const { client, log, service, time, put, pending, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [quiet('m1')], webhooks: true })
    await until(async () => (await entries()).length === 1)
    let isDown = true
    service.intercept = (path, response) => {
      if (!isDown || !path.startsWith('/v1/monitors/m1')) return false
      answer(response, { message: 'down' }, 503)
      return true
    }
    service.monitors.set('m1', ['g2', 'g1'])
    await put('a', detected('m1', 'g2'))
    await put('b', completed('other', '2026-01-01T00:00:00Z'))
    await until(async () => !(await pending()).includes('b'))
    expect(await pending()).toEqual(['a'])
    isDown = false
    await until(async () => {
      time.advance(1_000)
      return isDrained()
    })
    await recording.stop()
    expect(idsOf(await entries()).toSorted()).toEqual([
      'g1-event',
      'g2-event',
      'other:completion:2026-01-01T00:00:00.000Z',
    ])
  })

  it('is expanded when its monitor has failed for good, or left the lists', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [quiet('unknown'), quiet('m1')], webhooks: true })
    await until(async () => (await entries()).length === 2)
    recording.set({ monitors: [quiet('unknown')] })
    service.monitors.set('unknown', ['g0'])
    service.monitors.set('m1', ['g2', 'g1'])
    await put('a', detected('unknown', 'g0'))
    await put('b', detected('m1', 'g2'))
    await until(isDrained)
    await recording.stop()
    const webhooks = (await entries()).filter(({ via }) => via === 'webhook')
    expect(idsOf(webhooks).toSorted()).toEqual(['g0-event', 'g2-event'])
  })

  it('is done by a completion that the poll brings, in the order of the monitor', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [quiet('m1')], webhooks: true })
    await until(async () => (await entries()).length === 1)
    const timestamp = '2026-01-01T00:00:00Z'
    service.intercept = (path, response) => {
      const events = [
        { event_type: 'completion', timestamp },
        { event_type: 'event_stream', event_id: 'e2', event_group_id: 'g2' },
        { event_type: 'event_stream', event_id: 'g1-event', event_group_id: 'g1' },
      ]
      if (!path.includes('include_completions=true')) return false
      answer(response, { events })
      return true
    }
    await put('a', completed('m1', timestamp))
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toMatchObject([
      { id: 'g1-event' },
      { id: 'e2' },
      { type: 'monitor.completion', via: 'poll' },
    ])
  })
})

describe('a detection of another monitor', () => {
  it('is expanded, once for repeated ones, also after a restart', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    for (let n = 0; n < 50; n++) await put(`${n}`, detected('m1', 'g1'))
    const first = log.record({ client, webhooks: true })
    await until(isDrained)
    await put('later', detected('m1', 'g1'))
    await until(isDrained)
    await first.stop()
    expect(service.requests).toHaveLength(1)
    await put('after the restart', detected('m1', 'g1'))
    const second = log.record({ client, webhooks: true })
    await until(isDrained)
    await second.stop()
    expect(await entries()).toMatchObject([{ id: 'g1-event', via: 'webhook', revision: 1 }])
  })

  it.each([403, 404, 422])(
    'that is refused with %i for good becomes an entry that says so',
    async (status) => {
      const { client, log, service, diagnostics, put, entries, isDrained } = await recordingLog()
      service.intercept = (_, response) => {
        answer(response, { message: 'no' }, status)
        return true
      }
      await put('a', detected('m1', 'g1'))
      const recording = log.record({ client, webhooks: true })
      await until(isDrained)
      await recording.stop()
      expect(await entries()).toMatchObject([
        { type: 'unknown', source: '/v1/monitors/m1', data: { type: 'monitor.event.detected' } },
      ])
      expect(diagnostics.some(({ kind }) => kind === 'expansion')).toBe(status !== 404)
    },
  )

  it.each([0, 4])(
    'that fails for a while is retried with backoff, blocks none, and is recorded then, with %i retries',
    async (retries) => {
      const setup = await recordingLog({ retries })
      const { client, log, service, time, diagnostics, put, pending, entries, isDrained } = setup
      service.monitors.set('ill', ['g0']).set(
        'well',
        Array.from({ length: 30 }, (_, n) => `w${n}`),
      )
      let isIll = true
      service.intercept = (path, response) => {
        if (!isIll || !path.startsWith('/v1/monitors/ill')) return false
        answer(response, { message: 'down' }, 503)
        return true
      }
      for (let n = 0; n < 30; n++) await put(`ill ${n}`, detected('ill', `g${n}`))
      for (let n = 0; n < 30; n++) await put(`well ${n}`, detected('well', `w${n}`))
      const recording = log.record({ client, webhooks: true })
      await until(async () => (await entries()).length === 30)
      await settled()
      // Time stands still, so none is tried again.
      expect(service.requests.filter((path) => path.includes('/ill/'))).toHaveLength(30)
      expect(await pending()).toHaveLength(30)
      const waiting = diagnostics.filter(({ kind }) => kind === 'expansion_retry')
      expect(waiting).toHaveLength(30)
      expect(waiting[0]).toMatchObject({ source: '/v1/monitors/ill', cause: { status: 503 } })
      isIll = false
      service.monitors.set(
        'ill',
        Array.from({ length: 30 }, (_, n) => `g${n}`),
      )
      await until(async () => {
        time.advance(1_000)
        return isDrained()
      })
      await recording.stop()
      expect(await entries()).toHaveLength(60)
    },
  )

  it('makes at most 4 requests at once, also for a thousand at the start', async () => {
    const { client, log, service, put, entries, isDrained } = await recordingLog()
    const groups = Array.from({ length: 1_000 }, (_, n) => `g${n}`)
    service.monitors.set('m1', groups)
    let [running, most] = [0, 0]
    service.intercept = (_, response) => {
      running += 1
      most = Math.max(most, running)
      response.on('close', () => (running -= 1))
      return false
    }
    await Promise.all(groups.map((group) => put(group, detected('m1', group))))
    const recording = log.record({ client, webhooks: true })
    await until(isDrained)
    await recording.stop()
    expect(await entries()).toHaveLength(1_000)
    expect(most).toBeLessThanOrEqual(4)
  })

  it('fails the recording with a rejected key, and stays in the inbox', async () => {
    const { client, log, service, put, pending } = await recordingLog()
    service.intercept = (_, response) => {
      answer(response, { message: 'who?' }, 401)
      return true
    }
    await put('a', detected('m1', 'g1'))
    await expect(log.record({ client, webhooks: true }).done).rejects.toBeInstanceOf(AuthenticationError)
    expect(await pending()).toEqual(['a'])
  })

  it('of which the list is behind is requested again', async () => {
    const { client, log, service, time, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', [])
    await put('a', detected('m1', 'g1'))
    const recording = log.record({ client, webhooks: true })
    await until(() => service.requests.length === 1)
    await settled()
    service.monitors.set('m1', ['g1'])
    await until(async () => {
      time.advance(100)
      return isDrained()
    })
    await recording.stop()
    expect(idsOf(await entries())).toEqual(['g1-event'])
  })
})

describe("a run's webhook without its output", () => {
  it('is held for 2 s, stays pending meanwhile, and then its result is fetched', async () => {
    const { client, log, service, time, put, pending, entries, isDrained } = await recordingLog()
    service.results.add('r1')
    await put('a', ended('r1'))
    await put('b', ended('r1'))
    await put('c', completed('m1', '2026-01-01T00:00:00Z'))
    const recording = log.record({ client, webhooks: true })
    await until(async () => (await entries()).length === 1)
    time.advance(1_999)
    await settled()
    expect([await pending(), service.requests]).toEqual([['a', 'b'], []])
    time.advance(1)
    await until(isDrained)
    await recording.stop()
    expect(service.requests).toHaveLength(1)
    expect((await entries()).slice(1)).toMatchObject([
      { id: 'r1:completed', revision: 1, data: { output: { content: 'found' } } },
    ])
  })

  it('is recorded as it is where the service has no result', async () => {
    const { client, log, time, put, entries, isDrained } = await recordingLog()
    await put('a', ended('r1'))
    const recording = log.record({ client, webhooks: true })
    await until(async () => {
      time.advance(100)
      return isDrained()
    })
    await recording.stop()
    expect(await entries()).toMatchObject([{ id: 'r1:completed', via: 'webhook' }])
  })

  it("is done when the group's stream brings the run, before it and while it is held", async () => {
    const { client, log, service, time, put, pending, entries, isDrained } = await recordingLog()
    const next = Promise.withResolvers<void>()
    const message = (id: string) => {
      const data = {
        type: 'task_run.state',
        event_id: `at-${id}`,
        run: run(id),
        output: { type: 'text', content: id, basis: [] },
      }
      return `id: at-${id}\ndata: ${JSON.stringify(data)}\n\n`
    }
    service.intercept = (path, response) => {
      if (!path.includes('/tasks/groups/')) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      if (!path.includes('/runs')) return true
      response.write(message('r1'))
      void next.promise.then(() => response.write(message('r2')))
      return true
    }
    const recording = log.record({ client, taskGroups: ['tgrp_1'], webhooks: true })
    await until(async () => (await entries()).length === 1)
    await put('early', ended('r2'))
    await put('late', ended('r1'))
    await until(async () => (await pending()).length === 1)
    expect(await pending()).toEqual(['early'])
    next.resolve()
    await until(isDrained)
    time.advance(5_000)
    await settled()
    await recording.stop()
    expect(await entries()).toMatchObject([
      { id: 'r1:completed', via: 'stream', revision: 1 },
      { id: 'r2:completed', via: 'stream', revision: 1 },
    ])
    expect(service.requests.filter((path) => path.includes('/result'))).toEqual([])
  })

  it('that is held when the recording is stopped is recorded by the next one', async () => {
    const { client, log, service, time, put, pending, entries, isDrained } = await recordingLog()
    service.results.add('r1')
    await put('a', ended('r1'))
    await put('b', ended('r1'))
    const first = log.record({ client, webhooks: true })
    await settled()
    await first.stop()
    expect(await pending()).toEqual(['a', 'b'])
    const second = log.record({ client, webhooks: true })
    await until(async () => {
      time.advance(100)
      return isDrained()
    })
    await second.stop()
    expect(await entries()).toHaveLength(1)
  })
})
