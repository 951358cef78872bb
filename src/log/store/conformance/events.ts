import { groupEvent, monitorEvent, runEvent } from '../../../protocol/event.ts'
import type { ResearchEvent } from '../../../protocol/event.ts'
import type { RunStatus, TaskRun } from '../../../protocol/task.ts'

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

/** The event of a completed run, with its output or without. */
export function completedRun(id: string, content?: string): ResearchEvent {
  const output = content === undefined ? undefined : { type: 'text' as const, content, basis: [] }
  return runEvent({ run: taskRun(id), ...(output && { output }) }, 'stream', `at-${id}`)
}

/** The event of a completed run with its output. */
export function fullRun(id: string): ResearchEvent {
  return completedRun(id, `found by ${id}`)
}

/** A change that a monitor found. */
export function change(id: string, monitor = 'm'): ResearchEvent {
  const output = { type: 'text' as const, content: id, basis: [] }
  return monitorEvent(
    monitor,
    { event_type: 'event_stream', event_id: id, event_group_id: 'g', event_date: null, output },
    'poll',
  )
}

/** A status of a task group. */
export function groupStatus(id: string): ResearchEvent {
  const status = {
    num_task_runs: 1,
    task_run_status_counts: { completed: 1 },
    is_active: false,
    status_message: '',
    modified_at: TIME,
  }
  return groupEvent('g', { type: 'task_group_status', event_id: id, status }, 'stream')
}
