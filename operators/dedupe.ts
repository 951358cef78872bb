import { asyncScheduler, defer, filter } from 'rxjs'
import type { MonoTypeOperatorFunction, SchedulerLike } from 'rxjs'
import type { Identified } from '../src/protocol/identified.ts'
import { checkMemory, MEMORY_OPTIONS, RecentIds } from './dedupe/recent-ids.ts'
import type { DedupeMemory } from './dedupe/recent-ids.ts'
import { checkOptionalFunctions, checkOptions, checkScheduler } from '../src/protocol/check.ts'

/** Settings of {@link dedupe}. */
export interface DedupeOptions<T> extends DedupeMemory {
  /** Called with each dropped event. An error that it throws errors the result. Default: none. */
  readonly onDuplicate?: (event: T) => void
  /** Clock for `timeToLive`. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
}

const OPTIONS = Object.keys({
  ...MEMORY_OPTIONS,
  onDuplicate: true,
  scheduler: true,
} satisfies Record<keyof DedupeOptions<Identified>, true>)

/**
 * Drops duplicates: events whose identity was seen before, unless they are more complete.
 *
 *     source:   --a--b--a--c--b--B--|
 *               dedupe()
 *     result:   --a--b-----c-----B--|
 *
 * The identity is the pair of `source` and `id`. `b` above is a partial event, for instance a webhook's run without its
 * output, and `B` the complete one: both are emitted. Duplicates that are no more complete are dropped.
 * {@link mergeWebhooks} delays a partial event for a while to avoid the second emission.
 *
 * Memory is bounded: each subscription remembers `capacity` identities over all sources, and forgets the least recently
 * seen first.
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
 * Errors pass through, and unsubscribing unsubscribes from the source; both forget all identities. An event whose `id` is
 * not a string has no identity and errors the result with an ArgumentError.
 *
 * @throws ArgumentError at the call, for an unknown option or an invalid one.
 */
export function dedupe<T extends Identified>(options: DedupeOptions<T> = {}): MonoTypeOperatorFunction<T> {
  checkOptions('options', options, OPTIONS)
  checkMemory(options)
  const { onDuplicate, scheduler = asyncScheduler } = options
  checkOptionalFunctions({ onDuplicate })
  checkScheduler('scheduler', scheduler)

  return (source) =>
    defer(() => {
      const seen = new RecentIds(options, () => scheduler.now())
      return source.pipe(
        filter((event) => {
          if (seen.admit(event)) return true
          onDuplicate?.(event)
          return false
        }),
      )
    })
}
