import { envelope, isRun, isWellFormedText, runEvent, runSource, unknownEvent } from './event.ts'
import { isObject } from './json.ts'
import type { RunEvent, TaskRunState, Via } from './event.ts'
import { contentHash } from './identity.ts'
import type { RunProgressMessage, RunProgressStats } from './run-trace.ts'

/**
 * The event of a message of a run's own stream; beyond the interface document. `receivedAt` is Unix time in ms.
 *
 * The trace has no ids, so a message's id is made from its content. The client's stream appends `:2` to the id of the second message with
 * equal content, and so on.
 */
export function runTraceEvent(
  runId: string,
  wire: unknown,
  via: Via,
  receivedAt: number = Date.now(),
): Exclude<RunEvent, { readonly type: 'stream.oversized' }> {
  const source = runSource(runId)
  if (!isObject(wire)) return unknownEvent(source, wire, via, undefined, receivedAt)
  const { type } = wire
  const run = wire['run']
  if (type === 'task_run.state' && isRun(run) && run.run_id === runId)
    return runEvent(wire as unknown as TaskRunState, via, undefined, receivedAt)
  if (type === 'task_run.progress_stats') {
    const id = `${runId}:stats:${contentHash(wire)}`
    const data = wire as unknown as RunProgressStats
    return envelope('task_run.progress_stats', id, source, null, data, receivedAt, via, undefined)
  }
  if (isWellFormedText(type) && type.startsWith('task_run.progress_msg.')) {
    const time = isWellFormedText(wire['timestamp']) ? wire['timestamp'] : null
    const id = `${runId}:message:${contentHash(wire)}`
    const data = wire as unknown as RunProgressMessage
    return envelope('task_run.progress_msg', id, source, time, data, receivedAt, via, undefined)
  }
  const problem = wire['error']
  if (type === 'error' && isObject(problem)) {
    const ref = isWellFormedText(problem['ref_id']) ? problem['ref_id'] : contentHash(wire)
    const data = wire as unknown as Extract<RunEvent, { readonly type: 'error' }>['data']
    return envelope('error', `${runId}:error:${ref}`, source, null, data, receivedAt, via, undefined)
  }
  return unknownEvent(source, wire, via, undefined, receivedAt)
}
