import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../clock.ts'
import type { MonitorStore } from './store.ts'

/** How long to wait when the database fails, in ms of the clock. */
const PAUSE = 5_000
/** Monitors that run at the same time: their searches block the process, so there are turns for others between them. */
const AT_ONCE = 4

/** Decides when monitors run. */
export interface Schedule {
  /** Begins to run monitors, first of all those that are overdue. */
  start(): void
  /** Runs what is due now. To be called whenever a monitor was added or triggered. */
  wake(): void
  /** Resolves when no execution is under way. */
  settled(): Promise<void>
  /** Starts no more executions, and resolves when those under way have ended. */
  close(): Promise<void>
}

/**
 * When a monitor that was due at `due` runs next, in ms: one frequency later, and where the service was away for longer
 * than that, at the first such time to come. What was missed is made good by one execution, not by many.
 */
export function nextRun(due: number, frequency: number, now: number): number {
  const missed = Math.max(0, Math.floor((now - due) / frequency))
  return due + (missed + 1) * frequency
}

/** Runs monitors when they are due, a few different ones at the same time and each one once at a time. */
export function createSchedule(options: {
  readonly clock: Clock
  readonly store: MonitorStore
  /** Runs the monitor with this id. Afterwards it must not be due any more. */
  readonly execute: (monitorId: string) => Promise<void>
  /** Hears when the database fails; what is due then waits for 5 s. */
  readonly onError: ((error: unknown) => void) | undefined
}): Schedule {
  const { clock, store, execute, onError } = options
  const running = new Map<string, Promise<void>>()
  /** Those that are due and find no place yet. One that failed comes after the others. */
  const waiting = new Set<string>()
  let active = false
  let cancelAlarm: (() => void) | undefined

  function wake(): void {
    if (!active) return
    cancelAlarm?.()
    try {
      const now = clock.now()
      for (const id of store.due(now)) {
        if (!running.has(id)) waiting.add(id)
      }
      fill()
      const next = store.nextAfter(now)
      cancelAlarm = next === undefined ? undefined : clock.schedule(next - now, wake)
    } catch (error) {
      pause(error)
    }
  }

  function fill(): void {
    for (const id of waiting) {
      if (running.size >= AT_ONCE) return
      waiting.delete(id)
      running.set(id, run(id))
    }
  }

  async function run(id: string): Promise<void> {
    try {
      await setImmediate()
      if (active) await execute(id)
    } catch (error) {
      return pause(error)
    } finally {
      running.delete(id)
    }
    if (waiting.size > 0) fill()
    // Those that ran may have been triggered meanwhile.
    else wake()
  }

  function pause(error: unknown): void {
    cancelAlarm?.()
    cancelAlarm = active ? clock.schedule(PAUSE, wake) : undefined
    if (onError === undefined) throw error
    onError(error)
  }

  async function settled(): Promise<void> {
    if (running.size === 0) return
    await Promise.all(running.values())
    return settled()
  }

  return {
    start() {
      active = true
      wake()
    },
    wake,
    settled,
    close() {
      active = false
      waiting.clear()
      cancelAlarm?.()
      return settled()
    },
  }
}
