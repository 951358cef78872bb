import type { TaskOutput, TaskRun } from 'rivulet'

/** The script of a run's end. */
export interface RunScript {
  /** The time, in ms. */
  readonly ends: number
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** Whether the stream has the reason of a failure, as its webhook does. */
  readonly explained: boolean
}

/** The timestamp of everything whose time does not matter. */
export const TIME = '2026-01-01T00:00:00Z'

/** The run after its end, as the service returns it. */
export function endedRun(run_id: string, { status }: RunScript, explained: boolean): TaskRun {
  return {
    run_id,
    status,
    is_active: false,
    processor: 'base',
    // Characters of one to four bytes, to be split.
    metadata: { note: 'aé€😀' },
    created_at: TIME,
    modified_at: TIME,
    ...(status === 'failed' && explained && { error: { message: 'no source' } }),
  }
}

/** The output of a run. */
export function outputOf(run_id: string): TaskOutput {
  return { type: 'text', content: `found by ${run_id}`, basis: [] }
}
