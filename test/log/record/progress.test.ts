import { ArgumentError } from 'rivulet'
import type { Entry, EventLog } from 'rivulet/log'
import { LogError, LogInUseError } from 'rivulet/log'
import { Subject } from 'rxjs'
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
    await expect(second.done).rejects.toMatchObject({
      claimed: 'stream:progress/main',
      message: expect.stringContaining('each need a `name` of their own'),
    })
    await first.stop()
    for (const name of ['', 'webhooks', 1 as never, '\ud800', 'x'.repeat(257)]) {
      expect(() => log.record({ client, monitors: watched('b'), name })).toThrow(ArgumentError)
    }
    for (const share of ['', 1 as never, '\ud800', 'x'.repeat(257)]) {
      expect(() => log.record({ client, monitors: watched('b'), share })).toThrow(ArgumentError)
    }
  })

  it('leaves the name to another recording if there are only webhooks', async () => {
    const { client, log, open, watched, pass } = await monitored()
    const other = await open()
    const webhooks = log.record({ client, webhooks: true })
    await pass(3)
    const monitors = other.log.record({ client, monitors: watched('a') })
    await pass(30)
    expect(await through(log)).toBeGreaterThan(10)
    await expect(log.record({ client, monitors: [], webhooks: true }).stop()).resolves.toBeUndefined()
    await monitors.stop()
    webhooks.set({ monitors: watched('b') })
    await pass(30)
    expect(await through(log)).toBeGreaterThan(40)
    await webhooks.stop()
  })

  it('begins where the last one of its name was, also if that was removed', async () => {
    const { client, log, service, watched, pass } = await monitored()
    const first = log.record({ client, monitors: watched('a') })
    await pass(40)
    await first.stop()
    const stopped = await through(log)
    await log.remove({ recording: 'main' })
    await service.stop()
    const second = log.record({ client, monitors: watched('a') })
    await pass(20)
    const { recordings } = (await log.stats()).time
    expect(recordings).toEqual([{ name: 'main', through: (stopped ?? 0) * 1_000, isAwaited: true, behind: 0 }])
    await second.stop()
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

  it('waits for the first list of an Observable', async () => {
    const { client, log, watched, pass, happens } = await monitored()
    const first = log.record({ client, monitors: watched('a') })
    await pass(40)
    await first.stop()
    const stopped = await through(log)
    happens('a')
    await pass(100)
    const lists = new Subject<ReturnType<typeof watched>>()
    const second = log.record({ client, monitors: lists, taskGroups: [] })
    await pass(15)
    expect(await through(log)).toBe(stopped)
    lists.next(watched('a'))
    await pass(30)
    expect(await through(log)).toBeGreaterThan(140)
    expect(lateOf(await allEntriesOf(log))).toEqual([])
    lists.next([])
    lists.complete()
    await second.done
  })

  it('waits after a suspension until the webhooks that were stored meanwhile are read', async () => {
    const { client, log, open, time, pass } = await monitored()
    const recording = log.record({ client, webhooks: true })
    // A second before it looks how far the inbox is.
    await pass(39)
    const receiver = await open()
    const payload = completed('m', new Date(time.now() + 100_000).toISOString())
    time.suspend(300_000)
    const delivery = { id: 'w', timestamp: 1, payload }
    const stored = receiver.log.inbox.put(delivery, JSON.stringify(payload))
    time.advance(1_000)
    await stored
    await pass(15)
    expect(await through(log)).toBeGreaterThan(330)
    expect(lateOf(await allEntriesOf(log))).toEqual([])
    await recording.stop()
  })

  it('is not complete while one of two streams that were away for longer than `maxHold` is still away', async () => {
    const { client, log, service, time, watched, pass } = await monitored()
    const answered = service.intercept
    const away = new Set<string>()
    service.intercept = (path, response) => {
      const id = path.split('/')[3] ?? ''
      if (!away.has(id)) return answered(path, response)
      response.destroy()
      return true
    }
    const recording = log.record({ client, monitors: watched('a', 'b'), maxHold: 60_000 })
    await pass(40)
    away.add('a')
    await pass(15)
    away.add('b')
    await pass(100)
    const before = await through(log)
    away.delete('a')
    await pass(55)
    const last = (await ticksOf(log)).at(-1)?.data
    expect(last?.complete).toBe(false)
    expect(await through(log)).toBeGreaterThan((before ?? 0) + 40)
    away.delete('b')
    await pass(30)
    expect((await ticksOf(log)).at(-1)?.data.complete).toBe(true)
    expect(await through(log)).toBeGreaterThan(time.now() / 1_000 - 15)
    await recording.stop()
  })

  it('is not waited for longer than `maxHold` by recorders that each run for a shorter time', async () => {
    const { client, log, service, watched, pass } = await monitored()
    const options = { client, monitors: watched('a'), maxHold: 60_000 }
    const first = log.record(options)
    await pass(40)
    await first.stop()
    const before = await through(log)
    await service.stop()
    for (let n = 0; n < 4; n++) {
      const next = log.record(options)
      await pass(30)
      await next.stop()
    }
    const last = await through(log)
    expect(last).toBeGreaterThan(before ?? 0)
    expect((await ticksOf(log)).at(-1)?.data.complete).toBe(false)
    // One that waits for longer does not make complete what was not.
    const patient = log.record({ ...options, maxHold: Infinity })
    await pass(30)
    await patient.stop()
    expect(await through(log)).toBe(last)
    expect((await ticksOf(log)).at(-1)?.data.complete).toBe(false)
  })

  it('goes on when another open log has taken the clock alone', async () => {
    const { client, log, store, open, watched, pass } = await monitored()
    const other = await open()
    const first = log.record({ client, monitors: watched('a'), name: 'first' })
    await pass(20)
    const second = other.log.record({ client, monitors: watched('b'), name: 'second' })
    await pass(20)
    store.loseClaims()
    await pass(20)
    await second.stop()
    await log.remove({ recording: 'second' })
    await pass(20)
    expect(await through(log)).toBeGreaterThan(60)
    await first.stop()
  })

  it('fails its recording when it cannot be claimed again', async () => {
    const { client, root, open, watched, pass } = await monitored()
    const error = new LogError('out of order')
    let isBroken = false
    const store = root.connect({
      faults: (write) => {
        if (isBroken && write === 'claim') throw error
      },
    })
    const { log } = await open(store)
    const other = await open()
    const recording = log.record({ client, monitors: watched('a'), share: 'all' })
    const failure = recording.done.catch((each: unknown) => each)
    await pass(20)
    const name = 'stream:progress/all/0'
    // Its claim is lost without its knowledge.
    await store.release({ name, token: 1 })
    const fence = await other.store.claim(name)
    await pass(20)
    isBroken = true
    await other.store.release(fence)
    expect(await failure).toBe(error)
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
