import { asyncScheduler } from 'rxjs'
import type { SchedulerLike } from 'rxjs'
import {
  checkBoolean,
  checkDuration,
  checkFunction,
  checkInteger,
  checkList,
  checkOneOf,
  checkOptions,
  checkScheduler,
  checkSignal,
  checkText,
} from '../../protocol/check.ts'
import type { ResearchEvent, ResearchEventType } from '../../protocol/event.ts'
import { checkStart } from '../store/checked-store.ts'
import type { Entry, StartAt } from '../store/contract.ts'

/** Entries of these types. */
export type EntryOf<Type extends ResearchEventType> = Entry<Extract<ResearchEvent, { readonly type: Type }>>

/** A batch of entries of these types. */
type EntryBatch<Type extends ResearchEventType> = readonly [EntryOf<Type>, ...EntryOf<Type>[]]

/**
 * What the handler of a job gets: batches of entries if `size` is one of its options, otherwise entries. In a call of `exactlyOnce` within
 * that of `consume`, a type parameter that has no inference yet is `never`.
 */
export type HandledBy<Type extends ResearchEventType, Size extends number | undefined> = [Type] extends [
  never,
]
  ? HandledBy<ResearchEventType, Size>
  : [Size] extends [never]
    ? EntryOf<Type>
    : [Size] extends [number]
      ? EntryBatch<Type>
      : EntryOf<Type>

/** Maximum of {@link ConsumerOptions.maxUnacknowledged}. */
export const MAX_UNACKNOWLEDGED = 5_000

/** Settings of a consumer. */
export interface ConsumerOptions<Type extends ResearchEventType = ResearchEventType> {
  /** Only entries of these types. Evaluated while reading, so a changed list holds from the cursor on. Default: all. */
  readonly types?: readonly Type[]
  /** Only entries for which this returns true. Evaluated as `types` is. Default: all. */
  readonly where?: (entry: EntryOf<Type>) => boolean
  /** Start of a consumer with a new name. A known one resumes at its cursor. Default `start`. */
  readonly startAt?: StartAt
  /** `first` skips more complete duplicates. Default `all`. */
  readonly revisions?: 'all' | 'first'
  /**
   * Maximum number of entries that are not acknowledged. Reading pauses there, and while such entries have more than 16 Mi
   * characters of JSON. 1 to 5,000, since twice as many acknowledged positions must fit into one commit; default 1,000.
   */
  readonly maxUnacknowledged?: number
  /**
   * How long reading may pause for an entry that an operator holds or has dropped, in ms, until the consumer errors with a
   * {@link StalledConsumerError}. Default 60,000.
   */
  readonly stallTimeout?: number
  /**
   * Waits for a name that another open log holds, until this signal is aborted. Default: that is an error. With {@link share}, which always
   * waits, it limits the wait for a consumer of this name that is not shared.
   */
  readonly wait?: AbortSignal
  /**
   * Divides the entries with all open logs that run this consumer with `share`, in any number of processes: each source is read by
   * one of them, in order. When one joins, it takes its share over; when one stops, or dies and its lease runs out, the others
   * do. {@link maxUnacknowledged} holds for this one alone. Default false: it reads all entries, and is the only one.
   *
   * If the log does not divide its sources, as in a file, one of them reads and the others stand by. Once a consumer was divided, it runs with
   * `share` only: without, it errors with a `LogUnsupportedError`.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
   * log.consume('archive', { share: true }, (entry) => console.log(entry.source, entry.id))
   * ```
   */
  readonly share?: boolean
  /** Scheduler of `stallTimeout`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/** The names of {@link ConsumerOptions}. */
export const CONSUMER_OPTIONS = Object.keys({
  types: true,
  where: true,
  startAt: true,
  revisions: true,
  maxUnacknowledged: true,
  stallTimeout: true,
  wait: true,
  share: true,
  scheduler: true,
} satisfies Record<keyof ConsumerOptions, true>)

type Optional = 'types' | 'where' | 'wait'
/** {@link ConsumerOptions} with their defaults. */
export type ConsumerSettings<Type extends ResearchEventType> = Required<
  Omit<ConsumerOptions<Type>, Optional>
> &
  Pick<ConsumerOptions<Type>, Optional>

/** Types of entries: a list of at least one. */
export function checkTypes(types: unknown): void {
  checkList('types', types)
  for (const type of types) checkText('types', type)
}

/** The settings with their defaults. Throws an ArgumentError for an invalid one. */
export function consumerSettings<Type extends ResearchEventType>(
  name: string,
  options: ConsumerOptions<Type>,
): ConsumerSettings<Type> {
  checkText('name', name)
  checkOptions('options', options, CONSUMER_OPTIONS)
  const settings = {
    startAt: 'start',
    revisions: 'all',
    maxUnacknowledged: 1_000,
    stallTimeout: 60_000,
    share: false,
    scheduler: asyncScheduler,
    ...options,
  } as const
  const { types, where, startAt, revisions, maxUnacknowledged, stallTimeout, wait, share, scheduler } =
    settings
  if (types !== undefined) checkTypes(types)
  if (where !== undefined) checkFunction('where', where)
  checkStart('startAt', startAt)
  checkOneOf('revisions', revisions, ['all', 'first'])
  checkInteger('maxUnacknowledged', maxUnacknowledged, 1, MAX_UNACKNOWLEDGED)
  checkDuration('stallTimeout', stallTimeout)
  if (wait !== undefined) checkSignal('wait', wait)
  checkBoolean('share', share)
  checkScheduler('scheduler', scheduler)
  return settings
}
