import { checkId, checkOptions } from '../../protocol/check.ts'
import type { RunEvent } from '../../protocol/event.ts'
import type { Context } from '../context.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source, SourceOptions } from '../shapes/source.ts'
import { eventsOf } from '../shapes/stream-item.ts'
import { runItems } from './stream.ts'

/**
 * Emits the events of one run: its states, its progress and the messages of its trace; beyond the interface document. The
 * service closes the stream after 570 s and cannot resume it. This source reconnects, and emits each event once, in order.
 *
 * Completes after the state in which the run has ended. Errors with an `IncompleteStreamError` if the service does not send it.
 * The run must have been created with `enable_events`.
 */
export function runEvents(context: Context, runId: string, options: SourceOptions = {}): Source<RunEvent> {
  checkId('runId', runId)
  checkOptions('tasks.events', options, ['signal'])
  return sourceOf(eventsOf(runItems(context, runId)), options.signal)
}
