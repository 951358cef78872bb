import {
  checkDuration,
  checkFunction,
  checkInteger,
  checkList,
  checkObject,
  checkOneOf,
  checkOptionalFunctions,
  checkText,
} from '../protocol/check.ts'
import type { ResearchEvent, ResearchEventData, ResearchEventType } from '../protocol/event.ts'
import type { NameRange, TimerClock } from './timers.ts'

/** An event with what a process needs to know of its arrival. An entry of a log is one. */
export type StreamEntry<Event extends ResearchEvent = ResearchEvent> = Event & {
  /** When it was appended to a log, else when it came, in Unix ms. Never decreases from entry to entry of a log. */
  readonly recorded: number
  /** 1 for the first entry of an event's identity; a more complete duplicate is an entry with the next number. */
  readonly revision: number
  /** Whether it comes from a first walk into the past of its source. */
  readonly backfill: boolean
}

/** Entries of these types. */
export type StreamEntryOf<Type extends ResearchEventType> = StreamEntry<
  Extract<ResearchEvent, { readonly type: Type }>
>

/** An event, with the fields of its log entry if it comes from a log. */
export type StreamInput = ResearchEvent & Partial<Pick<StreamEntry, 'recorded' | 'revision' | 'backfill'>>

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
  /**
   * Whether all events up to the watermark have come. False while event time goes on without a stream that is away for longer than
   * `maxHold` of the recording: then events may be missing.
   */
  readonly complete: boolean
  /**
   * Stores the state of the key; null removes it. Timers stay. A state is a JSON value: a `Date`, a `Map` or another instance of a class,
   * `undefined` in an array, and `NaN` are refused. Properties that are undefined are left out.
   */
  set(state: State | null): void
  /**
   * Starts a timer of the key, in the place of an earlier one of this name.
   *
   * A timer fires at the first entry that makes it due, before that entry. With the clock `recorded`, that is one that was
   * recorded at `due` or later; with `event`, the one that moves the watermark there. A timer that was due while nothing ran fires once. A timer
   * must not start one that is not due later than itself.
   *
   * @param due Unix ms.
   */
  timer(
    name: string,
    due: number,
    options?: {
      /** The clock that makes it due. Default `recorded`. */
      readonly clock?: TimerClock
      /**
       * Data for `timer`, stored apart from the state: a JSON value as a state is, with the same maximum size. Default: none.
       *
       * With it, each of many events of a key waits by itself, and none of them makes the state larger.
       */
      readonly data?: unknown
    },
  ): void
  /** Timers of the key that run, in the order of their names: those that a definition asks for. @internal */
  readonly waiting?: readonly WaitingTimer[]
  /** When the next of the sources that are behind is no longer waited for, by the clock `recorded`; undefined if none is behind. @internal */
  readonly behindUntil?: number | undefined
  /** Stops a timer of the key. Without effect for one that is not running. */
  cancel(name: string): void
  /**
   * Appends an event to the log, or emits it, with the time of the entry or the timer and an id that is the same in each run. The process
   * does not receive it itself. At most 256 events at a time.
   */
  append(event: OutputEvent): void
}

/** A timer that runs, with the data that it was started with. */
export interface WaitingTimer {
  readonly name: string
  /** Due time, in Unix ms. */
  readonly due: number
  readonly data: unknown
}

/**
 * The functions of a process, over a log or over any stream of events. They must depend on their arguments alone, so that each run gives the
 * same.
 */
export interface ProcessFunctions<
  State,
  Type extends ResearchEventType = ResearchEventType,
  Input = StreamEntryOf<Type>,
> {
  /** Only entries of these types. Timers also fire at the others. Default: all. */
  readonly types?: readonly Type[]
  /** Only entries for which this returns true. Default: all. */
  readonly where?: (entry: Input) => boolean
  /**
   * The key of an entry, of up to 1,024 characters, or up to 10,000 keys; undefined skips the entry.
   *
   * `event` is called once for each key, in the order of their texts.
   */
  readonly key: (entry: Input) => string | readonly string[] | undefined
  /** The state of a key that has none. */
  readonly init: (key: string) => State
  /** Called for each entry and key, one after the other. */
  readonly event: (state: State, entry: Input, context: ProcessContext<State>) => void
  /**
   * Called for each timer that fires. `due` is the time that it was set to, in Unix ms, and `data` what it was started with; undefined for a
   * timer without data. Default: none, and no timer can be started.
   */
  readonly timer?: (
    state: State,
    due: number,
    context: ProcessContext<State>,
    name: string,
    data: unknown,
  ) => void
  /**
   * How late entries may come by their event time, in ms. Default 0.
   *
   * The watermark is so much behind the latest time.
   */
  readonly lateness?: number
  /** Removes a state that was not set for so long, in ms between recordings. Default: never. */
  readonly timeToLive?: number
  /** Maximum size of a state, and of the data of a timer, as JSON, in bytes, up to 262,144. Default 65,536. */
  readonly maxStateBytes?: number
  /**
   * Reaction to a function that throws: `stop` ends the process with a `ProcessError`, `dead-letter` stores the entry and goes on. Default
   * `stop`.
   *
   * The same holds for effects that are refused. The dead letter of a timer is the entry at which it fired.
   */
  readonly onError?: 'stop' | 'dead-letter'
}

/** {@link ProcessFunctions} with their defaults. */
export type FunctionSettings<State, Input> = ProcessFunctions<State, ResearchEventType, Input> & {
  /** The names of the timers of the key that `event` reads, as `waiting`: ranges that do not overlap. Default: none. */
  readonly reads?: ((entry: Input, key: string) => readonly NameRange[]) | undefined
} & Required<Pick<ProcessFunctions<State>, 'lateness' | 'maxStateBytes' | 'onError'>>

/** The defaults of {@link ProcessFunctions}. */
export const FUNCTION_DEFAULTS = { lateness: 0, maxStateBytes: 64 * 1024, onError: 'stop' } as const

/** The names of {@link ProcessFunctions}. */
export const FUNCTION_OPTIONS = Object.keys({
  types: true,
  where: true,
  key: true,
  init: true,
  event: true,
  timer: true,
  lateness: true,
  timeToLive: true,
  maxStateBytes: true,
  onError: true,
} satisfies Record<keyof ProcessFunctions<unknown>, true>)

/** Throws an ArgumentError for an invalid setting. Others may be there too. */
export function checkFunctions<State, Input>(settings: FunctionSettings<State, Input>): void {
  checkObject('functions', settings)
  const { types, where, key, init, event, timer, lateness, timeToLive, maxStateBytes, onError } = settings
  if (types !== undefined) {
    checkList('types', types)
    for (const type of types) checkText('types', type)
  }
  for (const [option, value] of Object.entries({ key, init, event })) checkFunction(option, value)
  checkOptionalFunctions({ where, timer })
  checkDuration('lateness', lateness)
  if (timeToLive !== undefined) checkInteger('timeToLive', timeToLive, 1)
  checkInteger('maxStateBytes', maxStateBytes, 1, 256 * 1024)
  checkOneOf('onError', onError, ['stop', 'dead-letter'])
}
