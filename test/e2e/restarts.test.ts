import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from 'rivulet/log'
import type { ResearchClient } from 'rivulet'
import type { EventLog } from 'rivulet/log'
import { sqliteStore } from 'rivulet/log/sqlite'
import { deliver } from 'rivulet/operators'
import { asyncScheduler, lastValueFrom, of, retry, take, tap, toArray } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { entriesOf } from '../log/entries.ts'
import { write } from '../service/corpus/folder.ts'
import { all, research } from './research.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'

const RUNS = { types: ['task_run.state'] } as const

const names = (count: number) => Array.from({ length: count }, (_, n) => `question ${n}`)

/** A function that opens the log of a file. */
async function logFile(): Promise<() => Promise<EventLog>> {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-log-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return () => openLog(sqliteStore(join(folder, 'log.db')))
}

/** A log with the events of a group of so many runs. */
async function recorded(client: ResearchClient, id: string, store = simulatedStore()) {
  const log = await openLog(store)
  onTestFinished(() => log.close())
  await log.record({ client, taskGroups: [id] }).done
  return log
}

describe('a recorder and a consumer that are stopped and started again', () => {
  it.each([1, 2, 5, 9])('have every run handled once, after %i handled runs', async (count) => {
    const { client, group } = await research()
    const id = await group(...names(10))
    const open = await logFile()
    const handled: string[] = []
    const life = async (runs: number) => {
      await using log = await open()
      const recording = log.record({ client, taskGroups: [id] })
      const handler = (entry: { readonly id: string }) => void handled.push(entry.id)
      const entries = log.consume('runs', RUNS).pipe(deliver(handler, { concurrency: 1 }), take(runs))
      await lastValueFrom(entries)
      await recording.stop()
    }

    await life(count)
    await life(10 - count)

    expect(handled).toHaveLength(10)
    expect(new Set(handled).size).toBe(10)
  })

  it('have every event of a monitor recorded once, also behind a completion', async () => {
    const { client, service, docs } = await research({
      files: { 'old.md': '# Old\n\nNothing of the kind.\n' },
    })
    const listed = async (records: number) => {
      while (service.records().monitor_events.length < records)
        await new Promise((resolve) => setImmediate(resolve))
    }
    const settings = { query: 'spring tide' }
    const [created] = await all(client.monitors.create({ type: 'event_stream', frequency: '1h', settings }))
    const monitor = created?.monitor_id ?? ''
    await listed(1)
    await write(docs, { 'note.md': '# Note\n\nA spring tide was measured.\n' })
    await all(client.monitors.trigger(monitor))
    await listed(2)
    await all(client.monitors.trigger(monitor))
    await listed(3)
    const open = await logFile()
    const life = async (include_completions: boolean, events: number) => {
      await using log = await open()
      const monitors = [{ id: monitor, pollInterval: 0, include_completions }]
      const recording = log.record({ client, monitors })
      const types = ['monitor.event_stream', 'monitor.completion'] as const
      await lastValueFrom(
        log.consume('all', { types }).pipe(
          deliver(() => {}),
          take(events),
        ),
      )
      await recording.stop()
    }

    await life(true, 3)
    await write(docs, { 'next.md': '# Next\n\nAnother spring tide was measured.\n' })
    await all(client.monitors.trigger(monitor))
    await listed(4)
    await life(false, 1)

    await using log = await open()
    const found = (await entriesOf(log)).filter(({ source }) => source === `/v1/monitors/${monitor}`)
    const events = found.filter(({ type }) => type.startsWith('monitor.'))
    expect(events.map(({ id }) => id)).toEqual(service.records().monitor_events.map(({ id }) => id))
  })

  it('have a source that failed asked again, and what was recorded of the others is not recorded again', async () => {
    let now = 0
    // Two failures within a millisecond would be the same event.
    const scheduler = {
      now: () => (now += 1),
      schedule: asyncScheduler.schedule.bind(asyncScheduler) as typeof asyncScheduler.schedule,
    }
    const { client, group } = await research({ client: { scheduler } })
    const id = await group(...names(3))
    const log = await openLog(simulatedStore())
    onTestFinished(() => log.close())
    const life = () => log.record({ client, taskGroups: ['tgrp_unknown', id] }).done

    await life()
    const position = await log.positionAt('end')
    await life()

    const { entries } = await log.read(position)
    const again = entries.filter(({ type }) => type === 'source.failed' || type.startsWith('task_'))
    expect(again).toMatchObject([{ type: 'source.failed', source: '/v1/tasks/groups/tgrp_unknown' }])
  })

  it('have the failure of a malformed id recorded', async () => {
    const { client } = await research()
    const log = await openLog(simulatedStore())
    onTestFinished(() => log.close())

    await log.record({ client, monitors: of(['..']), taskGroups: of(['..']) }).done

    const failed = (await entriesOf(log)).filter(({ type }) => type === 'source.failed')
    expect(failed.map(({ source }) => source)).toEqual(['/v1/monitors/..', '/v1/tasks/groups/..'])
  })
})

describe('a consumer whose pipeline fails', () => {
  it('gets again the entry on which an operator threw, and those after it', async () => {
    const { client, group } = await research()
    const log = await recorded(client, await group(...names(6)))
    const before: string[] = []
    let seen = 0
    const throwing = log.consume('runs', RUNS).pipe(
      tap(() => {
        if (++seen === 3) throw new Error('a bug')
      }),
      deliver(({ id }) => void before.push(id)),
    )

    await expect(lastValueFrom(throwing)).rejects.toThrow('a bug')
    const after: string[] = []
    const mended = log.consume('runs', RUNS).pipe(
      deliver(({ id }) => void after.push(id)),
      take(4),
    )
    await lastValueFrom(mended)

    expect(before).toHaveLength(2)
    expect(new Set([...before, ...after]).size).toBe(6)
  })

  it('gets only what was not handled when it is retried in the same process', async () => {
    const { client, group } = await research()
    const log = await recorded(client, await group(...names(6)))
    const calls: string[] = []
    const handler = ({ id }: { readonly id: string }) => {
      calls.push(id)
      if (calls.length === 2) throw new Error('out of reach')
    }

    const handled = await lastValueFrom(
      log
        .consume('runs', RUNS)
        .pipe(
          deliver(handler, { concurrency: 1, retries: 0 }),
          retry({ count: 1, delay: 0 }),
          take(6),
          toArray(),
        ),
    )

    const ids = handled.map(({ id }) => id)
    expect(new Set(ids).size).toBe(6)
    expect(calls).toEqual([ids[0], ids[1], ...ids.slice(1)])
  })

  it('fails where its acknowledgements cannot be saved, and the next start gets those again', async () => {
    const { client, group } = await research()
    let isFull = false
    const store = simulatedStore({
      faults(call) {
        if (isFull && call === 'commit') throw new Error('the disk is full')
      },
    })
    const log = await recorded(client, await group(...names(40)), store)
    const first: string[] = []
    const failing = log.consume('runs', { ...RUNS, concurrency: 1 }, ({ id }) => {
      first.push(id)
      isFull = true
    })

    await expect(failing.done).rejects.toThrow('the disk is full')
    isFull = false
    const second: string[] = []
    const entries = log.consume('runs', RUNS).pipe(
      deliver(({ id }) => void second.push(id)),
      take(40),
    )
    await lastValueFrom(entries)

    expect(first.length).toBeGreaterThan(0)
    expect(new Set(second).size).toBe(40)
  })
})
