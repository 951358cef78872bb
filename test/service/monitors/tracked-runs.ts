import type { TaskOutput } from '../../../src/protocol/output.ts'
import type { Processor, ProcessorTask } from '../../../src/service/processor/processor.ts'
import type { CompletedRun } from '../../../src/service/tasks/task-store.ts'

/** Runs that snapshot monitors track, and the processor that repeats them. A test changes what the next run returns. */
export class TrackedRuns implements Processor {
  /** Completed runs by their ids. */
  readonly completed = new Map<string, CompletedRun>()
  /** Every executed task. */
  readonly tasks: ProcessorTask[] = []
  /** The signal of every executed task. */
  readonly signals: AbortSignal[] = []
  /** The output of the next run, or the error that it throws. */
  next: TaskOutput | Error = text('not set')
  #held: Promise<void> = Promise.resolve()

  /** Adds a completed run. The next run has the same output. */
  add(runId: string, output: TaskOutput, input: Partial<CompletedRun['input']> = {}): void {
    this.completed.set(runId, {
      input: { input: 'Solid Cells AG', processor: 'base', ...input },
      context: [],
      output,
    })
    this.next = output
  }

  /** Blocks every run, which then ignores its signal, until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held = promise
    return resolve
  }

  readonly run: Processor['run'] = async (task, signal) => {
    this.tasks.push(task)
    this.signals.push(signal)
    await this.#held
    if (this.next instanceof Error) throw this.next
    return { output: this.next }
  }
}

/** A text output. */
export function text(content: string, url = 'https://example.org/'): TaskOutput {
  return { type: 'text', content, basis: [basis('output', url)] }
}

/** A JSON output with a basis for each field. */
export function json(content: Readonly<Record<string, unknown>>, url = 'https://example.org/'): TaskOutput {
  return { type: 'json', content, basis: Object.keys(content).map((field) => basis(field, url)) }
}

/** The basis of a field with one citation. */
export function basis(field: string, url = 'https://example.org/') {
  return { field, reasoning: `Stated by ${url}`, citations: [{ url }], confidence: 'high' }
}
