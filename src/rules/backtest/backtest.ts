import { isObservable } from 'rxjs'
import type { Observable } from 'rxjs'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkFunction, checkOptions, checkText, checkTime } from '../../protocol/check.ts'
import { isTimeEventType } from '../../protocol/event-types.ts'
import { eventTime } from '../../streams/clocks.ts'
import { viewOf } from '../cel/index.ts'
import type { RuleInput } from '../evaluate/event-time.ts'
import { InMemoryRules } from '../evaluate/in-memory.ts'
import type { AlertEvent } from '../evaluate/in-memory.ts'
import { checkRuleSet } from '../check-arguments.ts'
import { compiledRules } from '../rule-set.ts'
import type { RuleSet } from '../rule-set.ts'
import { Recorder } from './report.ts'
import type { BacktestReport } from './report.ts'
import { passTime } from './simulated-time.ts'

/** Events of the past, in the order in which they came: entries of a log, or events without the fields of an entry. */
export type BacktestEvents = Iterable<RuleInput> | AsyncIterable<RuleInput> | Observable<RuleInput>

/** Settings of {@link backtest}. */
interface BacktestOptions {
  /** Called for each event of an alert, in order. The report has only a part of them if there are very many. */
  readonly onAlert?: (event: AlertEvent) => void
  /** The end of the time that passes after the last event, in Unix ms, so that deadlines fire. Default: time ends with the last event. */
  readonly until?: number
  /**
   * The name of the process that ran rules over the log. Its own events in the log do not move the time, as they did not for that
   * process. Default `rules`, as in `runRules`.
   */
  readonly name?: string
}

/**
 * Evaluates rules over events of the past, in memory: what would have fired, when, and how often. It keeps the states of the
 * rules and a report of bounded size, so the events may be many.
 *
 * Entries of a log give exactly the alerts that rules over this log have had: time moves only with its entries and ticks. Between other
 * events, which come at their `received`, time passes evenly, as with a recorder that never stops.
 *
 * Rejects with an ArgumentError for an invalid setting, and with an error of the events.
 *
 * @example
 * ```ts
 * import { createClient } from 'rivulet'
 * import { backtest, loadRules, placeHistory } from 'rivulet/rules'
 *
 * const client = createClient({ baseUrl: 'http://127.0.0.1:8080', apiKey: 'key' })
 * const newestFirst = []
 * for await (const event of client.monitors.events('monitor_1', { include_completions: true })) newestFirst.push(event)
 * const { events, placed } = placeHistory(newestFirst)
 *
 * const report = await backtest(await loadRules('rules.yaml'), events, { until: Date.now() })
 * for (const { rule, fired } of report.rules) console.log(`${rule} fired ${fired} times`)
 * console.log(`${placed.date} events were placed by their date`)
 * ```
 */
export async function backtest(
  rules: RuleSet,
  events: BacktestEvents,
  options: BacktestOptions = {},
): Promise<BacktestReport> {
  checkRuleSet(rules)
  checkEvents(events)
  checkOptions('options', options, ['onAlert', 'until', 'name'])
  const { onAlert, until, name = 'rules' } = options
  if (onAlert !== undefined) checkFunction('options.onAlert', onAlert)
  if (until !== undefined) checkTime('options.until', until)
  checkText('options.name', name)
  const compiled = compiledRules(rules)
  const engine = new InMemoryRules(compiled, viewOf)
  const recorder = new Recorder(compiled)
  const emit = (emitted: readonly AlertEvent[]) => {
    for (const event of emitted) {
      recorder.alert(event)
      onAlert?.(event)
    }
  }
  const next = (event: RuleInput) => {
    if (event.cause?.process === name) return
    if (event.recorded === undefined) {
      passTime(engine, timeOf(event.received), emit)
      emit(engine.arrive(event))
    } else emit(engine.next(event))
    const at = eventTime(event)
    // Ticks and alerts are no events of the past.
    if (event.via === 'process' || isTimeEventType(event.type)) recorder.passed(at)
    else recorder.event(at)
  }
  if (isObservable(events)) await events.forEach(next)
  else if (Symbol.asyncIterator in events) for await (const event of events) next(event)
  else for (const event of events) next(event)
  if (until !== undefined) {
    passTime(engine, until, emit)
    recorder.passed(until)
  }
  return recorder.report()
}

function checkEvents(events: unknown): void {
  const isEvents =
    typeof events === 'object' &&
    events !== null &&
    (isObservable(events) || Symbol.asyncIterator in events || Symbol.iterator in events)
  if (!isEvents) throw new ArgumentError('events', 'an iterable or an Observable of events', events)
}

function timeOf(text: string): number {
  const at = Date.parse(text)
  return Number.isNaN(at) ? -Infinity : at
}
