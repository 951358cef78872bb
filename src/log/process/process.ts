import { ArgumentError } from '../../protocol/argument-error.ts'
import {
  checkBoolean,
  checkFunction,
  checkInteger,
  checkOneOf,
  checkOptions,
  checkSignal,
  checkText,
} from '../../protocol/check.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { checkStart } from '../store/checked-store.ts'
import type { EntryOf } from '../consume/consumer-options.ts'
import type { LogJob } from '../event-log/job.ts'
import type { StoredStates } from '../store/process-store.ts'
import { checkFunctions, FUNCTION_DEFAULTS, FUNCTION_OPTIONS } from '../../streams/process-functions.ts'
import type { FunctionSettings, ProcessFunctions } from '../../streams/process-functions.ts'
import type { Definition } from '../../streams/definition/define.ts'
import { StoredProcessState } from './process-state.ts'
import type { ProcessState } from './process-state.ts'
import type { StartAt } from '../store/contract.ts'

/** Settings of a process over a log. */
export interface ProcessOptions<
  State,
  Type extends ResearchEventType = ResearchEventType,
> extends ProcessFunctions<State, Type, EntryOf<Type>> {
  /**
   * Version of the functions, a positive integer. Raise it when their results change.
   *
   * `migrate` or `rebuild` then decides what happens to the state. Without either, another version is refused with a `ProcessVersionError`.
   */
  readonly version: number
  /** Start of a process with a new name, and of one that is rebuilt. Default `start`. A known one resumes. */
  readonly startAt?: StartAt
  /**
   * Returns the state of an earlier version in this one; null removes it. Default: none.
   *
   * Then another version is refused or built again.
   */
  readonly migrate?: (state: unknown, fromVersion: number, key: string) => State | null
  /**
   * Builds the state of another version again: `true`, or `available` from the entries that are left. Default false.
   *
   * It is built from where the process began, if there is no `migrate`. What the earlier version has appended is not appended again. Refused if
   * the log no longer has these entries; `available` then begins with a `log.gap`.
   */
  readonly rebuild?: boolean | 'available'
  /**
   * Names of processes of the same log whose output this process reads. Default: none.
   *
   * Its event time then waits for them as well as for the recordings: what they append is not late because they lag. It stands until each of
   * them has run for a tick, and they may start later. `log.remove` lets go of one that does not come back.
   *
   * If they come after this process themselves, it rejects with an `ArgumentError` that names the way round.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
   * log.process('changes', {
   *   version: 1,
   *   types: ['monitor.event_stream'],
   *   key: (entry) => entry.source,
   *   init: () => ({}),
   *   event: (_state, entry, context) => context.append({ type: 'unknown', data: entry.data.output.content }),
   * })
   * log.process('hours', {
   *   version: 1,
   *   after: ['changes'],
   *   where: (entry) => entry.source === '/processes/changes' && entry.type === 'unknown',
   *   key: () => 'all',
   *   init: () => ({ changes: 0 }),
   *   event: ({ changes }, entry, context) => {
   *     context.set({ changes: changes + 1 })
   *     context.timer('hour', Math.ceil(context.now() / 3_600_000) * 3_600_000, { clock: 'event' })
   *   },
   *   timer: (state, _due, context) => context.append({ type: 'unknown', data: state }),
   * })
   * ```
   */
  readonly after?: readonly string[]
  /**
   * Whether retention keeps what the process has not read, running or not. Default true.
   *
   * With false, a `log.gap` comes in the place of entries that were deleted before it has read them. Each start stores it until the next one.
   */
  readonly holdsRetention?: boolean
  /**
   * Waits for a name that another open log holds, until this signal is aborted. Default: the process rejects with a `LogInUseError`.
   *
   * With `share`, it waits only for a process that is not shared.
   */
  readonly wait?: AbortSignal
  /**
   * Divides the keys with all processes that run it, into eight parts. Default false.
   *
   * Each part reads all entries, since they are the time of the process. State, timers and output are the same as without. When an open log
   * joins, it takes its share over; when one stops, or dies and its lease runs out, the others do. If the log does not divide its sources, as in
   * a file, one of them runs all and the others stand by. Once a process was divided, it runs with `share` only: without, it rejects with a
   * `LogUnsupportedError`.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore({ partitions: 64 }))
   * log.process('counts', {
   *   version: 1,
   *   share: true,
   *   key: (entry) => entry.source,
   *   init: () => ({ entries: 0 }),
   *   event: (state, entry, context) => context.set({ entries: state.entries + 1 }),
   * })
   * ```
   */
  readonly share?: boolean
}

/** Settings of a process that computes a definition. */
export interface DefinitionProcessOptions extends Pick<
  ProcessOptions<unknown>,
  'startAt' | 'holdsRetention' | 'wait' | 'share' | 'onError' | 'maxStateBytes'
> {
  /**
   * Computes a new version of the definition from where the process began: `true`, or `available` from the entries that are left. Default false:
   * another version is refused with a `ProcessVersionError`.
   *
   * Results of the time before are computed for later windows only, and not appended again.
   */
  readonly rebuild?: boolean | 'available'
}

/** A process that runs, and its state. */
export interface LogProcess<State> extends LogJob, ProcessState<State> {}

/** A job, and the state that it writes. */
export class RunningProcess<State> extends StoredProcessState<State> implements LogProcess<State> {
  readonly #job: LogJob

  constructor(states: StoredStates, name: string, job: LogJob) {
    super(states, name)
    this.#job = job
  }

  get done(): Promise<void> {
    return this.#job.done
  }

  stop(): Promise<void> {
    return this.#job.stop()
  }
}

/** Maximum number of processes that one comes after. */
const MAX_AFTER = 100

/** {@link ProcessOptions} with their defaults. */
export type ProcessSettings<State, Type extends ResearchEventType> = ProcessOptions<State, Type> & {
  /** What it computes, as a text: a version has one. Undefined for functions. */
  readonly shape?: string
  readonly reads?: FunctionSettings<State, EntryOf<Type>>['reads']
} & Required<
    Pick<
      ProcessOptions<State, Type>,
      'startAt' | 'rebuild' | 'after' | 'holdsRetention' | 'lateness' | 'maxStateBytes' | 'onError' | 'share'
    >
  >

const OPTIONS = [
  ...FUNCTION_OPTIONS,
  ...Object.keys({
    version: true,
    startAt: true,
    migrate: true,
    rebuild: true,
    after: true,
    holdsRetention: true,
    wait: true,
    share: true,
  } satisfies Record<Exclude<keyof ProcessOptions<unknown>, keyof ProcessFunctions<unknown>>, true>),
]

/** The settings with their defaults. Throws an ArgumentError for an invalid one. */
export function processSettings<State, Type extends ResearchEventType>(
  name: string,
  options: ProcessOptions<State, Type>,
): ProcessSettings<State, Type> {
  checkText('name', name)
  checkOptions('options', options, OPTIONS)
  const settings = {
    startAt: 'start',
    rebuild: false,
    after: [],
    holdsRetention: true,
    share: false,
    ...FUNCTION_DEFAULTS,
    ...options,
  } as const
  const { version, migrate, after, wait } = settings
  checkInteger('version', version, 1)
  checkStart('startAt', settings.startAt)
  checkFunctions(settings)
  if (migrate !== undefined) checkFunction('migrate', migrate)
  checkOneOf('rebuild', settings.rebuild, [true, false, 'available'])
  checkAfter('after', name, after)
  checkBoolean('holdsRetention', settings.holdsRetention)
  if (wait !== undefined) checkSignal('wait', wait)
  checkBoolean('share', settings.share)
  // The caller may change the list.
  return { ...settings, after: [...after] }
}

const DEFINITION_OPTIONS = Object.keys({
  startAt: true,
  rebuild: true,
  holdsRetention: true,
  wait: true,
  share: true,
  onError: true,
  maxStateBytes: true,
} satisfies Record<keyof DefinitionProcessOptions, true>)

/** The settings of a process that computes a definition. Throws an ArgumentError for an invalid one. */
export function definitionSettings(
  definition: Definition<unknown>,
  options: DefinitionProcessOptions,
): ProcessSettings<unknown, ResearchEventType> {
  // Not in the parameters, which are in the declarations of the package: they leave out what is internal.
  const { name, version, after, functions, reads, shape } = definition
  checkOptions('options', options, DEFINITION_OPTIONS)
  return { ...processSettings(name, { ...functions, ...options, version, after }), shape, reads }
}

/** Throws an ArgumentError unless these are names of processes that this one can come after. */
export function checkAfter(argument: string, process: string, after: readonly string[]): void {
  if (!Array.isArray(after)) throw new ArgumentError(argument, 'an array of names', after)
  if (after.length > MAX_AFTER) throw new ArgumentError(argument, `at most ${MAX_AFTER} names`, after)
  for (const [n, name] of after.entries()) {
    checkText(`${argument}[${n}]`, name)
    if (name !== process) continue
    throw new ArgumentError(
      `${argument}[${n}]`,
      `a process other than ${JSON.stringify(process)} itself`,
      name,
    )
  }
}
