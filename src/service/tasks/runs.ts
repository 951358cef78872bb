import type { RunProgressMessage, RunProgressStats } from '../../protocol/run-trace.ts'
import type { CreateRunRequest, TaskRun, TaskRunResult } from '../../protocol/task.ts'
import { problem } from '../http/problem.ts'
import { unprocessable } from '../http/validation.ts'
import { newRun, type SchemaChecks, unknownInteractions } from './run-request.ts'
import type { TaskStore } from './task-store.ts'

/** Settings of {@link createRuns}. */
export interface RunsOptions {
  readonly store: TaskStore
  /** Checks the schemas of requests. */
  readonly checks: SchemaChecks
  /** Called before runs are added, with their number. An error that it throws is the response. */
  readonly beforeRuns: (count: number) => void
  /** Called when a run was added. */
  readonly onRuns: () => void
}

/** Single runs. A method throws an HttpProblem if a request is not possible. */
export interface Runs {
  /** Creates a run from a valid request. */
  create(input: CreateRunRequest, elementBasis: boolean): Promise<TaskRun>
  get(runId: string): TaskRun
  /** The result of a run that has completed. */
  result(runId: string): TaskRunResult
  /** Resolves when the run has ended, or the signal is aborted. */
  ended(runId: string, signal: AbortSignal): Promise<void>
  /** The progress of a run that sends it, until the run has ended or the signal is aborted. */
  progress(runId: string, signal: AbortSignal): AsyncGenerator<RunProgressMessage | RunProgressStats>
}

export function createRuns({ store, checks, beforeRuns, onRuns }: RunsOptions): Runs {
  function get(runId: string): TaskRun {
    const run = store.run(runId)
    if (run === undefined) throw problem(404, `Task run not found: ${runId}`)
    return run
  }

  return {
    get,

    async create(input, elementBasis) {
      const { run, issues } = await newRun(checks, input)
      const unknown = unknownInteractions(
        [input],
        (id) => store.isInteraction(id),
        () => ['body'],
      )
      if (issues.length + unknown.length > 0) throw unprocessable([...issues, ...unknown])
      beforeRuns(1)
      const added = store.addRun({ ...run, elementBasis })
      onRuns()
      return added
    },

    result(runId) {
      const run = get(runId)
      if (run.is_active) throw problem(408, `Task run ${runId} is still active`, { status: run.status })
      const output = store.output(runId)
      if (output === undefined) {
        throw problem(404, `Task run ${runId} has no result, as its status is ${run.status}`, { run })
      }
      return { run, output }
    },

    ended: (runId, signal) => untilEnded(store, runId, signal),

    async *progress(runId, signal) {
      let stats: RunProgressStats | undefined
      let messages = 0
      for await (const _ of store.changes.changes(runId, signal)) {
        const isOver = store.run(runId)?.is_active !== true
        const trace = store.trace(runId)
        if (trace !== undefined && trace.stats !== stats) yield (stats = trace.stats)
        for (const message of trace?.messages.slice(messages) ?? []) {
          messages += 1
          yield message
        }
        if (isOver) return
      }
    },
  }
}

/** Resolves when the run has ended, or does not exist, or the signal is aborted. */
export async function untilEnded(store: TaskStore, runId: string, signal: AbortSignal): Promise<void> {
  for await (const _ of store.changes.changes(runId, signal)) {
    if (store.run(runId)?.is_active !== true) return
  }
}
