import { groupEvent, monitorEvent, runEvent } from 'rivulet'
import type { ResearchEvent, RunStatus, TaskRun } from 'rivulet'
import type { WebhookDelivery } from 'rivulet/webhooks'

const TIME = '2026-01-01T00:00:00Z'

/** A run as the service returns it. */
export function taskRun(id: string, status: RunStatus = 'completed', more: Partial<TaskRun> = {}): TaskRun {
  return {
    run_id: id,
    status,
    is_active: false,
    processor: 'base',
    metadata: {},
    created_at: TIME,
    modified_at: TIME,
    ...more,
  }
}

/** The event of a completed run from a group's stream, with its output. */
export function fullRun(id: string): ResearchEvent {
  return runEvent(
    { run: taskRun(id), output: { type: 'text', content: `found by ${id}`, basis: [] } },
    'stream',
    `at-${id}`,
  )
}

/** The event of a completed run from a group's stream without `include_output`. */
export function bareRun(id: string): ResearchEvent {
  return runEvent({ run: taskRun(id) }, 'stream', `at-${id}`)
}

/** The event of a completed run from its webhook. */
export function webhookRun(id: string): ResearchEvent {
  return runEvent({ run: taskRun(id) }, 'webhook')
}

/** A change that a monitor found. */
export function change(id: string, monitor = 'm', via: 'poll' | 'webhook' = 'poll'): ResearchEvent {
  return monitorEvent(
    monitor,
    {
      event_type: 'event_stream',
      event_id: id,
      event_group_id: 'g',
      event_date: null,
      output: { type: 'text', content: id, basis: [] },
    },
    via,
  )
}

/** A status of a task group. */
export function groupStatus(id: string, group = 'g'): ResearchEvent {
  const status = {
    num_task_runs: 1,
    task_run_status_counts: { completed: 1 },
    is_active: false,
    status_message: '',
    modified_at: TIME,
  }
  return groupEvent(group, { type: 'task_group_status', event_id: id, status }, 'stream')
}

/** A webhook request with this body. */
export function delivery(payload: unknown): WebhookDelivery {
  return { id: 'msg', timestamp: 1_767_225_600, payload }
}

/** The webhook of a run that ended. */
export function runDelivery(run: TaskRun): WebhookDelivery {
  return delivery({ type: 'task_run.status', timestamp: TIME, data: run })
}

/** The thin webhook of a monitor that found something. */
export function detectedDelivery(group: string, monitor = 'm'): WebhookDelivery {
  return delivery(detected(group, monitor))
}

/** The body of a thin webhook. */
export function detected(group: string, monitor = 'm') {
  return {
    type: 'monitor.event.detected',
    timestamp: TIME,
    data: { monitor_id: monitor, event: { event_group_id: group } },
  }
}

/** The value without the `received` time of each event in it, which is not part of its identity. */
export function withoutReceived(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutReceived)
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value
  const entries = Object.entries(value).filter(([name]) => name !== 'received')
  return Object.fromEntries(entries.map(([name, entry]) => [name, withoutReceived(entry)]))
}
