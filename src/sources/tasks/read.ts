import { map } from 'rxjs'
import type { Observable } from 'rxjs'
import { isRun } from '../../protocol/event.ts'
import type { TaskRun } from '../../protocol/task.ts'
import { ProtocolError } from '../../transport/errors.ts'
import type { Context } from '../context.ts'
import { requestShape } from '../shapes/request.ts'

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
