import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { createClient } from 'rivulet'
import { openLog } from 'rivulet/log'
import type { WatchedGroup } from 'rivulet'
import type { Entry } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { sqliteStore } from 'rivulet/log/sqlite'
import { BehaviorSubject } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { entriesOf } from '../log/entries.ts'
import { HeldRuns, research } from './research.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

const names = (count: number) => Array.from({ length: count }, (_, n) => `question ${n}`)

/** Opens stores over one log. */
type Connect = (owner?: string) => LogStore

const STORES: readonly (readonly [name: string, create: () => Connect])[] = [
  [
    'memory',
    () => {
      const root = simulatedStore()
      return (owner) => root.connect(owner === undefined ? {} : { owner })
    },
  ],
  [
    'an SQLite file',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'rivulet-record-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      return (owner) => sqliteStore(join(folder, 'log.db'), owner === undefined ? {} : { owner })
    },
  ],
]

/** Opens a log. */
async function openedLog(connect: Connect, owner?: string) {
  const store = connect(owner)
  const log = await openLog(store)
  onTestFinished(() => log.close())
  return { store, log }
}

const runsOf = (entries: readonly Entry[]) => entries.filter(({ type }) => type === 'task_run.state')

describe.each(STORES)('log.record into %s', (_, create) => {
  it('records every event of a group once, and is done when the group is', async () => {
    const { client, group } = await research()
    const id = await group(...names(30))
    const { log } = await openedLog(create())
    await log.record({ client, taskGroups: [id] }).done
    const entries = await entriesOf(log)
    expect(new Set(runsOf(entries).map((entry) => entry.id)).size).toBe(30)
    expect(runsOf(entries)).toHaveLength(30)
    expect(entries.some(({ type }) => type === 'task_group.status')).toBe(true)
  })

  it('has any number of consumers, each with every event', async () => {
    const { client, group } = await research()
    const id = await group(...names(10))
    const { log } = await openedLog(create())
    await log.record({ client, taskGroups: [id] }).done
    const [first, second]: [string[], string[]] = [[], []]
    await new Promise<void>((resolve) => {
      const both = () => {
        if (first.length === 10 && second.length === 10) resolve()
      }
      log.consume(
        'first',
        { types: ['task_run.state'] },
        (entry) => (first.push(entry.data.run.run_id), both()),
      )
      log.consume('second', { types: ['task_run.state'] }, (entry) => (second.push(entry.id), both()))
    })
    expect(new Set(first).size).toBe(10)
    expect(new Set(second).size).toBe(10)
  })

  it('resumes where the log has each stream, after a recorder that ended in the middle', async () => {
    const processor = new HeldRuns()
    const { service, client, group } = await research({ processor, concurrency: 100 })
    const id = await group(...names(20))
    const connect = create()
    const { store, log } = await openedLog(connect)
    service.faults.add({ kind: 'cut', after: 7 })
    const job = log.record({ client, taskGroups: [id] })
    processor.release()
    const position = await log.positionAt('start')
    await store.wait(position, new AbortController().signal)
    await job.stop()
    const before = runsOf(await entriesOf(log)).length
    // Another process: its own client and its own open log.
    const later = await openedLog(connect)
    const other = createClient({ baseUrl: service.url ?? '', apiKey: service.apiKey ?? '' })
    await later.log.record({ client: other, taskGroups: [id] }).done
    const runs = runsOf(await entriesOf(later.log))
    expect(before).toBeLessThanOrEqual(20)
    expect(runs).toHaveLength(20)
    expect(new Set(runs.map((entry) => entry.id)).size).toBe(20)
  })

  it('records nothing twice where the service repeats events and cuts its streams', async () => {
    const { service, client, group } = await research({ client: { initialDelay: 1, maxDelay: 5 } })
    const id = await group(...names(60))
    service.faults.add({ kind: 'repeat-events', count: 5 })
    service.faults.add({ kind: 'cut', after: 9, times: 8 })
    const { log } = await openedLog(create())
    await log.record({ client, taskGroups: [id] }).done
    expect(runsOf(await entriesOf(log))).toHaveLength(60)
  })

  it('is refused a stream that another open log records, and names its owner', async () => {
    const processor = new HeldRuns()
    const { client, group } = await research({ processor })
    const id = await group('a')
    const connect = create()
    const { store, log } = await openedLog(connect, 'the first recorder')
    const first = log.record({ client, taskGroups: [id] })
    await store.wait(await log.positionAt('start'), new AbortController().signal)
    const other = await openedLog(connect)
    const second = other.log.record({ client, taskGroups: [id] })
    await expect(second.done).rejects.toMatchObject({ name: 'LogInUseError', owner: 'the first recorder' })
    await first.stop()
    processor.release()
    await other.log.record({ client, taskGroups: [id] }).done
    expect(runsOf(await entriesOf(log))).toHaveLength(1)
  })

  it('follows a changing set of groups, and releases those that leave it', async () => {
    const processor = new HeldRuns()
    const { client, group } = await research({ processor })
    const [one, two] = [await group('a'), await group('b')]
    const connect = create()
    const { store, log } = await openedLog(connect)
    const groups = new BehaviorSubject([one])
    const job = log.record({ client, taskGroups: groups })
    const start = await log.positionAt('start')
    await store.wait(start, new AbortController().signal)
    groups.next([two])
    processor.release()
    groups.complete()
    await job.done
    const sources = new Set((await entriesOf(log)).map(({ source }) => source))
    expect(sources).toContain(`/v1/tasks/groups/${two}`)
    // The other log may record what this one has left.
    const other = await openedLog(connect)
    await other.log.record({ client, taskGroups: [one] }).done
    expect(runsOf(await entriesOf(log))).toHaveLength(2)
  })

  it('continues with a group whose options change while its events are appended', async () => {
    const { client, group } = await research()
    const id = await group(...names(20))
    const { store, log } = await openedLog(create())
    const groups = new BehaviorSubject<readonly WatchedGroup[]>([id])
    const append = store.append.bind(store)
    store.append = async (appends) => {
      store.append = append
      groups.next([{ id, include_input: true }])
      groups.next([])
      groups.next([id])
      groups.complete()
      // An early claim would come before the append.
      for (let turns = 0; turns < 20; turns++) await turn()
      return append(appends)
    }
    await log.record({ client, taskGroups: groups }).done
    const runs = runsOf(await entriesOf(log))
    expect(runs).toHaveLength(20)
    expect(new Set(runs.map((entry) => entry.id)).size).toBe(20)
  })

  it('leaves nothing claimed when it is stopped immediately', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const connect = create()
    const [first, second] = [await openedLog(connect), await openedLog(connect)]
    await first.log.record({ client, taskGroups: [id] }).stop()
    await second.log.record({ client, taskGroups: [id] }).done
    expect(runsOf(await entriesOf(second.log))).toHaveLength(1)
  })

  it('leaves nothing claimed when one of the streams of a group is held elsewhere', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const connect = create()
    const [first, second] = [await openedLog(connect), await openedLog(connect)]
    const held = await second.store.claim(`stream:groups/${id}/events`)
    const job = first.log.record({ client, taskGroups: [id] })
    await expect(job.done).rejects.toMatchObject({ name: 'LogInUseError', claimed: held.name })
    await second.log.record({ client, taskGroups: [id] }).done
    expect(runsOf(await entriesOf(second.log))).toHaveLength(1)
  })

  it('claims the streams of a group in one order, so that two that wait never hold one each', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const connect = create()
    const [first, second] = [await openedLog(connect), await openedLog(connect)]
    const runs = await first.store.claim(`stream:groups/${id}/runs`)
    const { signal } = new AbortController()
    const waiting = second.log.record({ client, taskGroups: [id], wait: signal })
    for (let turns = 0; turns < 20; turns++) await turn()
    const events = await first.store.claim(`stream:groups/${id}/events`)
    await first.store.release(events)
    await first.store.release(runs)
    await waiting.done
    expect(runsOf(await entriesOf(second.log))).toHaveLength(1)
  })

  it('waits for the streams that another open log records, with `wait`', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const connect = create()
    const [first, second] = [await openedLog(connect), await openedLog(connect)]
    const held = await first.store.claim(`stream:groups/${id}/runs`)
    const wait = new AbortController()
    const impatient = second.log.record({ client, taskGroups: [id], wait: wait.signal })
    wait.abort(new Error('long enough'))
    await expect(impatient.done).rejects.toThrow('long enough')
    const { signal } = new AbortController()
    await second.log.record({ client, taskGroups: [id], wait: signal }).stop()
    const patient = second.log.record({ client, taskGroups: [id], wait: signal })
    await first.store.release(held)
    await patient.done
    expect(runsOf(await entriesOf(second.log))).toHaveLength(1)
  })

  it('ends when its log is closed', async () => {
    const processor = new HeldRuns()
    const { client, group } = await research({ processor })
    const id = await group('a')
    const { store, log } = await openedLog(create())
    const job = log.record({ client, taskGroups: [id] })
    await store.wait(await log.positionAt('start'), new AbortController().signal)
    await log.close()
    await expect(job.done).resolves.toBeUndefined()
  })

  it('records that a group failed', async () => {
    const { client } = await research()
    const { log } = await openedLog(create())
    await log.record({ client, taskGroups: ['tgrp_unknown'] }).done
    const [entry] = await entriesOf(log)
    expect(entry).toMatchObject({
      type: 'source.failed',
      source: '/v1/tasks/groups/tgrp_unknown',
      data: { error: { name: 'NotFoundError', status: 404 } },
    })
  })

  it('is refused at the call without anything to record', async () => {
    const { client } = await research()
    const { log } = await openedLog(create())
    expect(() => log.record({ client })).toThrow(
      'record needs monitors, taskGroups, runs, findAlls or webhooks',
    )
    expect(() => log.record({ client, taskGroups: ['a'], wait: true as never })).toThrow('wait')
    expect(() => log.record({ client, taskGroups: [{ id: 'a', untl: 'done' } as never] })).toThrow('until')
  })
})

describe('log.record into a log that fails', () => {
  it('fails with what the log refuses', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const faults = (write: string) => {
      if (write === 'append') throw new Error('the disk is full')
    }
    const { log } = await openedLog(() => simulatedStore({ faults }))
    await expect(log.record({ client, taskGroups: [id] }).done).rejects.toThrow('the disk is full')
  })

  it('does not fail silently: without `done` and `stop`, the failure is an unhandled rejection', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const root = simulatedStore()
    const { log } = await openedLog(() => root.connect())
    await root.claim(`stream:groups/${id}/runs`)
    // The test runner's listeners would fail the run.
    const listeners = process.listeners('unhandledRejection')
    onTestFinished(() => {
      process.removeAllListeners('unhandledRejection')
      for (const listener of listeners) process.on('unhandledRejection', listener)
    })
    const unhandled = new Promise((resolve) => {
      process.removeAllListeners('unhandledRejection').once('unhandledRejection', resolve)
    })
    log.record({ client, taskGroups: [id] })
    expect(await unhandled).toMatchObject({ name: 'LogInUseError' })
  })

  it('fails where the append fails that it was stopped during', async () => {
    const { client, group } = await research()
    const id = await group('a')
    const [appending, failing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const root = simulatedStore()
    const store = root.connect()
    store.append = async () => {
      appending.resolve()
      await failing.promise
      throw new Error('the disk is full')
    }
    const { log } = await openedLog(() => store)
    const job = log.record({ client, taskGroups: [id] })
    await appending.promise
    const stopped = job.stop()
    // The job has ended, and the append has not.
    await turn()
    failing.resolve()
    await expect(stopped).rejects.toThrow('the disk is full')
    await expect(job.done).rejects.toThrow('the disk is full')
    // Its streams are released nevertheless.
    await root.connect().claim(`stream:groups/${id}/runs`)
  })
})
