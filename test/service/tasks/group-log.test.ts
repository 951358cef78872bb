import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ManualClock } from '../../../src/service/clock.ts'
import { openDatabase } from '../../../src/service/database.ts'
import { framesOf } from '../../../src/http/server-sent-events.ts'
import type { GroupLog, GroupStream, LogView } from '../../../src/service/tasks/group-log.ts'
import { Interactions } from '../../../src/service/interactions/interactions.ts'
import { Memories } from '../../../src/service/memory/memories.ts'
import { TaskStore } from '../../../src/service/tasks/task-store.ts'
import { answerTo } from '../running.ts'
import { plainRun } from './plain-run.ts'

function storeOf(database: DatabaseSync): TaskStore {
  const clock = new ManualClock()
  const memories = new Memories(database, clock)
  return new TaskStore({
    database,
    clock,
    outbox: { post() {} },
    interactions: new Interactions(database),
    memories,
  })
}

/** More events than a page holds, in either stream. */
const MANY = 700

function openStore() {
  const database = openDatabase(':memory:')
  onTestFinished(() => database.close())
  return storeOf(database)
}

/** Adds runs to a group, which end at once; every seventh one fails. */
function addEnded(store: TaskStore, group: string, count: number): void {
  store.addRuns(
    group,
    Array.from({ length: count }, (_, index) => plainRun({ input: `Frage ${index} – ¿qué?` })),
  )
  for (let index = 0; index < count; index++) {
    const run = store.claim()
    if (run === undefined) throw new Error('no run is queued')
    const failed = index % 7 === 0
    store.finish(
      run.run_id,
      failed
        ? { status: 'failed', error: { ref_id: 'ref', message: 'no luck', details: null } }
        : { status: 'completed', output: answerTo(`Frage ${index}`).output, warnings: [] },
    )
  }
}

function groupOf(store: TaskStore, count: number): string {
  const { taskgroup_id: group } = store.createGroup(undefined)
  addEnded(store, group, count)
  return group
}

/** Every event from a position on, read page by page. */
function rest(log: GroupLog, group: string, stream: GroupStream, after = 0, view: LogView = {}): string[] {
  const frames: string[] = []
  let position = after
  for (;;) {
    const page = log.read(group, stream, position, view)
    if (page.events.count === 0) return frames
    frames.push(...framesOf(page.events))
    position = page.position
  }
}

const ASKED: readonly (readonly [GroupStream, LogView])[] = [
  ['events', {}],
  ['runs', {}],
  ['runs', { status: 'completed' }],
  ['runs', { status: 'failed', includeInput: true }],
  ['runs', { includeInput: true }],
  ['runs', { includeOutput: true }],
  ['runs', { includeInput: true, includeOutput: true }],
]

describe('the log of a group', () => {
  it('returns the same full page to all readers', () => {
    const store = openStore()
    const group = groupOf(store, MANY)
    const first = store.log.read(group, 'runs', 0)
    const again = store.log.read(group, 'runs', 0)
    expect(first.events.count).toBeLessThan(MANY)
    expect(again).toBe(first)
  })

  it('reads a page again that is not full', () => {
    const store = openStore()
    const group = groupOf(store, 2)
    const two = store.log.read(group, 'runs', 0)
    addEnded(store, group, 1)
    const three = store.log.read(group, 'runs', 0)
    expect([two, three].map(({ events, position }) => [events.count, position])).toEqual([
      [2, 2],
      [3, 3],
    ])
  })

  it('returns events added since the last read, wherever its pages ended', () => {
    const store = openStore()
    const group = groupOf(store, MANY)
    const before = rest(store.log, group, 'events')
    addEnded(store, group, MANY)
    const after = rest(store.log, group, 'events')
    expect(before).toHaveLength(2 * MANY + 1)
    expect(after).toHaveLength(2 * (2 * MANY + 1))
    expect(after.slice(0, before.length)).toEqual(before)
    expect(after.slice(before.length)).toEqual(rest(store.log, group, 'events', before.length))
  })

  it('is the same whichever position its pages begin at, however often it is read', () => {
    const store = openStore()
    const group = groupOf(store, MANY)
    const whole = rest(store.log, group, 'runs')
    const ids = whole.map((event) => /^id: (.*)$/m.exec(event)?.[1])
    expect(ids).toEqual(Array.from({ length: MANY }, (_, index) => `${group}:runs:${index + 1}`))
    for (const after of [1, 100, 255, 256, 257, MANY - 1, 100]) {
      expect(rest(store.log, group, 'runs', after)).toEqual(whole.slice(after))
    }
  })

  it('distinguishes groups, streams and views, also for cached pages', () => {
    const store = openStore()
    const groups = [groupOf(store, MANY), groupOf(store, MANY)]
    const read = ({ log }: TaskStore) =>
      groups.flatMap((group) => ASKED.map(([stream, view]) => rest(log, group, stream, 0, view)))
    const fresh = read(store)
    const kept = read(store)
    expect(kept).toEqual(fresh)
    expect(new Set(fresh.map((events) => events.join(''))).size).toBe(2 * ASKED.length)
    expect(fresh.slice(1, 4).map(({ length }) => length)).toEqual([MANY, 600, 100])
  })
})
