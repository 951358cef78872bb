import { asyncScheduler, Observable } from 'rxjs'
import type { OperatorFunction, SchedulerLike, Subscription } from 'rxjs'
import type { CompiledRule } from '../compiled-rule.ts'
import type { RuleInput } from './event-time.ts'
import { InMemoryRules } from './in-memory.ts'
import type { AlertEvent } from './in-memory.ts'
import type { ViewOf } from './program.ts'

/** Settings of {@link alerts}. */
export interface AlertsOptions {
  /** For deadlines and the time at which events come. Default: `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
  /** Maximum number of keys of all rules together. Events of further keys are not evaluated. Default 100,000. */
  readonly maxKeys?: number
}

/** The longest wait for a deadline, in ms: a clock may be set, and a machine may sleep. */
const MAX_WAIT = 60_000

/**
 * Evaluates alert rules over a stream of events, in memory, and emits what becomes of the alerts.
 *
 * ```
 * count: { over: 3s, gte: 2 }, lateness: 0
 * source:  ---a-b-------|
 * alerts:  -----fr------|
 * ```
 *
 * Events count when they come, or at their own `time` where that is before. Deadlines, such as that of `for` or of an event that
 * leaves a window, are kept by the scheduler while the source is silent. State is lost with the subscription: rules over a log keep it.
 *
 * Completes and fails with the source, at once: what waits for a deadline then is not emitted. Unsubscribing ends the wait.
 *
 * @throws {ArgumentError} for a rule that asks for more than there is room for.
 */
export function alerts(
  rules: readonly CompiledRule[],
  viewOf: ViewOf,
  { scheduler = asyncScheduler, maxKeys }: AlertsOptions = {},
): OperatorFunction<RuleInput, AlertEvent> {
  const create = () => new InMemoryRules(rules, viewOf, maxKeys === undefined ? {} : { maxKeys })
  // Rules are checked here, not at the subscription.
  create()
  return (source) =>
    new Observable((subscriber) => {
      const driver = create()
      let wait: Subscription | undefined
      let waitsUntil = Infinity
      const emit = (evaluate: () => readonly AlertEvent[]) => {
        try {
          for (const alert of evaluate()) subscriber.next(alert)
        } catch (error) {
          return subscriber.error(error)
        }
        if (!subscriber.closed) schedule()
      }
      const schedule = () => {
        const due = driver.nextDue ?? Infinity
        if (due === waitsUntil) return
        wait?.unsubscribe()
        waitsUntil = due
        if (due === Infinity) return
        const delay = Math.min(Math.max(due - scheduler.now(), 0), MAX_WAIT)
        wait = scheduler.schedule(() => {
          waitsUntil = Infinity
          emit(() => driver.tick(scheduler.now()))
        }, delay)
        subscriber.add(wait)
      }
      subscriber.add(
        source.subscribe({
          next: (event) => {
            const recorded = scheduler.now()
            emit(() => driver.next({ ...event, recorded }))
          },
          error: (error: unknown) => subscriber.error(error),
          complete: () => subscriber.complete(),
        }),
      )
    })
}
