import type { RunEvent } from '../../protocol/event.ts'
import { runSource } from '../../protocol/event.ts'
import type { CreateRunRequest, RunInput, TaskRun, TaskRunResult } from '../../protocol/task.ts'
import type { Context } from '../context.ts'
import { reportRunAhead } from '../shapes/run-ahead.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { createRun } from './create.ts'
import type { CreateRunOptions } from './create.ts'
import { runEvents } from './events.ts'
import { getRun, getRunInput } from './read.ts'
import { createResult } from './result.ts'
import type { CheckedRunResult, RunResultOptions, TypedRunResultOptions } from './result.ts'
import { createRunTask } from './run.ts'
import type { RunTaskOptions, TypedRunTaskOptions } from './run.ts'

/** The calls of single runs; beyond the interface document. */
export interface TaskCalls {
  /** Creates a run, emits its events and completes with it; an `await` returns its result. The schema types the output. */
  run<Content>(
    input: string | CreateRunRequest,
    options: TypedRunTaskOptions<Content>,
  ): AwaitableSource<RunEvent, CheckedRunResult<Content>>
  /** Creates a run, emits its events and completes with it; an `await` returns its result. */
  run(input: string | CreateRunRequest, options?: RunTaskOptions): AwaitableSource<RunEvent, TaskRunResult>
  /** Creates a run and emits it as it was created. */
  create(request: CreateRunRequest, options?: CreateRunOptions): AwaitableSource<TaskRun>
  /** Reads a run. */
  get(runId: string, options?: SourceOptions): AwaitableSource<TaskRun>
  /** Reads the input of a run. */
  input(runId: string, options?: SourceOptions): AwaitableSource<RunInput>
  /** Emits the result of a run when it has completed. The schema validates and types the output. */
  result<Content>(
    runId: string,
    options: TypedRunResultOptions<Content>,
  ): AwaitableSource<CheckedRunResult<Content>>
  /** Emits the result of a run when it has completed. */
  result(runId: string, options?: RunResultOptions): AwaitableSource<TaskRunResult>
  /** Emits the states, the progress and the messages of a run, each once, until it has ended. */
  events(runId: string, options?: SourceOptions): Source<RunEvent>
}

/** Creates the calls of single runs. */
export function taskCalls(context: Context): TaskCalls {
  return {
    run: createRunTask(context),
    create: (request, own) => createRun(context, request, own),
    get: (id, own) => getRun(context, id, own),
    input: (id, own) => getRunInput(context, id, own),
    result: createResult(context),
    events: (id, own) => reportRunAhead(context, runEvents(context, id, own), runSource(id)),
  }
}
