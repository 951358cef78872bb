import type { GroupRunRow } from '../rows.ts'

/** The ids of the runs for the input of a row: the first attempt first, and the one that it shows last. */
export function attemptIds({ run, attempt }: GroupRunRow): readonly [first: string, ...others: string[]] {
  return attempt === undefined ? [run.run_id] : [attempt.first, ...(attempt.others ?? []), run.run_id]
}
