import { randomUUID } from 'node:crypto'
import type { Processor, RunTask } from '../processor/processor.ts'
import { isObject } from '../../protocol/event.ts'
import type { RunOutcome, TaskStore } from './task-store.ts'

/** Carries out the queued runs, oldest first and so many at once. */
export class RunPool {
  readonly #store: TaskStore
  readonly #processor: Processor
  readonly #concurrency: number
  readonly #onError: (error: unknown) => void
  readonly #running = new Set<AbortController>()
  #stopped = false
  #scheduled: NodeJS.Immediate | undefined

  /** @param onError hears of runs whose end could not be stored; they stay as they are until the next start. */
  constructor(
    store: TaskStore,
    processor: Processor,
    concurrency: number,
    onError: (error: unknown) => void,
  ) {
    this.#store = store
    this.#processor = processor
    this.#concurrency = concurrency
    this.#onError = onError
  }

  /** Takes up also what an earlier process had begun and not ended. */
  start(): void {
    this.#store.requeue()
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
    for (const controller of this.#running) controller.abort()
    this.#store.requeue()
  }

  #fill(): void {
    this.#scheduled = undefined
    try {
      while (!this.#stopped && this.#running.size < this.#concurrency) {
        const task = this.#store.claim()
        if (task === undefined) return
        void this.#execute(task)
      }
    } catch (error) {
      this.#onError(error)
    }
  }

  async #execute(task: RunTask): Promise<void> {
    const controller = new AbortController()
    this.#running.add(controller)
    const outcome = await attempt(this.#processor, task, controller.signal)
    this.#running.delete(controller)
    if (this.#stopped) return
    try {
      this.#store.finish(task.run_id, outcome)
    } catch (error) {
      this.#onError(error)
    }
    this.wake()
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
