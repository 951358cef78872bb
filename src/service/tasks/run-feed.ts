import { batchOf, NO_EVENTS, sseFrame } from '../../http/server-sent-events.ts'
import type { TaskOutput } from '../../protocol/output.ts'
import type { RunProgressStats } from '../../protocol/run-trace.ts'
import type { TaskRun } from '../../protocol/task.ts'
import type { EventFeed } from '../http/event-stream.ts'
import type { StoredTrace } from './run-trace.ts'
import type { TaskStore } from './task-store.ts'

/** Length at which a batch of messages ends, in characters; the message that reaches it is still part of the batch. */
const BATCH_CHARACTERS = 64 * 1024

/**
 * The events of one run (beyond the interface document): its state first and at each change of status, with the output at
 * its end; its current statistics; and the whole trace of its execution. It has no positions, since it cannot be resumed.
 */
export function runFeed(store: TaskStore, runId: string): EventFeed {
  let status: TaskRun['status'] | undefined
  let stats: RunProgressStats | undefined
  let messages = 0
  let ended = false
  /** The trace of a run that has ended, which does not change. */
  let stored: StoredTrace | undefined

  return {
    next() {
      const run = store.run(runId)
      if (ended || run === undefined) return NO_EVENTS
      const trace = (stored ??= store.trace(runId))
      if (run.is_active) stored = undefined
      const output = run.is_active ? undefined : store.output(runId)

      const frames: string[] = []
      // Without an `id`, which a client would resume from.
      const send = (event: { readonly type: string }) =>
        frames.push(sseFrame({ event: event.type, data: JSON.stringify(event) }))
      // The state of an ended run is sent before its trace too, which follows on every connection.
      if (status === undefined || (run.is_active && run.status !== status)) {
        const isOnly = !run.is_active && trace === undefined
        status = run.status
        send(stateEvent(run, output))
        ended = isOnly
        if (ended) return batchOf(frames)
      }
      if (trace !== undefined && trace.stats !== stats) {
        stats = trace.stats
        send(stats)
      }
      let characters = 0
      for (const message of trace?.messages.slice(messages) ?? []) {
        if (characters >= BATCH_CHARACTERS) return batchOf(frames)
        messages += 1
        characters += message.message.length
        send(message)
      }
      if (!run.is_active) {
        ended = true
        send(stateEvent(run, output))
      }
      return batchOf(frames)
    },
    get ended() {
      return ended
    },
    onMore: (listener) => store.changes.on(runId, listener),
  }
}

function stateEvent(run: TaskRun, output: TaskOutput | undefined) {
  return { type: 'task_run.state', event_id: null, run, ...(output !== undefined && { output }) }
}
