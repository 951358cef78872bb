import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { checkId, checkOptions } from '../../protocol/check.ts'
import { isRun, runSource } from '../../protocol/event.ts'
import type { RunInput, TaskRun } from '../../protocol/task.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'
import { awaitable } from '../shapes/source.ts'
import type { AwaitableSource, SourceOptions } from '../shapes/source.ts'

/** Reads a run; beyond the interface document. */
export function getRun(
  context: Context,
  runId: string,
  options: SourceOptions = {},
): AwaitableSource<TaskRun> {
  checkId('runId', runId)
  checkOptions('tasks.get', options, ['signal'])
  return awaitable(runAt(context, runSource(runId), runId), options.signal)
}

/** Reads the run at this path. */
export function runAt(context: Context, path: string, runId: string): Observable<TaskRun> {
  const request = { method: 'GET', path, idempotent: true } as const
  return requestShape<TaskRun>(context, request).pipe(
    map((run) => {
      if (!isRun(run) || run.run_id !== runId)
        throw new ProtocolError('the response is not this run', request)
      return run
    }),
  )
}

/** Reads the input of a run; beyond the interface document. */
export function getRunInput(
  context: Context,
  runId: string,
  options: SourceOptions = {},
): AwaitableSource<RunInput> {
  checkId('runId', runId)
  checkOptions('tasks.input', options, ['signal'])
  const request = { method: 'GET', path: `${runSource(runId)}/input`, idempotent: true } as const
  return awaitable(requestShape<RunInput>(context, request), options.signal)
}
