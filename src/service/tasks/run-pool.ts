import type { Clock } from '../clock.ts'
import type { Processor, ProcessorTask } from '../processor/processor.ts'
import type { ProcessorSlots } from '../processor/slots.ts'
import { attempt } from './attempt.ts'
import type { ClaimedRun, RunOutcome, TaskStore } from './task-store.ts'

/** How long to wait when the database fails, in ms of the clock. */
const PAUSE = 5_000

/** Settings of {@link RunPool}. */
export interface RunPoolOptions {
  readonly store: TaskStore
  readonly clock: Clock
  readonly processor: Processor
  /** The executions in flight, of runs and of requests. */
  readonly slots: ProcessorSlots
  /** Called when the database fails; the operation is retried 5 s later. */
  readonly onError: (error: unknown) => void
}

/** Executes queued runs, oldest first, with bounded concurrency. */
export class RunPool {
  readonly #options: RunPoolOptions
  /** Aborts each run in flight, until its outcome is stored. */
  readonly #running = new Set<AbortController>()
  /** Cancel pending retries of database operations. */
  readonly #retries = new Set<() => void>()
  #stopped = false
  #scheduled: NodeJS.Immediate | undefined

  constructor(options: RunPoolOptions) {
    this.#options = options
    options.slots.onFree(() => this.wake())
  }

  /** Starts to execute runs, including those that an earlier process did not finish. */
  start(): void {
    this.#options.store.requeue()
    this.wake()
  }

  /** Starts queued runs. Called when runs were added. */
  wake(): void {
    // Yields to the event loop between runs, so that a synchronous processor does not block requests.
    if (!this.#stopped) this.#scheduled ??= setImmediate(() => this.#fill())
  }

  /** Aborts running runs and queues them again. Does not wait for processors that ignore their signal. */
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
    const { store, slots } = this.#options
    try {
      while (!this.#stopped && slots.isFree) {
        const task = store.claim()
        if (task === undefined) return
        slots.take()
        void this.#execute(task)
      }
    } catch (error) {
      this.#retry(error, () => this.wake())
    }
  }

  async #execute(claimed: ClaimedRun): Promise<void> {
    const controller = new AbortController()
    this.#running.add(controller)
    const task = { ...claimed, report: this.#reporter(claimed.run_id) }
    task.report({ message: { kind: 'exec_status', text: 'The run has started' } })
    const outcome = await attempt(this.#options.processor, task, controller.signal)
    this.#end(task, outcome, controller)
  }

  /** Adds reports to the run's trace. An invalid report of a processor does not fail its run. */
  #reporter(runId: string): ProcessorTask['report'] {
    return (progress) => {
      if (this.#stopped) return
      try {
        this.#options.store.report(runId, progress)
      } catch (error) {
        this.#options.onError(error)
      }
    }
  }

  /** Stores the outcome. The run counts as in flight until then, so that outcomes do not pile up while the database fails. */
  #end(task: ProcessorTask, outcome: RunOutcome, controller: AbortController): void {
    if (this.#stopped) return
    try {
      this.#options.store.finish(task.run_id, outcome)
    } catch (error) {
      return this.#retry(error, () => this.#end(task, outcome, controller))
    }
    this.#running.delete(controller)
    this.#forgetCredentials()
    this.#options.slots.release()
  }

  #forgetCredentials(): void {
    if (this.#stopped) return
    try {
      if (!this.#options.store.forgetCredentials()) this.#later(() => this.#forgetCredentials())
    } catch (error) {
      this.#retry(error, () => this.#forgetCredentials())
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
