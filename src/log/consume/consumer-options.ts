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
  /** Only entries of these types. It is not stored: a change applies from the consumer's position on. Default: all. */
  readonly types?: readonly Type[]
  /** Only entries for which this returns true. It is not stored either. Default: all. */
  readonly where?: (entry: EntryOf<Type>) => boolean
  /** Start of a consumer with a new name: `start`, `end`, or `{ time }` in Unix ms. Default `start`. A known one resumes at its position. */
  readonly startAt?: StartAt
  /** `first` skips more complete copies of an entry. Default `all`. */
  readonly revisions?: 'all' | 'first'
  /**
   * In-flight limit: entries that were delivered and are not acknowledged yet, 1 to 5,000. Default 1,000. Reading also pauses if they have more
   * than 16 Mi characters of JSON.
   *
   * The maximum is what fits into one commit, which has twice as many acknowledged positions.
   */
  readonly maxUnacknowledged?: number
  /**
   * How long reading may wait for an entry that an operator holds or has dropped, in ms. Then the consumer errors with a {@link
   * StalledConsumerError}. Default 60,000.
   */
  readonly stallTimeout?: number
  /**
   * Waits for a name that another open log holds, until this signal is aborted. Default: the consumer errors with a `LogInUseError`.
   *
   * With {@link share}, which always waits, it limits the wait for a consumer of this name that is not shared.
   */
  readonly wait?: AbortSignal
  /**
   * Divides the sources with all processes that run this consumer. In a file, one of them runs and the others stand by. Default false.
   *
   * Each source is read by one of them, in order. When one joins, it takes its share over; when one stops, or dies and its lease runs out, the
   * others do. {@link maxUnacknowledged} holds for this one alone. Once a consumer was divided, it runs with `share` only: without, it errors
   * with a `LogUnsupportedError`.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
   * log.consume('archive', { share: true }, (entry) => console.log(entry.source, entry.id))
   * ```
   */
  readonly share?: boolean
  /** Scheduler of the timeouts and retries. Default `asyncScheduler`. */
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
