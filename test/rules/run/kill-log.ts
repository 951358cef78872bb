import { setImmediate as turn } from 'node:timers/promises'
import { gapEvent, monitorEvent, monitorSource } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { LogStore } from 'rivulet/log/store'
import { runRules } from '../../../src/rules/run/run-rules.ts'
import { append } from '../../log/append.ts'
import { readAll } from '../../log/conformance/fixture.ts'
import { tickAt } from '../../support/ticks.ts'
import { rulesToKill } from './kill-rules.ts'

/** When the first event is recorded, in Unix ms. */
export const BEGIN = Date.UTC(2026, 0, 1)

/** Maximum number of events of an append. */
const APPEND = 50

/** The number of monitors. */
const MONITORS = 10

/** Events that were appended together with a tick, and when. */
export interface RecordedEvents {
  readonly events: readonly ResearchEvent[]
  /** Unix time in ms. */
  readonly recorded: number
}

/** Whether the rules have read everything. */
export async function hasRead(store: LogStore): Promise<boolean> {
  return (await store.reader('process:rules'))?.cursor === (await store.positionAt('end'))
}

/** Appends events up to this number, one recorded each second. */
export async function record(
  store: LogStore,
  recorded: RecordedEvents[],
  until: number,
  clock: { now: number },
  random: () => number,
): Promise<void> {
  let count = recorded.flatMap(({ events }) => events).filter(({ type }) => type !== 'log.tick').length
  while (count < until) {
    const size = Math.min(until - count, 1 + Math.floor(random() * APPEND))
    clock.now += size * 1_000
    const events = Array.from({ length: size }, (_, n) =>
      eventOf(count + n, clock.now - (size - n) * 1_000, random),
    )
    // Some events that come later are late.
    const batch = [...events, tickAt(clock.now)]
    recorded.push({ events: batch, recorded: clock.now })
    await append(store, batch)
    count += size
    await turn()
  }
}

/** Appends a gap of each monitor. */
export async function recordGaps(
  store: LogStore,
  recorded: RecordedEvents[],
  clock: { now: number },
): Promise<void> {
  clock.now += 1_000
  const gaps = Array.from({ length: MONITORS }, (_, n) => gapOf(`m${n}`, clock.now))
  const events = [...gaps, tickAt(clock.now)]
  recorded.push({ events, recorded: clock.now })
  await append(store, events)
}

/** The events of a monitor of the last minute are missing. */
function gapOf(monitor: string, now: number): ResearchEvent {
  const [from, to] = [now - 60_000, now].map((at) => new Date(at).toISOString())
  const data = { from: from ?? null, to: to ?? null, reason: 'the service no longer has them' }
  return gapEvent(monitorSource(monitor), data, 'poll', `${now}`, now)
}

/** An event of a monitor. Some come late. */
function eventOf(n: number, now: number, random: () => number): ResearchEvent {
  const monitor = `m${Math.floor(random() * MONITORS)}`
  const kind = random()
  const at = now - (random() < 0.2 ? Math.floor(random() * 40_000) : 0)
  const time = new Date(at).toISOString()
  const received = new Date(now).toISOString()
  if (kind < 0.005) return gapOf(monitor, now)
  if (kind < 0.6) {
    const output = { type: 'text', content: `${n}`, basis: [] } as const
    const detection = {
      event_type: 'event_stream',
      event_id: `${n}`,
      event_group_id: 'g',
      event_date: null,
      output,
    } as const
    return { ...monitorEvent(monitor, detection, 'poll'), time, received }
  }
  if (kind < 0.8) {
    return {
      ...monitorEvent(monitor, { event_type: 'completion', timestamp: time }, 'poll'),
      id: `c${n}`,
      time,
      received,
    }
  }
  const error = { event_type: 'error', error_message: 'e', timestamp: time } as const
  return { ...monitorEvent(monitor, error, 'poll'), id: `e${n}`, time, received }
}

/** The alerts of a log as texts. */
export async function alertsOf(store: LogStore): Promise<string[]> {
  const entries = await readAll(store)
  return entries
    .filter(({ cause }) => cause?.process === 'rules')
    .map(({ type, time, data }) => JSON.stringify({ type, time, data }))
}

/** The alerts of rules that are not killed. */
export async function withoutKill(recorded: readonly RecordedEvents[], rules: number): Promise<string[]> {
  const clock = { now: BEGIN }
  const store = memoryStore({ clock: () => clock.now })
  await using log = await openLog(store)
  const running = runRules(log, rulesToKill(rules), { startAt: 'start' })
  for (const { events, recorded: at } of recorded) {
    clock.now = at
    await append(store, events)
  }
  while (!(await hasRead(store))) await turn()
  await running.stop()
  return await alertsOf(store)
}

/** An alert as a text that says that events may be missing. */
const SHOWS_GAP = /"complete":false|"reason":"gap"/

/** How the alerts differ. */
export function compared(killed: readonly string[], expected: readonly string[]) {
  const [had, wanted] = [new Set(killed), new Set(expected)]
  const lost = expected.filter((alert) => !had.has(alert))
  const wrong = killed.filter((alert) => !wanted.has(alert))
  return {
    transitions: expected.length,
    of_gaps: expected.filter((alert) => SHOWS_GAP.test(alert)).length,
    lost: lost.length,
    doubled: killed.length - had.size,
    wrong: wrong.length,
    examples: [...lost.slice(0, 3), ...wrong.slice(0, 3)],
    same_order: killed.join('\n') === expected.join('\n'),
  }
}
