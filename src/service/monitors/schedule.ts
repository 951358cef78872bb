import { setImmediate } from 'node:timers/promises'
import { createAlarm } from '../alarm.ts'
import type { Clock } from '../clock.ts'
import type { MonitorRequest } from './request.ts'
import type { MonitorStore } from './store.ts'

/**
 * The next time after `due` at this frequency, in ms. Times that were missed while the service was down are skipped: one
 * execution makes up for all of them.
 */
export function nextRun(due: number, frequency: number, now: number): number {
  const missed = Math.max(0, Math.floor((now - due) / frequency))
  return due + (missed + 1) * frequency
}

/** Settings of {@link Schedule}. */
export interface ScheduleOptions {
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
}

/** Executes the due monitors of one type, a few at a time, and each monitor at most once at a time. */
export class Schedule {
  readonly #options: ScheduleOptions
  readonly #alarm: ReturnType<typeof createAlarm>
  readonly #running = new Map<string, Promise<void>>()
  /** Due monitors that wait to be executed. A failed one is added at the end. */
  readonly #waiting = new Set<string>()
  readonly #closing = new AbortController()
  /** Aborts each running execution. */
  readonly #controllers = new Map<string, AbortController>()

  constructor(options: ScheduleOptions) {
    this.#options = options
    this.#alarm = createAlarm(options.clock, (now) => this.#startDue(now), options.onError)
  }

  /** Starts to execute monitors, beginning with overdue ones. */
  start(): void {
    this.#alarm.start()
  }

  /** Executes due monitors. Called when a monitor was added or triggered. */
  wake(): void {
    this.#alarm.wake()
  }

  /** Aborts the execution of a monitor that was cancelled, if one is running. */
  cancel(monitorId: string): void {
    this.#controllers.get(monitorId)?.abort()
  }

  /** Resolves when no execution is running. */
  async settled(): Promise<void> {
    if (this.#running.size === 0) return
    await Promise.all(this.#running.values())
    return this.settled()
  }

  /** Starts no more executions, aborts the running ones, and resolves when they have ended. */
  close(): Promise<void> {
    this.#closing.abort()
    this.#alarm.stop()
    this.#waiting.clear()
    return this.settled()
  }

  #startDue(now: number): number | undefined {
    const { store, type } = this.#options
    for (const id of store.due(now, type)) {
      if (!this.#running.has(id)) this.#waiting.add(id)
    }
    this.#fill()
    return store.nextAfter(now, type)
  }

  #fill(): void {
    for (const id of this.#waiting) {
      if (this.#running.size >= this.#options.concurrency) return
      this.#waiting.delete(id)
      this.#running.set(id, this.#run(id))
    }
  }

  async #run(id: string): Promise<void> {
    const controller = new AbortController()
    this.#controllers.set(id, controller)
    const signal = AbortSignal.any([this.#closing.signal, controller.signal])
    try {
      await setImmediate()
      if (!signal.aborted) await this.#options.execute(id, signal)
    } catch (error) {
      // Aborted. At a close the monitor stays due, so the next start executes it.
      if (!signal.aborted || error !== signal.reason) return this.#alarm.pause(error)
      if (this.#closing.signal.aborted) return
    } finally {
      this.#running.delete(id)
      this.#controllers.delete(id)
    }
    if (this.#waiting.size > 0) this.#fill()
    // Monitors may have been triggered during their execution.
    else this.#alarm.wake()
  }
}
