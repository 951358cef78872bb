import { checkOptions } from '../../protocol/check.ts'
import type { Envelope, EventOf, GroupRunEvent, TaskRunState } from '../../protocol/event.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { checkedOutput, OutputSchemaError, validatorOf } from '../shapes/answer-schema.ts'
import type { CheckedOutput } from '../shapes/answer-schema.ts'
import type { Context } from '../context.ts'
import { GROUP_RUNS_OPTIONS, groupRuns } from './runs.ts'
import type { GroupRunsOptions } from './runs.ts'
import { checkedInOrder } from '../shapes/checked-in-order.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'

/** Options of `taskGroups.runs` with a schema for the outputs. */
interface TypedGroupRunsOptions<Content> extends GroupRunsOptions {
  /**
   * Validates each output: the schema whose `outputSchema(schema)` was sent with the runs. It is not sent here. An
   * asynchronous schema delays the later runs too, to keep their order, and the stream is paused while 100 events wait.
   */
  readonly schema: AnswerSchema<Content>
  /** Default true with a `schema`. With false, runs come without an output, and there is nothing to check. */
  readonly include_output?: boolean
}

/** A run that ended, with its output as the schema returned it. */
type CheckedRunState<Content> = Omit<TaskRunState, 'output'> & {
  /** The validated output; null or absent without an output, and null if it does not match the schema. */
  readonly output?: CheckedOutput<Content> | null
  /** Set if the output does not match the schema. The error has the output as received. */
  readonly misfit?: OutputSchemaError
}

/** What `taskGroups.runs` emits with a schema, discriminated by `type`. */
export type CheckedGroupRunEvent<Content> = UncheckedEvent | CheckedRunEvent<Content>

type CheckedRunEvent<Content> = Envelope<'task_run.state', CheckedRunState<Content>>
type UncheckedEvent = Exclude<GroupRunEvent, EventOf<'task_run.state'>>

/** `taskGroups.runs`. Its overloads are declared here since an inferred type has no comments for them. */
export interface GroupRuns {
  /** Emits each run as it ends (§4.5), resumed automatically until the group is done. */
  (groupId: string, options?: GroupRunsOptions): Source<GroupRunEvent>
  /** The same with a schema for the outputs: `output.content` has its type, `misfit` lists what does not match it. */
  <Content>(groupId: string, options: TypedGroupRunsOptions<Content>): Source<CheckedGroupRunEvent<Content>>
}

/**
 * Creates `taskGroups.runs`, which emits each run of a group when it ends (§4.5). With a `schema`, an output that does not
 * match is emitted as `output: null` with its `misfit`, as by `taskGroups.execute`; events without an output pass unchanged.
 */
export function createRuns(context: Context): GroupRuns {
  function runs(groupId: string, options?: GroupRunsOptions): Source<GroupRunEvent>
  function runs<Content>(
    groupId: string,
    options: TypedGroupRunsOptions<Content>,
  ): Source<CheckedGroupRunEvent<Content>>
  function runs(
    groupId: string,
    options: GroupRunsOptions & { readonly schema?: AnswerSchema<unknown> } = {},
  ): Source<GroupRunEvent | CheckedGroupRunEvent<unknown>> {
    checkOptions('options', options, [...GROUP_RUNS_OPTIONS, 'schema'])
    const { schema, ...own } = options
    if (schema === undefined) return groupRuns(context, groupId, own)
    validatorOf(schema)
    // The signal ends the source immediately, without waiting for checks.
    const { signal, include_output = true, ...query } = own
    const unchecked = groupRuns(context, groupId, { ...query, include_output })
    const checked = checkedInOrder(unchecked, (event) => checkedRun(schema, event, include_output))
    return sourceOf(checked, signal)
  }
  return runs
}

/** Returns the event with its output checked; the event itself if there is nothing to check. */
function checkedRun<Content>(
  schema: AnswerSchema<Content>,
  event: GroupRunEvent,
  hasOutputs: boolean,
): CheckedGroupRunEvent<Content> | Promise<CheckedGroupRunEvent<Content>> {
  if (hasNothingToCheck(event, hasOutputs)) return event
  const { output = null, ...state } = event.data
  const withOutput = (result: CheckedOutput<Content> | OutputSchemaError): CheckedGroupRunEvent<Content> =>
    result instanceof OutputSchemaError
      ? { ...event, data: { ...state, output: null, misfit: result } }
      : { ...event, data: { ...state, output: result } }
  const result = checkedOutput(schema, output)
  return result instanceof Promise ? result.then(withOutput) : withOutput(result)
}

/** Only a completed run must have an output, and only if outputs were requested. */
function hasNothingToCheck(
  event: GroupRunEvent,
  hasOutputs: boolean,
): event is UncheckedEvent | Envelope<'task_run.state', TaskRunState & { readonly output?: null }> {
  if (event.type !== 'task_run.state') return true
  const { run, output } = event.data
  return output == null && !(hasOutputs && run.status === 'completed')
}
