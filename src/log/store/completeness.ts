import { completeness, isAtLeastAsComplete } from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { completenessOf, isCandidateChange, isRunState } from '../../protocol/identified.ts'
import type { Identified } from '../../protocol/identified.ts'

/** The fields beyond those of `completeness` that a copy of a run's event can have and another one lack, a bit each. */
const WARNINGS = 8
const GROUP = 16

/**
 * How complete an event is for a log, as bits to compare with those of a duplicate: `completeness`, and the run's warnings and group,
 * which some copies leave out (§2.7, §4.5). A log merges duplicates, so a copy that has only these loses nothing of the others.
 * `dedupe` cannot merge: it ignores them, or a copy with warnings and without output would follow the complete event.
 */
export function logCompleteness(event: Identified): number {
  if (!isRunState(event)) return completenessOf(event)
  const { warnings, taskgroup_id } = event.data.run
  const hasWarnings = Array.isArray(warnings) && warnings.length > 0
  return completeness(event) | (hasWarnings ? WARNINGS : 0) | (taskgroup_id == null ? 0 : GROUP)
}

/** A duplicate as complete as both: the second event, with what only the first has. */
export function mergeDuplicates(first: ResearchEvent, second: ResearchEvent): ResearchEvent {
  if (isCandidateChange(first) && isCandidateChange(second)) {
    const { output, basis } = first.data.data
    const candidate = second.data.data
    const complete = { ...candidate, output: candidate.output ?? output, basis: candidate.basis ?? basis }
    return { ...second, data: { ...second.data, data: complete } }
  }
  if (first.type !== 'task_run.state' || second.type !== 'task_run.state') return second
  const before = logCompleteness(first)
  if (isAtLeastAsComplete(logCompleteness(second), before)) return second
  const { run, input, output } = first.data
  const after = second.data.run
  const merged = {
    ...second.data,
    run: {
      ...after,
      error: after.error ?? run.error,
      ...(before & WARNINGS && !after.warnings?.length && { warnings: run.warnings }),
      ...(before & GROUP && { taskgroup_id: after.taskgroup_id ?? run.taskgroup_id }),
    },
    input: second.data.input ?? input,
    output: second.data.output ?? output,
  }
  return { ...second, data: merged }
}
