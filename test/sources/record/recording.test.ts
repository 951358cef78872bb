import { ArgumentError, LogInUseError, memoryLog, openLog } from 'rivulet'
import { describe, expect, it, onTestFinished } from 'vitest'
import { entriesOf, idsOf, recordingLog, settled, until } from './recording-log.ts'

const quiet = (id: string) => ({ id, pollInterval: Infinity })

describe('a second recording of the same open log', () => {
  it('is refused a stream that the first records, which goes on', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1']).set('m2', ['g2'])
    const first = client.record({ monitors: [quiet('m1')], webhooks: true, log })
    await until(async () => (await entriesOf(log)).length === 1)
    const second = client.record({ monitors: [quiet('m2'), quiet('m1')], log })
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
    const third = client.record({ monitors: [quiet('m1')], log })
    await settled()
    await third.stop()
  })

  it('waits for the stream with `wait`, until the first ends or the signal is aborted', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const first = client.record({ monitors: [quiet('m1')], log })
    await until(async () => (await entriesOf(log)).length === 1)
    const waiting = new AbortController()
    const impatient = client.record({ monitors: [quiet('m1')], wait: waiting.signal, log })
    const patient = client.record({ monitors: [quiet('m1')], wait: new AbortController().signal, log })
    const stopped = client.record({ monitors: [quiet('m1')], wait: new AbortController().signal, log })
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
  it('is refused at the call for what is no open log', async () => {
    const { client } = await recordingLog()
    const store = memoryLog()
    const opening = openLog(store)
    onTestFinished(async () => (await opening).close())
    for (const log of [undefined, null, opening, store]) {
      for (const webhooks of [undefined, true] as const) {
        const more = webhooks === undefined ? {} : { webhooks }
        expect(() => client.record({ monitors: ['m1'], ...more, log: log as never })).toThrow(
          new ArgumentError('log', 'an open log: await openLog(…)', log),
        )
      }
    }
  })
})
