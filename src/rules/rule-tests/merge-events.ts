import { logCompleteness, mergeDuplicates } from '../../log/store/completeness.ts'
import { isAtLeastAsComplete } from '../../protocol/event.ts'
import type { RuleInput } from '../evaluate/event-time.ts'
import type { Path } from '../rule-file/source.ts'

/** An event of a test. */
export interface WrittenEvent {
  readonly event: RuleInput
  /** Whether the test says its revision. Such an event is an entry of its own. */
  readonly isRevised: boolean
  /** Where it is written. */
  readonly path: Path
}

/** Events that are one event. */
export interface MergedEvents {
  readonly source: string
  readonly id: string
  /** How many there are. */
  count: number
  /** Where the second one is written. */
  readonly path: Path
}

interface Known {
  readonly event: RuleInput
  readonly completeness: number
  readonly revision: number
  merged: MergedEvents | undefined
}

/**
 * The entries that a log makes of events: it keeps events of the same source and id once, and a more complete one as the next revision.
 *
 * @param written In the order of their recording.
 */
export function mergeEvents(written: readonly WrittenEvent[]): {
  readonly events: readonly RuleInput[]
  readonly merged: readonly MergedEvents[]
} {
  const events: RuleInput[] = []
  const merged: MergedEvents[] = []
  const known = new Map<string, Known>()
  for (const { event, isRevised, path } of written) {
    const { source, id, recorded, backfill } = event
    const identity = JSON.stringify([source, id])
    const earlier = known.get(identity)
    const completeness = logCompleteness(event)
    if (earlier !== undefined && !isRevised && isAtLeastAsComplete(earlier.completeness, completeness)) {
      if (earlier.merged === undefined) merged.push((earlier.merged = { source, id, count: 1, path }))
      earlier.merged.count++
      continue
    }
    const revision = isRevised ? (event.revision ?? 1) : (earlier?.revision ?? 0) + 1
    const complete = earlier === undefined || isRevised ? event : mergeDuplicates(earlier.event, event)
    const entry: RuleInput = { ...complete, recorded, backfill, revision }
    events.push(entry)
    known.set(identity, {
      event: entry,
      completeness: completeness | (earlier?.completeness ?? 0),
      revision,
      merged: earlier?.merged,
    })
  }
  return { events, merged }
}
