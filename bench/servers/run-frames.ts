const TIME = '2026-01-01T00:00:00Z'

/** One event of a run that completed (§4.5), as it stands in a group's stream, its output as long as makes up the bytes. */
export function runFrame(group: string, id: number, bytes: number): string {
  const event = {
    type: 'task_run.state',
    event_id: String(id),
    run: {
      run_id: `trun_${group}_${String(id).padStart(8, '0')}`,
      status: 'completed',
      is_active: false,
      processor: 'base',
      metadata: {},
      created_at: TIME,
      modified_at: TIME,
    },
    output: { type: 'text', content: '', basis: [] },
  }
  event.output.content = 'x'.repeat(Math.max(0, bytes - JSON.stringify(event).length))
  return `id: ${id}\nevent: task_run.state\ndata: ${JSON.stringify(event)}\n\n`
}

/** A group whose runs have all ended (§4.3). */
export function endedGroup(events: number): unknown {
  return {
    taskgroup_id: 'g',
    metadata: {},
    created_at: TIME,
    status: {
      num_task_runs: events,
      task_run_status_counts: { completed: events },
      is_active: false,
      status_message: '',
      modified_at: TIME,
    },
  }
}
