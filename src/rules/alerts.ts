import { asyncScheduler } from 'rxjs'
import type { OperatorFunction, SchedulerLike } from 'rxjs'
import { checkInteger, checkOptions, checkScheduler } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { inTime } from '../streams/in-time.ts'
import { viewOf } from './cel/index.ts'
import { InMemoryRules } from './evaluate/in-memory.ts'
import type { AlertEvent } from './evaluate/in-memory.ts'
import { checkRuleSet } from './check-arguments.ts'
import { compiledRules } from './rule-set.ts'
import type { RuleSet } from './rule-set.ts'

/** Settings of {@link alerts}. */
interface AlertsOptions {
  /** Scheduler for deadlines and for the time at which events come. Default `asyncScheduler`. */
  readonly scheduler?: SchedulerLike
  /**
   * Maximum number of keys of all rules together, and of events that wait. With so many, events of further keys are not evaluated. Default
   * 100,000.
   */
  readonly maxKeys?: number
}

/**
 * Evaluates alert rules over a stream of events, in memory, and emits the changes of the alerts.
 *
 * ```
 * count: { over: 3s, gte: 2 }, lateness: 0
 * source:  ---a-b-------|
 * alerts:  -----fr------|
 * ```
 *
 * Events count when they come, or at their own `time` if that is earlier. The scheduler keeps deadlines while the source is silent, such as
 * the end of `for`, or the moment when an event leaves a window. State is lost with the subscription: rules over a log keep it.
 *
 * Completes and fails with the source, at once: alerts that wait for a deadline then are not emitted. Unsubscribing ends the wait.
 *
 * @example
 * ```ts
 * import { createClient } from 'rivulet'
 * import { alerts, defineRules } from 'rivulet/rules'
 *
 * const rules = defineRules([{ alert: 'Errors', on: ['monitor.error'], count: { over: '1h', gte: 3 } }])
 * const client = createClient({ apiKey: 'key' })
 * client.monitors
 *   .follow('mon_1')
 *   .pipe(alerts(rules))
 *   .subscribe(({ type, data }) => console.log(type, data.alert))
 * ```
 *
 * @throws ArgumentError at the call, for an invalid setting.
 */
export function alerts(
  rules: RuleSet,
  options: AlertsOptions = {},
): OperatorFunction<ResearchEvent, AlertEvent> {
  checkRuleSet(rules)
  checkOptions('options', options, ['scheduler', 'maxKeys'])
  const { scheduler = asyncScheduler, maxKeys } = options
  checkScheduler('scheduler', scheduler)
  if (maxKeys !== undefined) checkInteger('maxKeys', maxKeys, 1)
  const compiled = compiledRules(rules)
  return inTime({
    begin: () => new InMemoryRules(compiled, viewOf, maxKeys),
    entryOf: (event) => ({ ...event, recorded: scheduler.now() }),
    scheduler,
  })
}
