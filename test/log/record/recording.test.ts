import { ArgumentError, createClient } from 'rivulet'
import { LogInUseError } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { entriesOf, idsOf, recordingLog, settled, until } from './recording-log.ts'

const quiet = (id: string) => ({ id, pollInterval: Infinity })

describe('a second recording of the same open log', () => {
  it('is refused a stream that the first records, which goes on', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1']).set('m2', ['g2'])
    const first = log.record({ client, monitors: [quiet('m1')], webhooks: true })
    await until(async () => (await entriesOf(log)).length === 1)
    const second = log.record({ client, monitors: [quiet('m2'), quiet('m1')], name: 'second' })
    const refused = await second.done.catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(LogInUseError)
    expect(refused).toMatchObject({
      claimed: 'stream:monitors/m1',
      owner: expect.stringContaining('same open log'),
    })
    service.monitors.set('m1', ['g3', 'g1'])
    first.set({ monitors: [{ id: 'm1', pollInterval: 10_000 }] })
    await until(async () => idsOf(await entriesOf(log)).includes('g3-event'))
    await first.stop()
    const third = log.record({ client, monitors: [quiet('m1')] })
    await settled()
    await third.stop()
  })

  it('waits for the stream with `wait`, until the first ends or the signal is aborted', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const first = log.record({ client, monitors: [quiet('m1')] })
    await until(async () => (await entriesOf(log)).length === 1)
    const waiting = new AbortController()
    const impatient = log.record({ client, monitors: [quiet('m1')], wait: waiting.signal })
    const patient = log.record({ client, monitors: [quiet('m1')], wait: new AbortController().signal })
    const stopped = log.record({ client, monitors: [quiet('m1')], wait: new AbortController().signal })
    await settled()
    expect(service.requests).toHaveLength(1)
    waiting.abort(new Error('long enough'))
    await expect(impatient.done).rejects.toThrow('long enough')
    await stopped.stop()
    service.monitors.set('m1', ['g2', 'g1'])
    await first.stop()
    await until(async () => (await entriesOf(log)).length === 2)
    await patient.stop()
  })
})

describe('a recording', () => {
  it('is refused at the call for what is no client', async () => {
    const { log } = await recordingLog()
    for (const client of [undefined, null, {}, createClient]) {
      for (const webhooks of [undefined, true] as const) {
        const more = webhooks === undefined ? {} : { webhooks }
        expect(() => log.record({ client: client as never, monitors: ['m1'], ...more })).toThrow(
          new ArgumentError('client', 'a client of createClient', client),
        )
      }
    }
  })
})
