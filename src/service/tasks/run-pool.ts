import { randomUUID } from 'node:crypto'
import { isObject } from '../../protocol/event.ts'
import type { Clock } from '../clock.ts'
import type { Processor, RunTask } from '../processor/processor.ts'
import type { RunOutcome, TaskStore } from './task-store.ts'

/** How long to wait when the database fails, in ms of the clock. */
const PAUSE = 5_000

/** What a pool works with. */
export interface RunPoolOptions {
  readonly store: TaskStore
  readonly clock: Clock
  readonly processor: Processor
  /** Runs carried out at once. */
  readonly concurrency: number
  /** Hears when the database fails; what failed is tried again 5 s later. */
  readonly onError: (error: unknown) => void
}

/** Carries out the queued runs, oldest first and so many at once. */
export class RunPool {
  readonly #options: RunPoolOptions
  /** Of the runs that have a place: also of those whose end is yet to be stored. */
  readonly #running = new Set<AbortController>()
  /** Calls off what the database is to be asked once more. */
  readonly #retries = new Set<() => void>()
  #stopped = false
  #scheduled: NodeJS.Immediate | undefined

  constructor(options: RunPoolOptions) {
    this.#options = options
  }

  /** Takes up also what an earlier process had begun and not ended. */
  start(): void {
    this.#options.store.requeue()
    this.wake()
  }

  /** To be called when runs were queued. */
  wake(): void {
    // A turn of the event loop between runs: a processor that never waits would otherwise keep out all requests.
    if (!this.#stopped) this.#scheduled ??= setImmediate(() => this.#fill())
  }

  /** Aborts what is under way and queues it again. A processor that does not heed its signal is not waited for. */
  stop(): void {
    if (this.#stopped) return
    this.#stopped = true
    clearImmediate(this.#scheduled)
    for (const cancel of this.#retries) cancel()
    for (const controller of this.#running) controller.abort()
    this.#options.store.requeue()
  }

  #fill(): void {
    this.#scheduled = undefined
    const { store, concurrency } = this.#options
    try {
      while (!this.#stopped && this.#running.size < concurrency) {
        const task = store.claim()
        if (task === undefined) return
        void this.#execute(task)
      }
    } catch (error) {
      this.#retry(error, () => this.wake())
    }
  }

  async #execute(task: RunTask): Promise<void> {
    const controller = new AbortController()
    this.#running.add(controller)
    const outcome = await attempt(this.#options.processor, task, controller.signal)
    this.#end(task, outcome, controller)
  }

  /** Keeps the run's place until its end is stored: while the database fails, no heap of outcomes shall grow. */
  #end(task: RunTask, outcome: RunOutcome, controller: AbortController): void {
    if (this.#stopped) return
    try {
      this.#options.store.finish(task.run_id, outcome)
    } catch (error) {
      return this.#retry(error, () => this.#end(task, outcome, controller))
    }
    this.#running.delete(controller)
    this.#forget()
    this.wake()
  }

  #forget(): void {
    if (this.#stopped) return
    try {
      if (!this.#options.store.forgetCredentials()) this.#later(() => this.#forget())
    } catch (error) {
      this.#retry(error, () => this.#forget())
    }
  }

  #retry(error: unknown, step: () => void): void {
    this.#later(step)
    this.#options.onError(error)
  }

  #later(step: () => void): void {
    const cancel = this.#options.clock.schedule(PAUSE, () => {
      this.#retries.delete(cancel)
      step()
    })
    this.#retries.add(cancel)
  }
}

async function attempt(processor: Processor, task: RunTask, signal: AbortSignal): Promise<RunOutcome> {
  try {
    const { output, warnings = [] } = await processor.run(task, signal)
    if (!isObject(output)) throw new TypeError('the processor returned no output')
    // What cannot be written as JSON fails this run, and not the transaction that would store it.
    JSON.stringify([output, warnings])
    return { status: 'completed', output, warnings }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { status: 'failed', error: { ref_id: randomUUID(), message, details: null } }
  }
}
