import type { TaskOutput, TaskRun } from 'rivulet'

/** How a run ends. */
export interface RunScript {
  /** When, in ms. */
  readonly ends: number
  readonly status: 'completed' | 'failed' | 'cancelled'
  /** Whether a stream tells why it failed, as its webhook does. */
  readonly explained: boolean
}

/** When everything happens that nobody asks the time of. */
export const TIME = '2026-01-01T00:00:00Z'

/** The run as the service shows it once it has ended. */
export function endedRun(run_id: string, { status }: RunScript, explained: boolean): TaskRun {
  return {
    run_id,
    status,
    is_active: false,
    processor: 'base',
    // Characters of one to four bytes, to be cut in two.
    metadata: { note: 'aé€😀' },
    created_at: TIME,
    modified_at: TIME,
    ...(status === 'failed' && explained && { error: { message: 'no source' } }),
  }
}

/** What a run found. */
export function outputOf(run_id: string): TaskOutput {
  return { type: 'text', content: `found by ${run_id}`, basis: [] }
}
