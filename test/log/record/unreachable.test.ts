import { AuthenticationError } from 'rivulet'
import { describe, expect, it } from 'vitest'
import { answer } from '../../support/serve.ts'
import { allEntriesOf, completed, idsOf, recordingLog, until } from './recording-log.ts'

describe('a recording that begins while the service cannot be reached', () => {
  it('records that, drains webhooks meanwhile, and goes on when the service is there', async () => {
    const { client, log, service, time, put, entries, isDrained } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    await service.stop()
    const recording = log.record({
      client,
      monitors: ['m1'],
      taskGroups: ['tgrp_1'],
      webhooks: true,
      tick: Infinity,
    })
    const ofType = async (type: string) => (await allEntriesOf(log)).filter((entry) => entry.type === type)
    await until(async () => {
      time.advance(1_000)
      return (await ofType('source.lost')).length === 2
    })
    await put('a', completed('m2', '2026-01-01T00:00:00Z'))
    await until(isDrained)
    expect(await entries()).toMatchObject([{ type: 'monitor.completion', source: '/v1/monitors/m2' }])

    service.intercept = (path, response) => {
      if (!path.includes('/tasks/groups/tgrp_1')) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      return true
    }
    await service.start()
    await until(async () => {
      time.advance(60_000)
      return (await ofType('source.live')).length === 2 && idsOf(await entries()).includes('g1-event')
    })
    await recording.stop()
    expect(await ofType('source.lost')).toHaveLength(2)
    expect(await ofType('source.failed')).toEqual([])
  })

  it('rejects at once where the service refuses the key, and records a refused monitor as failed', async () => {
    const { client, log, service, entries } = await recordingLog()
    await log.record({ client, monitors: ['none'] }).done
    expect(await entries()).toMatchObject([{ type: 'source.failed', source: '/v1/monitors/none' }])
    service.intercept = (_, response) => {
      answer(response, { message: 'no such key' }, 401)
      return true
    }
    await expect(log.record({ client, monitors: ['m1'] }).done).rejects.toBeInstanceOf(AuthenticationError)
  })
})
