import { ArgumentError } from 'rivulet'
import { LogError } from 'rivulet/log'
import { BehaviorSubject } from 'rxjs'
import { describe, expect, it } from 'vitest'
import { entriesOf, idsOf, recordingLog, settled, until } from './recording-log.ts'

const quiet = (id: string) => ({ id, pollInterval: Infinity })

describe('the lists of a recording', () => {
  it('are replaced: entries that stay are not subscribed to again, and those that leave are released', async () => {
    const { client, log, store, service } = await recordingLog()
    service.monitors.set('m1', ['g1']).set('m2', ['g2']).set('m3', ['g3'])
    const recording = log.record({ client, monitors: [quiet('m1'), quiet('m2')] })
    await until(async () => (await entriesOf(log)).length === 2)
    recording.set({ monitors: [quiet('m2'), quiet('m3')] })
    await until(async () => (await entriesOf(log)).length === 3)
    const polls = (monitor: string) => service.requests.filter((path) => path.includes(`/${monitor}/events`))
    expect([polls('m1'), polls('m2'), polls('m3')].map(({ length }) => length)).toEqual([1, 1, 1])
    await store.claim('stream:monitors/m1')
    // An empty list does not end it.
    recording.set({ monitors: [], taskGroups: [] })
    await settled()
    service.monitors.set('m1', ['g4', 'g1'])
    recording.set({ monitors: [quiet('m1')] })
    await until(async () => (await entriesOf(log)).length === 4)
    await recording.stop()
    expect(idsOf(await entriesOf(log)).at(-1)).toBe('g4-event')
  })

  it('may be emptied after all else has ended, and filled again', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1']).set('m2', ['g2'])
    const recording = log.record({ client, monitors: [quiet('m1')], taskGroups: ['unknown'] })
    await until(async () => (await entriesOf(log)).length === 2)
    recording.set({ monitors: [] })
    await settled()
    recording.set({ monitors: [quiet('m2')] })
    await until(async () => (await entriesOf(log)).length === 3)
    await recording.stop()
    expect(idsOf(await entriesOf(log)).at(-1)).toBe('g2-event')
  })

  it('are refused where they are wrong, and nothing is changed', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: [quiet('m1')] })
    const wrong = [
      null,
      { monitors: [''] },
      { monitors: [{ id: 'm', pollIntervall: 5 }] },
      { monitors: [quiet('m1'), 'm1'] },
      { monitors: ['m2'], taskGroups: ['..'] },
      { monitor: ['m1'] },
    ]
    for (const lists of wrong) expect(() => recording.set(lists as never)).toThrow(ArgumentError)
    await until(async () => (await entriesOf(log)).length === 1)
    await recording.stop()
    expect(service.requests.every((path) => path.includes('/m1'))).toBe(true)
    expect(() => recording.set({ monitors: ['m2'] })).toThrow(LogError)
  })

  it('that were given as Observables are changed by these alone', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1']).set('m2', ['g2'])
    const monitors = new BehaviorSubject(['m1'])
    const recording = log.record({ client, monitors })
    expect(() => recording.set({ monitors: ['m2'] })).toThrow('emit the new list from it')
    monitors.next(['m2'])
    await until(async () => idsOf(await entriesOf(log)).includes('g2-event'))
    await recording.stop()
  })

  it('end the recording when all that they have is done', async () => {
    const { client, log, service } = await recordingLog()
    service.monitors.set('m1', ['g1'])
    const recording = log.record({ client, monitors: ['unknown'], taskGroups: [] })
    recording.set({ monitors: ['unknown', 'also unknown'] })
    await recording.done
    expect((await entriesOf(log)).map(({ type }) => type)).toEqual(['source.failed', 'source.failed'])
  })
})
