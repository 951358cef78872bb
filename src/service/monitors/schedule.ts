import type { Clock } from '../clock.ts'
import type { MonitorStore } from './store.ts'

/** How long to wait when the database fails, in ms of the clock. */
const PAUSE = 5_000

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

/** Runs monitors when they are due, different ones at the same time and each one once at a time. */
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
  let active = false
  let cancelAlarm: (() => void) | undefined

  function wake(): void {
    if (!active) return
    cancelAlarm?.()
    try {
      const now = clock.now()
      for (const id of store.due(now)) {
        if (!running.has(id)) running.set(id, run(id))
      }
      const next = store.nextAfter(now)
      cancelAlarm = next === undefined ? undefined : clock.schedule(next - now, wake)
    } catch (error) {
      pause(error)
    }
  }

  async function run(id: string): Promise<void> {
    try {
      await execute(id)
    } catch (error) {
      return pause(error)
    } finally {
      running.delete(id)
    }
    // It may have been triggered while it ran.
    wake()
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
      cancelAlarm?.()
      return settled()
    },
  }
}
