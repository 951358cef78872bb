import { ArgumentError } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import { LogInUseError } from 'rivulet/log'
import { describe, expect, it } from 'vitest'
import { monitored } from './monitored.ts'
import { allEntriesOf, completed, settled } from './recording-log.ts'

const ticksOf = async (log: EventLog) =>
  (await allEntriesOf(log)).flatMap((entry) => (entry.type === 'log.tick' ? [entry] : []))

/** The `through` of the last tick, in seconds since the beginning; null for none. */
const through = async (log: EventLog) => {
  const at = (await ticksOf(log)).at(-1)?.data.through
  return at == null ? null : Date.parse(at) / 1_000
}

/** Entries that are before the `through` of an earlier tick. */
function lateOf(entries: readonly Entry[]): readonly Entry[] {
  let reached = -Infinity
  return entries.filter((entry) => {
    if (entry.type === 'log.tick') reached = Math.max(reached, Date.parse(entry.data.through ?? ''))
    const isOfService = entry.via !== 'log' && !entry.backfill && entry.time !== null
    return isOfService && Date.parse(entry.time ?? '') < reached
  })
}

describe('the progress of a recording', () => {
  it('is the start of the last finished poll of all its monitors, and an empty poll is progress', async () => {
    const { client, log, watched, pass, happens } = await monitored()
    const recording = log.record({ client, monitors: watched('a', 'b') })
    await pass(2)
    expect(await through(log)).toBe(null)
    // With the jitter of the test, a poll comes each 11 s.
    await pass(10)
    expect(await through(log)).toBeLessThanOrEqual(11)
    happens('a')
    await pass(30)
    expect(await through(log)).toBeGreaterThanOrEqual(20)
    expect(lateOf(await allEntriesOf(log))).toEqual([])
    await recording.stop()
  })

  it('stands still while the service is away, and nothing that is caught up is late', async () => {
    const { client, log, service, watched, pass, happens } = await monitored()
    const recording = log.record({ client, monitors: watched('a', 'b', 'c') })
    await pass(30)
    await service.stop()
    const before = await through(log)
    for (let n = 0; n < 12; n++) {
      happens('a', 'b')
      await pass(10)
    }
    expect(await through(log)).toBe(before)
    await service.start()
    await pass(60)
    expect(await through(log)).toBeGreaterThan(180)
    const entries = await allEntriesOf(log)
    expect(entries.filter(({ type }) => type === 'monitor.completion')).toHaveLength(24)
    expect(lateOf(entries)).toEqual([])
    await recording.stop()
  })

  it('waits for a service that goes away after a first read that took longer than the time between two ticks', async () => {
    const { client, log, service, watched, pass } = await monitored()
    await service.stop()
    const recording = log.record({ client, monitors: watched('a') })
    await pass(20)
    // Nothing was read yet that could hold it.
    expect(await through(log)).toBeGreaterThanOrEqual(10)
    await service.start()
    await pass(60)
    await service.stop()
    await pass(15)
    const before = await through(log)
    await pass(60)
    expect(await through(log)).toBe(before)
    await recording.stop()
  })

  it('stays where it was after a restart, until each stream was read once', async () => {
    const { client, log, watched, pass, happens } = await monitored()
    const first = log.record({ client, monitors: watched('a', 'b') })
    await pass(30)
    happens('a')
    await pass(12)
    const before = await through(log)
    await first.stop()
    happens('a', 'b')
    await pass(100)
    happens('b')
    const second = log.record({ client, monitors: watched('a', 'b') })
    await pass(40)
    expect(await through(log)).toBeGreaterThan(before ?? 0)
    expect(lateOf(await allEntriesOf(log))).toEqual([])
    await second.stop()
  })

  it('is not waited for longer than `maxHold`, which the ticks then say', async () => {
    const { client, log, service, watched, pass } = await monitored()
    const recording = log.record({ client, monitors: watched('a'), maxHold: 60_000 })
    await pass(30)
    await service.stop()
    await pass(40)
    expect((await ticksOf(log)).every(({ data }) => data.complete)).toBe(true)
    await pass(60)
    const last = (await ticksOf(log)).at(-1)
    expect(last?.data.complete).toBe(false)
    expect(Date.parse(last?.data.at ?? '') - Date.parse(last?.data.through ?? '')).toBe(60_000)
    await service.start()
    await pass(30)
    expect((await ticksOf(log)).at(-1)?.data.complete).toBe(true)
    await recording.stop()
  })

  it('holds that of the log, also while another recording stopped, until that is removed', async () => {
    const { client, log, open, watched, pass, happens } = await monitored()
    const other = await open()
    const first = log.record({ client, monitors: watched('a'), name: 'first' })
    const second = other.log.record({ client, monitors: watched('b'), name: 'second' })
    await pass(40)
    await expect(log.remove({ recording: 'second' })).rejects.toThrow(LogInUseError)
    await second.stop()
    const stopped = await through(log)
    await pass(60)
    expect(await through(log)).toBe(stopped)
    happens('b')
    const again = other.log.record({ client, monitors: watched('b'), name: 'second' })
    await pass(30)
    expect(await through(log)).toBeGreaterThan(100)
    expect(lateOf(await allEntriesOf(log))).toEqual([])
    await again.stop()
    await pass(30)
    const held = await through(log)
    await log.remove({ recording: 'second' })
    await pass(30)
    expect(await through(log)).toBeGreaterThan((held ?? 0) + 20)
    await first.stop()
  })

  it('is that of one recording of a name', async () => {
    const { client, log, watched } = await monitored()
    const first = log.record({ client, monitors: watched('a') })
    await settled()
    const second = log.record({ client, monitors: watched('b') })
    await expect(second.done).rejects.toMatchObject({ claimed: 'stream:progress/main' })
    await first.stop()
    for (const name of ['', 'webhooks', 1 as never]) {
      expect(() => log.record({ client, monitors: watched('b'), name })).toThrow(ArgumentError)
    }
  })

  it('waits for the webhooks that are stored and not recorded', async () => {
    const { client, log, put, pass, service } = await monitored()
    const recording = log.record({ client, webhooks: true })
    await pass(12)
    const before = await through(log)
    expect(before).toBeGreaterThanOrEqual(0)
    // The list of its monitor is asked for the rest of a detection.
    await service.stop()
    await put('held', {
      type: 'monitor.event.detected',
      timestamp: '1970-01-01T00:00:12Z',
      data: { monitor_id: 'm1', event: { event_group_id: 'g' } },
    })
    await pass(40)
    expect(await through(log)).toBeLessThanOrEqual(13)
    await service.start()
    await pass(120)
    expect(await through(log)).toBeGreaterThan(60)
    await put('next', completed('m2', '1970-01-01T00:02:00Z'))
    await pass(12)
    await recording.stop()
  })

  it('ends with its sources: the log waits for it no longer', async () => {
    const { client, log, watched, pass } = await monitored()
    const first = log.record({ client, monitors: watched('a'), name: 'first' })
    const done = log.record({ client, taskGroups: ['tgrp_gone'], name: 'done' })
    await done.done
    await pass(40)
    expect(await through(log)).toBeGreaterThan(15)
    await first.stop()
  })
})
