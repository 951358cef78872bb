import { isObject, parseJson } from '../../protocol/json.ts'
import { holdsOf, holdsText } from '../../streams/holds.ts'
import type { Position } from '../store/contract.ts'
import { LogError } from '../errors.ts'
import type { Inputs, ProcessTime, ReportedProgress } from './inputs.ts'

/** The checkpoint of a process beside its cursor. */
export interface Progress extends ProcessTime {
  readonly version: number
  /** What this version computes, if it is a definition. */
  readonly shape?: string | undefined
  /** The `lateness` of the process, in ms. */
  readonly lateness?: number | undefined
  /** The position at which the process began, and begins again when it is rebuilt. */
  readonly start: Position
  /** The position up to which an earlier version has appended output, while the state is rebuilt. */
  readonly rebuild?: Position | undefined
  /** The progress within an entry whose keys are committed in several commits. */
  readonly within?: WithinEntry | undefined
  /** The migration that has begun: states up to `after` are migrated, and those up to `until` will be. */
  readonly migration?: Migration | undefined
}

/** A migration that has begun. Positions are those of the process. */
export interface Migration {
  readonly from: number
  readonly after: Position
  readonly until: Position
}

/** How far a process has come within an entry of several keys. */
export interface WithinEntry {
  /** Position of the entry, which is the next one after the cursor. The progress is void if the entry is deleted meanwhile. */
  readonly position: Position
  /** The keys up to this one, in the order of texts, are processed. Their order stays the same when `key` changes. */
  readonly key: string
  /** Whether it is a `log.gap`, which has the position of the last entry that was deleted. */
  readonly isGap: boolean
}

/** The progress as the text that a commit stores. */
export function checkpointOf({ clocks, inputs, ...progress }: Progress): string {
  return JSON.stringify({
    ...progress,
    clocks: [storedTime(clocks.event), storedTime(clocks.recorded), clocks.complete],
    ...(clocks.holds.size > 0 && { holds: holdsText(clocks.holds) }),
    inputs: inputs && {
      ticks: storedReport(inputs.ticks),
      processes: Array.from(inputs.processes, ([name, reported]) => [name, storedReport(reported)]),
    },
  })
}

/** Reads the text of {@link checkpointOf}. */
export function progressOf(process: string, checkpoint: string): Progress {
  const parsed = parseJson(checkpoint)
  if (isObject(parsed) && typeof parsed['version'] === 'number' && typeof parsed['start'] === 'string') {
    const { version, shape, lateness, start, clocks, holds, inputs, rebuild, migration, within } = parsed
    const [event, recorded, complete] = Array.isArray(clocks) ? clocks : []
    return {
      version,
      shape: typeof shape === 'string' ? shape : undefined,
      lateness: typeof lateness === 'number' ? lateness : undefined,
      start,
      clocks: {
        event: timeOf(event),
        recorded: timeOf(recorded),
        complete: complete !== false,
        holds: holdsOf(holds),
      },
      inputs: inputsOf(inputs),
      rebuild: typeof rebuild === 'string' ? rebuild : undefined,
      migration: migrationOf(migration),
      within: withinOf(within),
    }
  }
  throw new LogError(
    `what the log has of the process ${JSON.stringify(process)} cannot be read: remove it with log.remove to begin anew`,
  )
}

/** The watermark in the text of {@link checkpointOf}, in Unix ms; -Infinity before the first tick, and for a text that cannot be read. */
export function watermarkOf(checkpoint: string): number {
  const parsed = parseJson(checkpoint)
  const { clocks, lateness }: Record<string, unknown> = isObject(parsed) ? parsed : {}
  const [event] = Array.isArray(clocks) ? clocks : []
  return Math.floor(timeOf(event) - (typeof lateness === 'number' ? lateness : 0))
}

/**
 * The checkpoint of a process with other positions, for a copy of its log: `entry` maps the positions of entries, and `change` those of the process.
 *
 * @throws LogError for a checkpoint that cannot be read.
 */
export function movedCheckpoint(
  process: string,
  checkpoint: string,
  { entry, change }: Readonly<Record<'entry' | 'change', (position: Position) => Position>>,
): string {
  const { start, rebuild, within, migration, ...rest } = progressOf(process, checkpoint)
  return checkpointOf({
    ...rest,
    start: entry(start),
    rebuild: rebuild && entry(rebuild),
    within: within && { ...within, position: entry(within.position) },
    migration: migration && { ...migration, after: change(migration.after), until: change(migration.until) },
  })
}

/** The stored time of a process that was removed: JSON has no infinity. */
const REMOVED = 'removed'

function storedTime(time: number): number | string | null {
  if (Number.isFinite(time)) return time
  return time > 0 ? REMOVED : null
}

function timeOf(value: unknown): number {
  if (value === REMOVED) return Infinity
  return typeof value === 'number' ? value : -Infinity
}

function storedReport({ through, complete }: ReportedProgress) {
  return [storedTime(through), complete] as const
}

function reportOf(value: unknown): ReportedProgress {
  const [through, complete] = Array.isArray(value) ? value : []
  return { through: timeOf(through), complete: complete !== false }
}

function inputsOf(value: unknown): Inputs | undefined {
  if (!isObject(value)) return undefined
  const { ticks, processes } = value
  const known = Array.isArray(processes) ? processes : []
  return {
    ticks: reportOf(ticks),
    processes: new Map(known.map(([name, reported]) => [String(name), reportOf(reported)])),
  }
}

function withinOf(value: unknown): WithinEntry | undefined {
  if (!isObject(value)) return undefined
  const { position, key, isGap = false } = value
  if (typeof position !== 'string' || typeof key !== 'string') return undefined
  return { position, key, isGap: isGap === true }
}

function migrationOf(value: unknown): Migration | undefined {
  if (!isObject(value)) return undefined
  const { from, after, until } = value
  if (typeof from !== 'number' || typeof after !== 'string' || typeof until !== 'string') return undefined
  return { from, after, until }
}
