import { concatMap, defer, dematerialize, materialize } from 'rxjs'
import type { MonoTypeOperatorFunction, ObservableNotification } from 'rxjs'
import { checkInteger, checkOptionalFunctions, checkOptions } from '../protocol/check.ts'
import { firstIndex } from '../protocol/first-index.ts'
import { eventTime } from './clocks.ts'
import { spanOf } from './definition/windows.ts'
import type { TimeSpan } from './definition/windows.ts'
import type { StreamInput } from './process-functions.ts'

/** Settings of {@link orderByTime}. */
interface OrderOptions<Event> {
  /** How much later than its time an event may come. Each event waits so long for others, by event time. */
  readonly lateness: TimeSpan
  /** Maximum number of events that wait, from 1 to 1,000,000. With one more, the first is emitted before its time. Default 100,000. */
  readonly maxWaiting?: number
  /** Called for each event that comes too late to be in order. Default: it is emitted at once, out of order. */
  readonly onLate?: (event: Event) => void
}

/** An event that waits. */
interface TimedEvent<Event> {
  readonly at: number
  readonly event: Event
}

/**
 * Emits events in the order of their event time, and those of one time in the order in which they came. Each waits until an event has come that
 * happened `lateness` later, or until the source completes.
 *
 *     source:   -1-3-2----5-4--|
 *               orderByTime({ lateness: 2 })
 *     result:   ----1-----23---(45|)
 *
 * ```ts
 * import { createClient } from 'rivulet'
 * import { orderByTime } from 'rivulet/streams'
 *
 * const client = createClient({ apiKey: 'key' })
 * client.monitors.follow('mon_1').pipe(orderByTime({ lateness: '1m' })).subscribe(console.log)
 * ```
 *
 * If the source fails, what waits is emitted before the error. Unsubscribing drops it.
 *
 * @throws ArgumentError for an unknown option or an invalid one.
 */
export function orderByTime<Event extends StreamInput>(
  options: OrderOptions<Event>,
): MonoTypeOperatorFunction<Event> {
  checkOptions('options', options, ['lateness', 'maxWaiting', 'onLate'])
  const { maxWaiting = 100_000, onLate } = options
  const lateness = spanOf('lateness', options.lateness, 0)
  checkInteger('maxWaiting', maxWaiting, 1, 1_000_000)
  checkOptionalFunctions({ onLate })
  return (source) =>
    defer(() => {
      const buffer = new OrderedBuffer<Event>(lateness, maxWaiting, onLate)
      return source.pipe(
        materialize(),
        concatMap((notification) =>
          notification.kind === 'N'
            ? buffer.take(notification.value).map(nextOf)
            : [...buffer.all().map(nextOf), notification],
        ),
        dematerialize(),
      )
    })
}

function nextOf<Event>(value: Event): ObservableNotification<Event> {
  return { kind: 'N', value }
}

/** Events that wait, in order. */
class OrderedBuffer<Event extends StreamInput> {
  readonly #lateness: number
  readonly #maxWaiting: number
  readonly #onLate: ((event: Event) => void) | undefined
  #waiting: TimedEvent<Event>[] = []
  #latest = -Infinity
  #emitted = -Infinity

  constructor(lateness: number, maxWaiting: number, onLate: ((event: Event) => void) | undefined) {
    this.#lateness = lateness
    this.#maxWaiting = maxWaiting
    this.#onLate = onLate
  }

  /** Takes an event. Returns those that wait no longer. */
  take(event: Event): readonly Event[] {
    const at = eventTime(event)
    if (at < this.#emitted) {
      if (this.#onLate === undefined) return [event]
      this.#onLate(event)
      return []
    }
    const place = firstIndex(this.#waiting, (each) => each.at > at)
    this.#waiting.splice(place, 0, { at, event })
    this.#latest = Math.max(this.#latest, at)
    const until = this.#latest - this.#lateness
    const first = firstIndex(this.#waiting, (each) => each.at > until)
    return this.#removed(Math.max(first, this.#waiting.length - this.#maxWaiting))
  }

  /** The events that wait. They wait no longer. */
  all(): readonly Event[] {
    return this.#removed(this.#waiting.length)
  }

  #removed(count: number): readonly Event[] {
    if (count === 0) return []
    const removed = this.#waiting.splice(0, count)
    this.#emitted = removed.at(-1)?.at ?? this.#emitted
    return removed.map(({ event }) => event)
  }
}
