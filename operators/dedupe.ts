import { asyncScheduler, defer, filter } from 'rxjs'
import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs'
import type { Identified } from '../src/protocol/identified.ts'
import { checkMemory, RecentIds } from './dedupe/recent-ids.ts'
import type { Memory } from './dedupe/recent-ids.ts'

/** Settings of {@link dedupe}. */
export interface DedupeConfig<T> extends Memory {
  /** Called with each event that is dropped. What it throws goes to the subscriber. */
  readonly onDuplicate?: (event: T) => void
  /** Tells the time for `timeToLive`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

/**
 * Drops an event whose identity was seen before, unless this copy says more than the ones before.
 *
 *     source:   --a--b--a--c--b--B--|
 *               dedupe()
 *     result:   --a--b-----c-----B--|
 *
 * The identity is the pair of `source` and `id`. `B` above is a fuller copy of `b`, for instance a run with its output
 * after the webhook without it: it is let through, since a copy that says less must not hide one that says more.
 * Equal and poorer copies are dropped. {@link mergeWebhooks} avoids that second emission by holding poor copies a while.
 *
 * Memory is bounded: `capacity` identities over all sources, the least recently seen forgotten first. Each subscription
 * has its own.
 *
 * ```ts
 * import { of } from 'rxjs'
 * import { dedupe } from 'rivulet/operators'
 *
 * of({ id: 'a' }, { id: 'b' }, { id: 'a' })
 *   .pipe(dedupe({ capacity: 10_000, timeToLive: 60_000 }))
 *   .subscribe((event) => console.log(event.id)) // a, b
 * ```
 *
 * An error of the source passes through, and unsubscribing unsubscribes from the source; both forget everything. An event
 * whose `id` is no string ends it with an ArgumentError: such events could not be told apart.
 *
 * @throws ArgumentError at the call, for a `capacity` below 1 or a negative `timeToLive`.
 */
export function dedupe<T extends Identified>(config: DedupeConfig<T> = {}): MonoTypeOperatorFunction<T> {
  checkMemory(config)
  const { onDuplicate, scheduler = asyncScheduler } = config

  return (source) =>
    defer(() => {
      const seen = new RecentIds(config, () => scheduler.now())
      return source.pipe(
        filter((event) => {
          if (seen.admit(event)) return true
          onDuplicate?.(event)
          return false
        }),
      )
    })
}
