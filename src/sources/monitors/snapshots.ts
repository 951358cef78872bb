import { concatMap } from 'rxjs'
import { checkOptions } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { EventOf } from '../../protocol/event.ts'
import type { FieldBasis, JsonOutput, TaskOutput } from '../../protocol/output.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import type { Context } from '../context.ts'
import { checkedOutput, OutputSchemaError, validatorOf } from '../shapes/answer-schema.ts'
import type { CheckedOutput } from '../shapes/answer-schema.ts'
import { checkedInOrder } from '../shapes/checked-in-order.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'
import { FOLLOW_OPTIONS, followMonitor } from './follow.ts'
import type { FollowMonitorOptions } from './follow.ts'

/** Options of `monitors.snapshots`, as for `monitors.follow`. `after` is the `cursor` of a snapshot's `event`. */
type MonitorSnapshotsOptions = Omit<FollowMonitorOptions, 'include_completions'>

/** Options of `monitors.snapshots` with a schema for the outputs. */
interface TypedMonitorSnapshotsOptions<Content> extends MonitorSnapshotsOptions {
  /** Validates the outputs before and after the change: the schema of the monitored run. It is not sent here. */
  readonly schema: AnswerSchema<Content>
}

/** A change in the output that a snapshot monitor tracks (§2.2). Each output is null if the service sent none. */
export interface MonitorSnapshot {
  /** The fields that changed, with their basis; a text output as a whole. */
  readonly changed: TaskOutput | null
  /** The whole output before the change. */
  readonly previous: TaskOutput | null
  /**
   * The whole output after the change: `previous` with the changed fields and their basis, without a field of which `changed`
   * has only the basis. Null if it is not known, since the fields of `changed` cannot be joined with `previous`, which is
   * missing or a text.
   */
  readonly current: TaskOutput | null
  readonly event: EventOf<'monitor.snapshot'>
}

/** A change whose outputs were validated with a schema. */
interface CheckedMonitorSnapshot<Content> extends Pick<MonitorSnapshot, 'changed' | 'event'> {
  /** Null if it is missing or does not match the schema. */
  readonly previous: CheckedOutput<Content> | null
  /** Null if it is not known or does not match the schema. */
  readonly current: CheckedOutput<Content> | null
  /** Set if `current`, or else `previous`, does not match the schema. The error has the output as received. */
  readonly misfit?: OutputSchemaError
}

/** `monitors.snapshots`. Its overloads are declared here since an inferred type has no comments for them. */
export interface MonitorSnapshots {
  /** Emits a snapshot monitor's output before and after each change, oldest first, until the monitor is cancelled. The schema types it. */
  <Content>(
    monitorId: string,
    options: TypedMonitorSnapshotsOptions<Content>,
  ): Source<CheckedMonitorSnapshot<Content>>
  /** Emits a snapshot monitor's output before and after each change, oldest first, until the monitor is cancelled. */
  (monitorId: string, options?: MonitorSnapshotsOptions): Source<MonitorSnapshot>
}

/**
 * Creates `monitors.snapshots`, which emits the output of a snapshot monitor before and after each change, oldest first, each
 * once. It follows the monitor as `monitors.follow` does, of whose events it emits only the snapshots: a failed execution and
 * a `stream.gap` are not among them. After a gap, `previous` shows the changes in between.
 */
export function createSnapshots(context: Context): MonitorSnapshots {
  function snapshots<Content>(
    monitorId: string,
    options: TypedMonitorSnapshotsOptions<Content>,
  ): Source<CheckedMonitorSnapshot<Content>>
  function snapshots(monitorId: string, options?: MonitorSnapshotsOptions): Source<MonitorSnapshot>
  function snapshots(
    monitorId: string,
    options: MonitorSnapshotsOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): Source<MonitorSnapshot | CheckedMonitorSnapshot<unknown>> {
    const names = FOLLOW_OPTIONS.filter((name) => name !== 'include_completions')
    checkOptions('options', options, [...names, 'schema'])
    const { schema, signal, ...own } = options
    const changes = followMonitor(context, monitorId, own).pipe(
      concatMap((event) => (event.type === 'monitor.snapshot' ? [snapshotOf(event)] : [])),
    )
    if (schema === undefined) return sourceOf(changes, signal)
    validatorOf(schema)
    const checked = checkedInOrder(changes, (snapshot) => checkedSnapshot(schema, snapshot))
    return sourceOf(checked, signal)
  }
  return snapshots
}

function snapshotOf(event: EventOf<'monitor.snapshot'>): MonitorSnapshot {
  const changed = outputIn(event.data.changed_output)
  const previous = outputIn(event.data.previous_output)
  return { changed, previous, current: joined(previous, changed), event }
}

/** The value as an output; null if its content does not fit its type. */
function outputIn(output: unknown): TaskOutput | null {
  if (!isObject(output)) return null
  const { type, content } = output
  const isOutput = (type === 'text' && typeof content === 'string') || (type === 'json' && isObject(content))
  return isOutput ? (output as unknown as TaskOutput) : null
}

/** The output after a change; null if it is not known. */
function joined(previous: TaskOutput | null, changed: TaskOutput | null): TaskOutput | null {
  if (changed === null || changed.type === 'text') return changed
  return previous?.type === 'json' ? joinedFields(previous, changed) : null
}

function joinedFields(previous: JsonOutput, changed: JsonOutput): JsonOutput {
  const newBasis = basisOf(changed)
  const changedFields = new Set([...Object.keys(changed.content), ...newBasis.map(({ field }) => field)])
  const kept = basisOf(previous).filter(
    ({ field }) => !changedFields.has(field) && !changedFields.has(topLevelOf(field)),
  )
  // A field whose basis changed, and which has no value now, is no longer in the output.
  const disappeared = new Set(newBasis.map(({ field }) => field))
  const remaining = Object.entries(previous.content).filter(([field]) => !disappeared.has(field))
  return {
    ...previous,
    ...changed,
    content: { ...Object.fromEntries(remaining), ...changed.content },
    basis: [...kept, ...newBasis],
  }
}

/** The entries of a basis that name their field. */
function basisOf({ basis }: TaskOutput): readonly FieldBasis[] {
  // Checked as unknown, since a service may send anything.
  const given: unknown = basis
  if (!Array.isArray(given)) return []
  return given.filter((entry: unknown) => isObject(entry) && typeof entry['field'] === 'string')
}

/** The top-level field of a basis: `founders` of `founders.0.name` and of `founders[0]`. */
function topLevelOf(field: string): string {
  return field.split(/[.[]/, 1)[0] ?? field
}

type MaybePromise<T> = T | Promise<T>

function checkedSnapshot<Content>(
  schema: AnswerSchema<Content>,
  { changed, previous, current, event }: MonitorSnapshot,
): MaybePromise<CheckedMonitorSnapshot<Content>> {
  const check = (output: TaskOutput | null) => (output === null ? null : checkedOutput(schema, output))
  const before = check(previous)
  const after = check(current)
  type Outcome = CheckedOutput<Content> | OutputSchemaError | null
  const combine = (one: Outcome, other: Outcome): CheckedMonitorSnapshot<Content> => {
    const misfit = [other, one].find((outcome) => outcome instanceof OutputSchemaError)
    return {
      changed,
      previous: one instanceof OutputSchemaError ? null : one,
      current: other instanceof OutputSchemaError ? null : other,
      event,
      ...(misfit !== undefined && { misfit }),
    }
  }
  if (!(before instanceof Promise) && !(after instanceof Promise)) return combine(before, after)
  return Promise.all([before, after]).then(([one, other]) => combine(one, other))
}
