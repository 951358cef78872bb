import { Observable, Subject, takeUntil } from 'rxjs'
import type { OperatorFunction, SchedulerLike, Subscription } from 'rxjs'
import { Queue } from '../../operators/queue.ts'
import { underGate } from '../../operators/under-gate.ts'
import { gateOf } from '../protocol/gate.ts'
import type { MemoryProcess } from './memory-process.ts'
import type { StreamInput } from './process-functions.ts'

/** The longest wait for a timer, in ms: a clock may be set, and a machine may sleep. */
const MAX_WAIT = 60_000

/** Settings of {@link inTime}. */
interface Timing<Event, Entry extends StreamInput, Output> {
  /** Makes the process of a subscription. */
  readonly begin: () => Pick<
    MemoryProcess<never, Entry, never, Output>,
    'next' | 'arrive' | 'tick' | 'take' | 'end' | 'nextDue'
  >
  /** The event as the process gets it. */
  readonly entryOf: (event: Event) => Entry
  /** Whether it is an entry of a log: time moves with the entries alone after it. */
  readonly isTimed?: (event: Event) => boolean
  /** Whether all timers fire once the source completes. Default false. */
  readonly isEnded?: boolean
  readonly scheduler: SchedulerLike
}

/**
 * Runs a process in memory over a stream of events, and moves its time while the source is silent.
 *
 * A consumer that is slow pauses the source, but not the timers.
 *
 * What a subscriber causes while it takes an output, such as an event of the source, comes after the other outputs of the same event.
 */
export function inTime<Event, Entry extends StreamInput, Output>({
  begin,
  entryOf,
  isTimed = () => false,
  isEnded = false,
  scheduler,
}: Timing<Event, Entry, Output>): OperatorFunction<Event, Output> {
  return (source) =>
    new Observable((subscriber) => {
      const process = begin()
      const steps = new Queue<() => void>()
      let isBusy = false
      const inTurn = (step: () => void) => {
        steps.push(step)
        if (isBusy) return
        isBusy = true
        for (let next = steps.shift(); next !== undefined; next = steps.shift())
          if (!subscriber.closed) next()
        isBusy = false
      }
      const emit = (evaluate: () => readonly Output[]) => {
        try {
          for (const output of evaluate()) subscriber.next(output)
        } catch (error) {
          for (const output of process.take()) subscriber.next(output)
          subscriber.error(error)
        }
      }
      let wait: Subscription | undefined
      let waitsUntil = Infinity
      const waitUntil = (due = Infinity) => {
        if (due === waitsUntil || subscriber.closed) return
        wait?.unsubscribe()
        waitsUntil = due
        if (due === Infinity) return
        const delay = Math.min(Math.max(due - scheduler.now(), 0), MAX_WAIT)
        wait = scheduler.schedule(() => {
          waitsUntil = Infinity
          inTurn(() => {
            emit(() => process.tick(scheduler.now()))
            waitUntil(process.nextDue)
          })
        }, delay)
      }
      // A source that emits while it is being subscribed is ended by this.
      const ended = new Subject<void>()
      subscriber.add(() => {
        ended.next()
        wait?.unsubscribe()
      })
      source.pipe(takeUntil(ended), underGate(gateOf(subscriber))).subscribe({
        next: (event) => {
          const entry = entryOf(event)
          const isEntry = isTimed(event)
          inTurn(() => {
            emit(() => (isEntry ? process.next(entry) : process.arrive(entry)))
            waitUntil(isEntry ? Infinity : process.nextDue)
          })
        },
        error: (error: unknown) => inTurn(() => subscriber.error(error)),
        complete: () =>
          inTurn(() => {
            if (isEnded) emit(() => process.end())
            subscriber.complete()
          }),
      })
    })
}
