import { setImmediate as turn } from 'node:timers/promises'
import { openLog } from 'rivulet/log'
import type { RecordOptions, Recording } from 'rivulet/log'
import type { Processor } from 'rivulet/service'
import { lastValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { entriesOf } from '../log/entries.ts'
import { completed, detected, recordingLog } from '../log/record/recording-log.ts'
import { HeldRuns, research } from './research.ts'
import { simulatedStore } from '../../src/log/memory/store.ts'
import type { SimulatedStore } from '../../src/log/memory/store.ts'

const GROUPS = 24
const PATIENCE = { timeout: 60_000, interval: 20 }

/** A service with groups that stay active, since one run of each is held; and recordings that share them. */
async function shared() {
  const held = new HeldRuns()
  const immediate = new HeldRuns()
  immediate.release()
  const processor: Processor = {
    run: (task, signal) => (task.input.input === 'held' ? held : immediate).run(task, signal),
  }
  const { client, group } = await research({ processor, concurrency: 1_000 })
  const groups = await Promise.all(Array.from({ length: GROUPS }, () => group('held')))
  const root = simulatedStore({ partitions: 64 })
  /** Who has appended each run. */
  const appendedBy = new Map<string, string[]>()
  let runs = 0
  const join = async (owner: string, options: Partial<RecordOptions> = {}) => {
    const store = root.connect({ owner })
    const log = await openLog(store)
    onTestFinished(() => log.close())
    log.observe({
      async append(given, proceed) {
        const appended = await proceed()
        for (const { event } of given) {
          if (event.type !== 'task_run.state') continue
          appendedBy.set(event.id, [...(appendedBy.get(event.id) ?? []), owner])
        }
        return appended
      },
    })
    const recording = log.record({ client, taskGroups: groups, share: 'all', ...options })
    recording.done.catch(() => {})
    return { store, log, recording }
  }
  const reader = await openLog(root.connect())
  onTestFinished(() => reader.close())
  const recorded = async () => (await entriesOf(reader)).filter(({ type }) => type === 'task_run.state')
  return {
    client,
    group,
    groups,
    root,
    held,
    join,
    recorded,
    /** Runs one more of each group, and resolves with those that have recorded them. */
    async round(): Promise<ReadonlySet<string>> {
      const before = new Set(appendedBy.keys())
      const runsOf = groups.map((id) =>
        lastValueFrom(client.taskGroups.addRuns(id, { inputs: [{ input: 'more', processor: 'base' }] })),
      )
      await Promise.all(runsOf)
      runs += GROUPS
      await vi.waitFor(async () => expect(await recorded()).toHaveLength(runs), PATIENCE)
      expect(new Set((await recorded()).map(({ id }) => id)).size).toBe(runs)
      const added = Array.from(appendedBy).filter(([id]) => !before.has(id))
      return new Set(added.flatMap(([, owners]) => owners))
    },
  }
}

/** A recording that has a share in every round. */
const recordedBy = async (round: () => Promise<ReadonlySet<string>>, ...owners: readonly string[]) => {
  await vi.waitFor(async () => expect([...(await round())].toSorted()).toEqual(owners.toSorted()), PATIENCE)
}

describe('log.record with share', () => {
  it('has each source recorded by one of the recordings, once, while they join, stop and lose their claims', async () => {
    const { join, round } = await shared()
    const first = await join('first')
    await recordedBy(round, 'first')
    const second = await join('second')
    await recordedBy(round, 'first', 'second')
    const third = await join('third')
    await recordedBy(round, 'first', 'second', 'third')
    await second.recording.stop()
    await recordedBy(round, 'first', 'third')
    third.store.loseClaims()
    await recordedBy(round, 'first')
    await first.recording.stop()
    await join('fourth')
    expect([...(await round())]).toEqual(['fourth'])
    await third.recording.stop()
  })

  it('appends what it has received before another one has the source', async () => {
    const { join, round, root } = await shared()
    const first = await join('first')
    await recordedBy(round, 'first')
    const calls: string[] = []
    const held = Promise.withResolvers<void>()
    const appending = Promise.withResolvers<readonly string[]>()
    const { store } = first
    const [append, release] = [store.append.bind(store), store.release.bind(store)]
    store.append = async (...given) => {
      appending.resolve(given[0].map(({ fence }) => fence.name))
      await held.promise
      const appended = await append(...given)
      calls.push(...given[0].map(({ fence }) => `append ${fence.name}`))
      return appended
    }
    store.release = async (fence) => {
      calls.push(`release ${fence.name}`)
      await release(fence)
    }
    const more = round()
    const [name = ''] = await appending.promise
    await join('second')
    const stopped = first.recording.stop()
    for (let turns = 0; turns < 50; turns++) await turn()
    await expect(root.connect().claim(name)).rejects.toMatchObject({ owner: 'first' })
    held.resolve()
    await stopped
    await more
    await recordedBy(round, 'second')
    for (const [at, call] of calls.entries()) {
      if (!call.startsWith('append')) continue
      expect(calls.indexOf(call.replace('append', 'release'))).toBeGreaterThan(at)
    }
  })

  it('goes on when others have claimed its sources while it was appending', async () => {
    const { join, round } = await shared()
    const first = await join('first')
    await recordedBy(round, 'first')
    const held = Promise.withResolvers<void>()
    const appending = Promise.withResolvers<void>()
    const { store } = first
    const append = store.append.bind(store)
    store.append = async (...given) => {
      appending.resolve()
      await held.promise
      return append(...given)
    }
    const more = round()
    await appending.promise
    store.loseClaims()
    await join('second')
    // Recorded by the second one, also what the first one is appending.
    expect([...(await more)]).toEqual(['second'])
    held.resolve()
    await recordedBy(round, 'second')
    await first.recording.stop()
  })

  it('follows the lists of each recording, and runs on when the sources have ended', async () => {
    const { client, join, round, held, group, groups, recorded } = await shared()
    const both = [await join('first'), await join('second')]
    await recordedBy(round, 'first', 'second')
    const before = (await recorded()).length
    held.release()
    await vi.waitFor(async () => expect(await recorded()).toHaveLength(before + GROUPS), PATIENCE)
    const more = await Promise.all(Array.from({ length: 8 }, (_, n) => group(`question ${n}`)))
    for (const { recording } of both) recording.set({ taskGroups: [...groups, ...more] })
    await vi.waitFor(
      async () => expect(await recorded()).toHaveLength(before + GROUPS + more.length),
      PATIENCE,
    )
    const ended = await Promise.race([
      ...both.map(({ recording }) => recording.done),
      (await openLog(simulatedStore())).record({ client, taskGroups: groups }).done.then(() => 'others'),
    ])
    expect(ended).toBe('others')
    await Promise.all(both.map(({ recording }) => recording.stop()))
  })

  it('waits for its sources whatever has become of its `wait`', async () => {
    const { join, round } = await shared()
    const wait = new AbortController()
    const first = await join('first', { wait: wait.signal })
    const second = await join('second')
    await recordedBy(round, 'first', 'second')
    wait.abort(new Error('waited for long enough'))
    await second.recording.stop()
    await recordedBy(round, 'first')
    await expect(first.recording.stop()).resolves.toBeUndefined()
  })

  it('is done when its log is closed, and is refused a second time in one open log', async () => {
    const { client, join, groups } = await shared()
    const { log, recording } = await join('first')
    const second = log.record({ client, taskGroups: groups, share: 'all' })
    await expect(second.done).rejects.toMatchObject({ name: 'LogInUseError', claimed: 'group:record:all' })
    // Another name is another group.
    const third = log.record({ client, taskGroups: [], runs: [], monitors: ['other'], share: 'other' })
    await log.close()
    await expect(Promise.all([recording.done, third.done])).resolves.toBeDefined()
    expect(() => log.record({ client, taskGroups: groups, share: '' })).toThrow('share')
  })

  it('fails with what the log throws for its share', async () => {
    const { client, groups } = await shared()
    const store: SimulatedStore = simulatedStore({ partitions: 4 })
    const log = await openLog(store)
    onTestFinished(() => log.close())
    vi.spyOn(store.sharing, 'partitions').mockRejectedValue(new Error('the server has refused'))
    const recording: Recording = log.record({ client, taskGroups: groups, share: 'all' })
    await expect(recording.done).rejects.toThrow('the server has refused')
  })
})

describe('webhooks of sources that several recordings share', () => {
  it('are recorded once each, whichever recording polls the monitor', async () => {
    const { client, service, root, open, put, isDrained, entries, time } = await recordingLog(
      {},
      simulatedStore({ partitions: 64 }),
    )
    const ids = Array.from({ length: 16 }, (_, n) => `m${n}`)
    const groupsOf = (id: string) => [`${id}-g2`, `${id}-g1`]
    for (const id of ids) service.monitors.set(id, groupsOf(id))
    const monitors = ids.map((id) => ({ id, pollInterval: Infinity }))
    const members = await Promise.all(['first', 'second'].map((owner) => open(root.connect({ owner }))))
    const recordings = members.map(({ log }) =>
      log.record({ client, monitors, webhooks: true, share: 'all', tick: Infinity }),
    )
    for (const id of ids) {
      await put(`detected-${id}`, detected(id, `${id}-g2`))
      await put(`completed-${id}`, completed(id, '2026-01-01T00:00:05Z'))
    }
    await vi.waitFor(async () => {
      // A monitor that was polled is polled again after a while.
      time.advance(1_000)
      expect(await isDrained()).toBe(true)
    }, PATIENCE)
    await vi.waitFor(async () => expect(await entries()).toHaveLength(3 * ids.length), PATIENCE)
    await Promise.all(recordings.map((recording) => recording.stop()))
    const found = (await entries()).map(({ source, id }) => `${source} ${id}`)
    expect(new Set(found).size).toBe(3 * ids.length)
    for (const id of ids) {
      for (const group of groupsOf(id)) expect(found).toContain(`/v1/monitors/${id} ${group}-event`)
    }
  })
})
