import { Observable } from 'rxjs'
import { Gate, gateOf, subscribeUnderGate } from '../../protocol/gate.ts'
import { checkOptions } from '../../protocol/check.ts'
import { groupSource } from '../../protocol/event.ts'
import type { Envelope, EventOf, GroupRunEvent, TaskRunState } from '../../protocol/event.ts'
import type { AnswerSchema } from '../../protocol/standard-schema.ts'
import { checkedOutput, MAX_CHECKS, OutputSchemaError, validatorOf } from './answer-schema.ts'
import type { CheckedOutput } from './answer-schema.ts'
import type { Context } from '../context.ts'
import { GROUP_RUNS_OPTIONS, groupRuns } from './runs.ts'
import type { GroupRunsOptions } from './runs.ts'
import { reportRunAhead } from '../shapes/run-ahead.ts'
import { sourceOf } from '../shapes/source.ts'
import type { Source } from '../shapes/source.ts'

/** Options of `taskGroups.runs` with outputs that are checked with a schema. */
export interface TypedGroupRunsOptions<Content> extends GroupRunsOptions {
  /**
   * What the runs were asked to answer with: the schema whose `outputSchema(schema)` was sent with them. It is not sent
   * here; each output that comes is checked with it. A schema that checks asynchronously delays the runs behind it too, so
   * that their order stays, and the stream is not read while 100 of them wait.
   */
  readonly schema: AnswerSchema<Content>
  /** Default true with a `schema`. With false, runs come without an output, and there is nothing to check. */
  readonly include_output?: boolean
}

/** That a run ended, with its output as the schema made it. */
export type CheckedRunState<Content> = Omit<TaskRunState, 'output'> & {
  /** What it found; null or absent where it has no output, and null where the output does not fit the schema. */
  readonly output?: CheckedOutput<Content> | null
  /** Why the output is null: it does not fit the schema. The error has the output as it came. */
  readonly misfit?: OutputSchemaError
}

/** What `taskGroups.runs` emits with a schema, discriminated by `type`. */
export type CheckedGroupRunEvent<Content> = UncheckedEvent | CheckedRunEvent<Content>

type CheckedRunEvent<Content> = Envelope<'task_run.state', CheckedRunState<Content>>
type UncheckedEvent = Exclude<GroupRunEvent, EventOf<'task_run.state'>>

/** `taskGroups.runs`. */
export interface Runs {
  (groupId: string, options?: GroupRunsOptions): Source<GroupRunEvent>
  <Content>(groupId: string, options: TypedGroupRunsOptions<Content>): Source<CheckedGroupRunEvent<Content>>
}

/**
 * The runs of a group as each ends (§4.5). With a `schema`, a run that completed with another output is emitted with
 * `output: null` and its `misfit`, as by `taskGroups.execute`; all that has no output to check is emitted as it came.
 */
export function readingRuns(context: Context): Runs {
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
    if (schema === undefined)
      return reportRunAhead(context, groupRuns(context, groupId, own), groupSource(groupId))
    validatorOf(schema)
    // The signal ends the source at once, and does not wait for checks.
    const { signal, include_output = true, ...query } = own
    const unchecked = groupRuns(context, groupId, { ...query, include_output })
    const checked = checkedRuns(unchecked, (event) => checkedRun(schema, event, include_output))
    return reportRunAhead(context, sourceOf(checked, signal), groupSource(groupId))
  }
  return runs
}

type Checked<Content> = CheckedGroupRunEvent<Content> | Promise<CheckedGroupRunEvent<Content>>

/** The event with its output checked; the event itself where there is nothing to check. */
function checkedRun<Content>(
  schema: AnswerSchema<Content>,
  event: GroupRunEvent,
  hasOutputs: boolean,
): Checked<Content> {
  if (hasNothingToCheck(event, hasOutputs)) return event
  const { output = null, ...state } = event.data
  const read = (result: CheckedOutput<Content> | OutputSchemaError): CheckedRunEvent<Content> =>
    result instanceof OutputSchemaError
      ? { ...event, data: { ...state, output: null, misfit: result } }
      : { ...event, data: { ...state, output: result } }
  const result = checkedOutput(schema, output)
  return result instanceof Promise ? result.then(read) : read(result)
}

/** Only a run that completed has to have an output, where outputs were asked for. */
function hasNothingToCheck(
  event: GroupRunEvent,
  hasOutputs: boolean,
): event is UncheckedEvent | Envelope<'task_run.state', TaskRunState & { readonly output?: null }> {
  if (event.type !== 'task_run.state') return true
  const { run, output } = event.data
  return output == null && !(hasOutputs && run.status === 'completed')
}

/**
 * Checks each event, and keeps their order: behind one that is checked asynchronously all others wait, since a position is
 * kept from the last event that was emitted. Holds the source while `MAX_CHECKS` events wait.
 *
 * An error or the end of the source comes behind the events that wait. Unsubscribing drops them.
 */
function checkedRuns<Content>(
  source: Observable<GroupRunEvent>,
  check: (event: GroupRunEvent) => Checked<Content>,
): Observable<CheckedGroupRunEvent<Content>> {
  return new Observable((subscriber) => {
    const outer = gateOf(subscriber)
    const gate = new Gate()
    let waiting = 0
    let last: Promise<void> = Promise.resolve()

    const hold = () => {
      if (outer?.closed === true || waiting >= MAX_CHECKS) gate.close()
      else gate.open()
    }
    const inTurn = (step: () => void) => {
      if (waiting === 0) step()
      else void last.then(step)
    }
    subscriber.add(outer?.onChange(hold))
    hold()
    subscriber.add(
      subscribeUnderGate(gate, outer, source, {
        next(event) {
          const checked = check(event)
          if (waiting === 0 && !(checked instanceof Promise)) return subscriber.next(checked)
          waiting += 1
          hold()
          // It never rejects: a schema that fails is an output that does not fit.
          const before = last
          last = (async () => {
            await before
            const result = await checked
            waiting -= 1
            subscriber.next(result)
            hold()
          })()
        },
        error: (error: unknown) => inTurn(() => subscriber.error(error)),
        complete: () => inTurn(() => subscriber.complete()),
      }),
    )
  })
}
