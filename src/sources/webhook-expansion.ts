import { concatMap, filter, first, map, reduce, repeat, timer } from 'rxjs'
import type { MonoTypeOperatorFunction, Observable } from 'rxjs'
import { backoffDelay } from '../protocol/backoff.ts'
import { isRun, monitorEvent, runEvent, runSource } from '../protocol/event.ts'
import type { ResearchEvent, TaskRunState } from '../protocol/event.ts'
import type { TaskRun } from '../protocol/task.ts'
import { ProtocolError } from '../transport/errors.ts'
import type { Context, Diagnostic } from './context.ts'
import { monitorPages } from './monitors/pages.ts'
import { requestShape } from './shapes/request.ts'
import { withReconnect } from './shapes/with-reconnect.ts'

/** How many times an empty list of an execution is requested again. */
const EMPTY_LIST_RETRIES = 3

/**
 * Emits the events of one execution of a monitor (§4.1), oldest first, as a poll would. The webhook may be ahead of the list,
 * so an empty list is requested again with backoff.
 *
 * @param request Wraps each request, to limit how many are made at once.
 */
export function executionEvents(
  context: Context,
  monitorId: string,
  event_group_id: string,
  request: MonoTypeOperatorFunction<readonly ResearchEvent[]> = (each) => each,
): Observable<ResearchEvent> {
  const { backoff, random, scheduler } = context
  return monitorPages(context, monitorId, { event_group_id }).pipe(
    map((page) => page.events.map((wire) => monitorEvent(monitorId, wire, 'webhook', scheduler.now()))),
    reduce((newer, older) => [...newer, ...older], [] as readonly ResearchEvent[]),
    request,
    repeat({
      count: 1 + EMPTY_LIST_RETRIES,
      delay: (times) => timer(backoffDelay(times - 1, backoff, random), scheduler),
    }),
    first((events) => events.length > 0, []),
    concatMap((events) => events.toReversed()),
  )
}

/** Fetches the complete event of an ended run, with its output; beyond the interface document. */
export function runResult(context: Context, run: TaskRun): Observable<ResearchEvent> {
  const { run_id } = run
  const expected = runEvent({ run }, 'webhook')
  const call = {
    method: 'GET',
    path: `${runSource(run_id)}/result`,
    query: { timeout: 1 },
    idempotent: true,
  } as const
  return requestShape<TaskRunState>(context, call).pipe(
    map((result) => {
      if (!isRun(result.run) || result.run.run_id !== run_id)
        throw new ProtocolError('the response does not have this run', call, { retryable: false })
      return runEvent(result, 'poll', undefined, context.scheduler.now())
    }),
    // The run may have reached another status meanwhile: that is another event, with its own stream or webhook.
    filter(({ id }) => id === expected.id),
  )
}

/** Retries an expansion with backoff. The diagnostics say that a webhook waits for it. */
export function retriedExpansion<T>(context: Context, source: string): MonoTypeOperatorFunction<T> {
  const report = (diagnostic: Diagnostic) =>
    context.report(diagnostic.kind === 'reconnect' ? { ...diagnostic, kind: 'expansion_retry' } : diagnostic)
  return withReconnect({ ...context, report }, source)
}
