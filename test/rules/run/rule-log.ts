import { setImmediate as turn } from 'node:timers/promises'
import { onTestFinished } from 'vitest'
import { memoryStore, openLog } from 'rivulet/log'
import type { ResearchEvent } from 'rivulet'
import type { EventLog, MemoryStore } from 'rivulet/log'
import { change } from '../../operators/events.ts'
import { append } from '../../log/append.ts'
import { readAll } from '../../log/conformance/fixture.ts'
import { tickAt } from '../../support/ticks.ts'

/** The time at which a test begins, in Unix ms. */
export const BEGIN = Date.UTC(2026, 0, 1)
export const MINUTE = 60_000

/** A log in memory whose recorder's clock is set by the test. */
export class RuleLog {
  readonly store: MemoryStore
  readonly log: EventLog
  readonly clock: { now: number }

  constructor(store: MemoryStore, log: EventLog, clock: { now: number }) {
    this.store = store
    this.log = log
    this.clock = clock
  }

  /** Appends detections of a monitor, so many minutes after the begin. */
  detect(minutes: number, ...ids: readonly string[]): Promise<void> {
    return this.detectFor('rules', minutes, ...ids)
  }

  /** As {@link detect}, for rules of another name. */
  async detectFor(name: string, minutes: number, ...ids: readonly string[]): Promise<void> {
    await this.append(minutes, ...ids.map((id) => change(id)))
    await this.caughtUp(name)
  }

  async tick(minutes: number): Promise<void> {
    await this.append(minutes)
    await this.caughtUp()
  }

  /** Appends events so many minutes after the begin, and a tick after them, and does not wait for rules. */
  async append(minutes: number, ...events: readonly ResearchEvent[]): Promise<void> {
    this.clock.now = BEGIN + minutes * MINUTE
    const time = new Date(this.clock.now).toISOString()
    const placed: ResearchEvent[] = []
    for (const event of events) placed.push({ ...event, time, received: time })
    await append(this.store, placed)
    // What happened at the very time of a tick is decided by the next one.
    this.clock.now += 1
    await append(this.store, [tickAt(this.clock.now)])
  }

  /** Deletes what is appended meanwhile, and puts the rules, which must not run, to the position before it. */
  async deleteUnread(appending: () => Promise<void>): Promise<void> {
    const before = await this.store.positionAt('end')
    await appending()
    const end = await this.store.positionAt('end')
    const fence = await this.store.claim('process:rules')
    // Retention keeps what a reader has not read.
    await this.store.commit(fence, { expect: before, cursor: end, acknowledged: [] })
    await this.store.retention.trim({ limit: 1_000 })
    await this.store.commit(fence, { expect: end, cursor: before, acknowledged: [] })
    await this.store.release(fence)
  }

  /** Resolves when the rules have read everything. */
  async caughtUp(name = 'rules'): Promise<void> {
    for (;;) {
      const reader = await this.store.reader(`process:${name}`)
      if (reader?.cursor === (await this.store.positionAt('end'))) return
      await turn()
    }
  }

  /** What the rules have appended, as short texts. */
  async alerts(): Promise<string[]> {
    const entries = await readAll(this.store)
    return entries.flatMap(({ type, data }) => {
      switch (type) {
        case 'alert.firing':
          return [`firing ${data.alert} ${Object.values(data.key).join()}`.trim()]
        case 'alert.resolved':
          return [`resolved ${data.alert} ${Object.values(data.key).join()}`.trim() + `: ${data.reason}`]
        case 'alert.unknown':
        case 'alert.late':
          return [`${type.slice(6)} ${data.alert} ${Object.values(data.key).join()}`.trim()]
        default:
          return []
      }
    })
  }

  /** Another open log of the same store. */
  async again(): Promise<EventLog> {
    const log = await openLog(this.store.connect())
    onTestFinished(() => log.close().catch(() => {}))
    return log
  }
}

export async function ruleLog(): Promise<RuleLog> {
  const clock = { now: BEGIN }
  const store = memoryStore({ clock: () => clock.now })
  const log = await openLog(store)
  onTestFinished(() => log.close().catch(() => {}))
  return new RuleLog(store, log, clock)
}
