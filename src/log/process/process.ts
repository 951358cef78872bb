import {
  checkBoolean,
  checkDuration,
  checkFunction,
  checkInteger,
  checkList,
  checkOneOf,
  checkOptions,
  checkSignal,
  checkText,
} from '../../protocol/check.ts'
import type { ResearchEventData, ResearchEventType } from '../../protocol/event.ts'
import { checkStart } from '../store/checked-store.ts'
import type { EntryOf } from '../consume/consumer-options.ts'
import type { LogJob } from '../job.ts'
import type { StoredStates, TimerClock } from '../store/process-store.ts'
import { StoredProcessState } from './process-state.ts'
import type { ProcessState } from './process-state.ts'
import type { StartAt } from '../store/contract.ts'

/** An event that a process appends. Types of one's own are added to `ResearchEventData`. */
export type OutputEvent = {
  [Type in ResearchEventType]: {
    readonly type: Type
    readonly data: ResearchEventData[Type]
    /** Default: `/processes/` and the name of the process. */
    readonly source?: string
  }
}[ResearchEventType]

/**
 * The actions of a function of a process. They take effect together when the function returns, and not at all when it throws.
 */
export interface ProcessContext<State> {
  /** Key of the entry or the timer. */
  readonly key: string
  /**
   * The time that timers of this clock are compared with, in Unix ms: when the entry was recorded, or the one that makes the timer
   * due; with `event`, the watermark. So a timer knows how late it fires, and `event` that an entry is before the watermark.
   *
   * @param clock Default `recorded`.
   */
  now(clock?: TimerClock): number
  /** Stores the state of the key; null removes it. Timers stay. */
  set(state: State | null): void
  /**
   * Starts a timer of the key, in the place of an earlier one of this name.
   *
   * A timer fires at the first entry that makes it due, before that entry. With the clock `recorded`, that is one that was
   * recorded at `due` or later; with `event`, the one that moves the watermark there. A timer that was due while nothing ran fires once. A timer
   * must not start one that is not due later than itself.
   *
   * @param due Unix ms.
   * @param options `clock`, default `recorded`.
   */
  timer(name: string, due: number, options?: { readonly clock?: TimerClock }): void
  /** Stops a timer of the key. Without effect for one that is not running. */
  cancel(name: string): void
  /**
   * Appends an event to the log, with the time of the entry or the timer and an id that is the same in each run. The process
   * does not receive it itself. At most 256 events at a time.
   */
  append(event: OutputEvent): void
}

/** Settings of a process. The functions must depend on their arguments alone, so that each run gives the same. */
export interface ProcessOptions<State, Type extends ResearchEventType = ResearchEventType> {
  /**
   * Version of the functions, a positive integer. Raise it when their results change: `migrate` or `rebuild` then decides what happens
   * to the state. Another version is refused with a `ProcessVersionError`.
   */
  readonly version: number
  /** Start of a process with a new name, and of one that is rebuilt. A known one resumes. Default `start`. */
  readonly startAt?: StartAt
  /** Only entries of these types. Timers also fire at the others. Default: all. */
  readonly types?: readonly Type[]
  /** Only entries for which this returns true. */
  readonly where?: (entry: EntryOf<Type>) => boolean
  /**
   * The key of an entry, of up to 1,024 characters, or several of them, up to 10,000. Undefined or none for an entry that the
   * process does not want. `event` is called once for each key, in the order of their texts.
   */
  readonly key: (entry: EntryOf<Type>) => string | readonly string[] | undefined
  /** The state of a key that has none. */
  readonly init: (key: string) => State
  /** Called for each entry and key, one after the other. */
  readonly event: (state: State, entry: EntryOf<Type>, context: ProcessContext<State>) => void
  /** Called for each timer that fires. `due` is the time that it was set to, in Unix ms, and `name` its name. */
  readonly timer?: (state: State, due: number, context: ProcessContext<State>, name: string) => void
  /** The state of an earlier version in this one; null removes it. */
  readonly migrate?: (state: unknown, fromVersion: number, key: string) => State | null
  /**
   * Builds the state of another version again from where the process began, where there is no `migrate`. What the earlier version has
   * appended is not appended again. Refused where the log no longer has these entries; with `available` it is built from those that
   * the log still has, after a `log.gap`. Default false.
   */
  readonly rebuild?: boolean | 'available'
  /**
   * Whether the log keeps the entries that the process has not processed, running or not. With false, retention does not wait for
   * it, and a `log.gap` comes in the place of entries that were deleted before it has read them. Each start stores it until the
   * next one. Default true.
   */
  readonly holdsRetention?: boolean
  /** How late entries may come by their event time, in ms: the watermark is so much behind the latest one. Default 0. */
  readonly lateness?: number
  /** Removes a state that was not set for so long, in ms between recordings. Default: never. */
  readonly timeToLive?: number
  /** Maximum size of a state as JSON, in bytes. Up to 262,144; default 65,536. */
  readonly maxStateBytes?: number
  /**
   * Reaction to a function that throws, and to effects that are refused. `stop` ends the process with a `ProcessError`;
   * `dead-letter` stores the entry, or the one at which the timer fired, as a dead letter and goes on. Default `stop`.
   */
  readonly onError?: 'stop' | 'dead-letter'
  /** Waits for a name that another open log holds, until this signal is aborted; with `share`, only for a process that is not shared. Default: that is an error. */
  readonly wait?: AbortSignal
  /**
   * Divides the keys with all open logs that run this process with `share`, in any number of processes of the operating system: into eight
   * parts, each of which runs at one of them. Each part reads all entries, since they are the time of the process. State, timers and output are
   * the same as without. Where an open log joins, it takes its share over; where one stops, or dies and its lease runs out, the others do. Default false.
   *
   * If the log does not divide its sources, as in a file, one of them runs all and the others stand by. Once a process was divided, it runs with
   * `share` only: without, it rejects with a `LogUnsupportedError`.
   *
   * ```ts
   * import { memoryLog, openLog } from 'rivulet'
   *
   * const log = await openLog(memoryLog({ partitions: 64 }))
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

/** {@link ProcessOptions} with their defaults. */
export type ProcessSettings<State, Type extends ResearchEventType> = ProcessOptions<State, Type> &
  Required<
    Pick<
      ProcessOptions<State, Type>,
      'startAt' | 'rebuild' | 'holdsRetention' | 'lateness' | 'maxStateBytes' | 'onError' | 'share'
    >
  >

const OPTIONS = Object.keys({
  version: true,
  startAt: true,
  types: true,
  where: true,
  key: true,
  init: true,
  event: true,
  timer: true,
  migrate: true,
  rebuild: true,
  holdsRetention: true,
  lateness: true,
  timeToLive: true,
  maxStateBytes: true,
  onError: true,
  wait: true,
  share: true,
} satisfies Record<keyof ProcessOptions<unknown>, true>)

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
    holdsRetention: true,
    lateness: 0,
    maxStateBytes: 64 * 1024,
    onError: 'stop',
    share: false,
    ...options,
  } as const
  const { version, types, where, key, init, event, timer, migrate, timeToLive, wait } = settings
  checkInteger('version', version, 1)
  checkStart('startAt', settings.startAt)
  if (types !== undefined) {
    checkList('types', types)
    for (const type of types) checkText('types', type)
  }
  for (const [option, value] of Object.entries({ key, init, event })) checkFunction(option, value)
  for (const [option, value] of Object.entries({ where, timer, migrate })) {
    if (value !== undefined) checkFunction(option, value)
  }
  checkOneOf('rebuild', settings.rebuild, [true, false, 'available'])
  checkBoolean('holdsRetention', settings.holdsRetention)
  checkDuration('lateness', settings.lateness)
  if (timeToLive !== undefined) checkInteger('timeToLive', timeToLive, 1)
  checkInteger('maxStateBytes', settings.maxStateBytes, 1, 256 * 1024)
  checkOneOf('onError', settings.onError, ['stop', 'dead-letter'])
  if (wait !== undefined) checkSignal('wait', wait)
  checkBoolean('share', settings.share)
  return settings
}
