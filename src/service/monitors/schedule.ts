import { setImmediate } from 'node:timers/promises'
import { createAlarm } from '../alarm.ts'
import type { Clock } from '../clock.ts'
import type { MonitorRequest } from './request.ts'
import type { MonitorStore } from './store.ts'

/** Decides when monitors run. */
export interface Schedule {
  /** Starts to execute monitors, beginning with overdue ones. */
  start(): void
  /** Executes due monitors. Called when a monitor was added or triggered. */
  wake(): void
  /** Aborts the execution of a monitor that was cancelled, if one is running. */
  cancel(monitorId: string): void
  /** Resolves when no execution is running. */
  settled(): Promise<void>
  /** Starts no more executions, aborts the running ones, and resolves when they have ended. */
  close(): Promise<void>
}

/**
 * The next time after `due` at this frequency, in ms. Times that were missed while the service was down are skipped: one
 * execution makes up for all of them.
 */
export function nextRun(due: number, frequency: number, now: number): number {
  const missed = Math.max(0, Math.floor((now - due) / frequency))
  return due + (missed + 1) * frequency
}

/** Executes the due monitors of one type, a few at a time, and each monitor at most once at a time. */
export function createSchedule(options: {
  readonly clock: Clock
  readonly store: MonitorStore
  /** The type of the monitors. Monitors of another type have another schedule, so that neither waits for the other. */
  readonly type: MonitorRequest['type']
  /** Maximum number of concurrent executions. */
  readonly concurrency: number
  /** Executes a monitor, which must not be due afterwards unless the signal is aborted. */
  readonly execute: (monitorId: string, signal: AbortSignal) => Promise<void>
  /** Called when the database fails; executions then pause for 5 s. */
  readonly onError: ((error: unknown) => void) | undefined
}): Schedule {
  const { clock, store, type, concurrency, execute, onError } = options
  const alarm = createAlarm(clock, startDue, onError)
  const running = new Map<string, Promise<void>>()
  /** Due monitors that wait to be executed. A failed one is added at the end. */
  const waiting = new Set<string>()
  const closing = new AbortController()
  /** Aborts each running execution. */
  const controllers = new Map<string, AbortController>()

  function startDue(now: number): number | undefined {
    for (const id of store.due(now, type)) {
      if (!running.has(id)) waiting.add(id)
    }
    fill()
    return store.nextAfter(now, type)
  }

  function fill(): void {
    for (const id of waiting) {
      if (running.size >= concurrency) return
      waiting.delete(id)
      running.set(id, run(id))
    }
  }

  async function run(id: string): Promise<void> {
    const controller = new AbortController()
    controllers.set(id, controller)
    const signal = AbortSignal.any([closing.signal, controller.signal])
    try {
      await setImmediate()
      if (!signal.aborted) await execute(id, signal)
    } catch (error) {
      // Aborted. At a close the monitor stays due, so the next start executes it.
      if (!signal.aborted || error !== signal.reason) return alarm.pause(error)
      if (closing.signal.aborted) return
    } finally {
      running.delete(id)
      controllers.delete(id)
    }
    if (waiting.size > 0) fill()
    // Monitors may have been triggered during their execution.
    else alarm.wake()
  }

  async function settled(): Promise<void> {
    if (running.size === 0) return
    await Promise.all(running.values())
    return settled()
  }

  return {
    start: alarm.start,
    wake: alarm.wake,
    settled,
    cancel: (id) => controllers.get(id)?.abort(),
    close() {
      closing.abort()
      alarm.stop()
      waiting.clear()
      return settled()
    },
  }
}
