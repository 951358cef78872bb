const TIME = '2026-01-01T00:00:00.123456Z'

/** One event of a completed run (§4.5), as in a group's stream, with about this many bytes of JSON. */
export function runFrame(group: string, id: number, bytes: number): string {
  const event = {
    type: 'task_run.state',
    event_id: String(id),
    input: null,
    run: {
      run_id: `trun_${group}_${String(id).padStart(8, '0')}`,
      status: 'completed',
      is_active: false,
      warnings: null,
      error: null,
      processor: 'base',
      metadata: { row: id, note: '' },
      taskgroup_id: `tgrp_${group}`,
      created_at: TIME,
      modified_at: TIME,
    },
    output: outputOf(bytes),
  }
  event.run.metadata.note = 'n'.repeat(Math.max(0, bytes - JSON.stringify(event).length))
  return `id: ${id}\nevent: task_run.state\ndata: ${JSON.stringify(event)}\n\n`
}

/** As many fields with their basis (§2.3) as fit; none where the bytes are too few. */
function outputOf(bytes: number): unknown {
  const fields = Math.floor((bytes - 400) / 500)
  if (fields < 1) return null
  const names = Array.from({ length: fields }, (_, n) => `field_${n}`)
  return {
    type: 'json',
    content: Object.fromEntries(names.map((name) => [name, `The value of ${name}, in a few words`])),
    basis: names.map((field) => ({
      field,
      citations: [
        {
          url: `https://example.org/documents/${field}.html`,
          title: 'A page about it',
          excerpts: [
            'A sentence or two of the page, word for word, that say what the field says, and why. '.repeat(2),
          ],
        },
      ],
      reasoning: 'The page says so.',
      confidence: 'high',
    })),
  }
}

/** A group with only ended runs (§4.3). */
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

/** The status of a done group (§4.4), the only event of its events stream. */
export function statusFrame(events: number): string {
  const status = Object.assign({ type: 'task_group_status', event_id: '1' }, endedGroup(events))
  return `id: 1\nevent: task_group_status\ndata: ${JSON.stringify(status)}\n\n`
}
