import { checkId, checkOptions } from '../../protocol/check.ts'
import { runSource } from '../../protocol/event.ts'
import type { RunEvent } from '../../protocol/event.ts'
import type { CreateRunRequest, RunInput, TaskRun } from '../../protocol/task.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, Source, SourceOptions } from '../shapes/source.ts'
import { prepareRun, sendRun } from './create.ts'
import type { CreateRunOptions } from './create.ts'
import { runEvents } from './events.ts'
import { runAt } from './read.ts'
import { createResult } from './result.ts'
import { createRunTask } from './run.ts'

/** The calls of single runs; beyond the interface document. */
export interface TaskCalls extends ReturnType<typeof taskCalls> {}

/** Creates `client.tasks`. */
export function taskCalls(context: Context) {
  return {
    run: createRunTask(context),
    /**
     * Creates a run and emits it as it was created. Never creates two: a request that the service may have acted on is not sent
     * again, and errors with an `UncertainRunError`.
     */
    create(request: CreateRunRequest, options: CreateRunOptions = {}): AwaitableSource<TaskRun> {
      checkOptions('tasks.create', options, ['schema', 'basisPerElement', 'signal'])
      return awaitable(sendRun(context, prepareRun(context, request, options)), options.signal)
    },
    /** Reads a run. */
    get(runId: string, options: SourceOptions = {}): AwaitableSource<TaskRun> {
      checkId('runId', runId)
      checkOptions('tasks.get', options, ['signal'])
      return awaitable(runAt(context, runSource(runId), runId), options.signal)
    },
    /** Reads the input of a run. */
    input(runId: string, options: SourceOptions = {}): AwaitableSource<RunInput> {
      checkId('runId', runId)
      checkOptions('tasks.input', options, ['signal'])
      const request = { method: 'GET', path: `${runSource(runId)}/input`, idempotent: true } as const
      return awaitable(requestShape<RunInput>(context, request), options.signal)
    },
    result: createResult(context),
    /** Emits the states, the progress and the messages of a run, each once, until it has ended. */
    events(runId: string, options?: SourceOptions): Source<RunEvent> {
      return runEvents(context, runId, options)
    },
  }
}
