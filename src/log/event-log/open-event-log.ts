import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { AppendClock } from './append-clock.ts'
import { Appender } from './append.ts'
import { appEntries } from './app-event.ts'
import type { AppEvent } from './app-event.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkOptions, checkSignal, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { isThenable } from '../../protocol/thenable.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { WebhookInbox } from '../../protocol/webhook.ts'
import { ConsumerSubscription } from '../consume/consumer.ts'
import { checkTypes, consumerSettings } from '../consume/consumer-options.ts'
import type { ConsumerOptions, ConsumerSettings, EntryOf, HandledBy } from '../consume/consumer-options.ts'
import { deadLettersOf } from './dead-letters.ts'
import type { DeadLetterQueue } from './dead-letters.ts'
import { consumerDelivery } from '../consume/consumer-delivery.ts'
import type { JobHandler } from '../consume/consumer-delivery.ts'
import { hasEffects } from '../consume/effects.ts'
import type { ConsumerEffects } from '../consume/effects.ts'
import { LogInUseError } from '../errors.ts'
import { checkExportOptions, exportLines } from './export.ts'
import type { ExportOptions } from './export.ts'
import { Job } from './job.ts'
import type { LogJob } from './job.ts'
import { logObservers } from './observer.ts'
import type { LogObserver } from './observer.ts'
import { Recorder } from '../record/recorder.ts'
import type { RecorderReports } from '../record/recorder.ts'
import { record } from '../record/recording.ts'
import { removeRecording } from '../record/progress-registry.ts'
import type { Recording, RecordOptions } from '../record/recording.ts'
import { definitionSettings, processSettings, RunningProcess } from '../process/process.ts'
import type {
  DefinitionProcessOptions,
  LogProcess,
  ProcessOptions,
  ProcessSettings,
} from '../process/process.ts'
import { StoredProcessState } from '../process/process-state.ts'
import type { ProcessState } from '../process/process-state.ts'
import { tableState } from '../process/table-state.ts'
import type { TableState } from '../process/table-state.ts'
import type { Table } from '../../streams/definition/table.ts'
import { processesMentioning } from '../process/mentioning.ts'
import { PartedStates } from '../process/parted-states.ts'
import { runShared } from '../process/shared-process.ts'
import { ProcessOrder } from '../process/process-order.ts'
import { ProcessRunner } from '../process/runner.ts'
import { Definition } from '../../streams/definition/define.ts'
import { Retention } from './retention.ts'
import type { RetentionOptions } from './retention.ts'
import { namesOf, wholeName } from '../consume/part-name.ts'
import { RequestContext } from './request-context.ts'
import { logStats } from './log-stats.ts'
import type { StoredStates } from '../store/process-store.ts'
import type { LogStats } from '../store/stats.ts'
import { Turns } from '../record/turns.ts'
import type { Appended, Entry, LogStore, Page, Position, StartAt } from '../store/contract.ts'
import type { EventLog, Forgotten, LogReadOptions } from './event-log.ts'
import { jobSettings } from '../consume/consumer-job-options.ts'
import type { AnyJobOptions, ConsumerBatches, ConsumerJobOptions } from '../consume/consumer-job-options.ts'
import { readerName } from './log-reader.ts'
import type { LogReader } from './log-reader.ts'

/** A subscription that the log ends when it is closed. */
type Ending = Pick<ConsumerSubscription, 'ended' | 'finish' | 'isStopped'>

type Handled = void | PromiseLike<unknown>

/** An open log, with everything that it runs until it is closed. Each of its features is in a file of its own. */
export class OpenEventLog implements EventLog {
  readonly inbox: WebhookInbox
  readonly states: StoredStates
  readonly #store: LogStore
  readonly #context = new RequestContext('a log')
  /** The latest subscription of each consumer that has not ended. */
  readonly #subscriptions = new Map<string, Ending>()
  /** Functions that stop the jobs, by the promise of each job's end. */
  readonly #jobs = new Map<Promise<void>, () => void>()
  /** Promises of the jobs' ends, by their subscriptions. */
  readonly #jobOf = new WeakMap<Ending, Promise<void>>()
  readonly #recorders = new Set<Recorder>()
  /** The names of the processes that run. */
  readonly #processes = new Set<string>()
  readonly #retention: Retention
  readonly #turns = new Turns()
  readonly #observers = logObservers()
  readonly #appender: Appender
  readonly #appendClock: AppendClock
  readonly #order: ProcessOrder

  /** @param tick The time between two ticks of its own clock while nothing is appended, in ms. */
  constructor(store: LogStore, retention: RetentionOptions, tick: number) {
    this.#store = store
    this.#retention = new Retention(store.retention, retention)
    this.#appender = new Appender(store, {
      observers: this.#observers,
      retention: this.#retention,
      runs: (reader) => Array.from(this.#subscriptions.keys()).some((name) => reader === `consumer:${name}`),
    })
    this.#appendClock = new AppendClock(tick, (onFailure) => this.recorder(onFailure))
    this.#order = new ProcessOrder(store, (use) => this.#withRecorder(use))
    this.inbox = store.inbox
    this.states = new PartedStates(store)
  }

  consume<Type extends ResearchEventType>(
    name: string,
    options?: ConsumerOptions<Type>,
  ): Observable<EntryOf<Type>>
  consume<Type extends ResearchEventType, Size extends number | undefined>(
    name: string,
    options: ConsumerJobOptions<Type> & { readonly batch?: ConsumerBatches<Type, Size> },
    handler: JobHandler<HandledBy<Type, Size>>,
  ): LogJob
  consume(name: string, handler: JobHandler<Entry>): LogJob
  consume<Type extends ResearchEventType>(
    name: string,
    ...given: readonly [(AnyJobOptions<Type> | JobHandler<never>)?, JobHandler<never>?]
  ): Observable<EntryOf<Type>> | LogJob {
    const [first = {}, handler] = given
    if (typeof first !== 'function' && !hasEffects<never>(first)) {
      return given.length > 1 ? this.#handled(name, first, handler) : this.#entries(name, first)
    }
    // Its options would be ignored.
    if (handler !== undefined)
      throw new ArgumentError('handler', 'the last argument, after the options', handler)
    return this.#handled(name, {}, first)
  }

  #entries<Type extends ResearchEventType>(
    name: string,
    options: ConsumerOptions<Type>,
  ): Observable<EntryOf<Type>> {
    const settings = consumerSettings(name, options)
    return new Observable((subscriber) => {
      this.#subscribe(name, settings, subscriber)
    })
  }

  #handled<Type extends ResearchEventType>(
    name: string,
    options: AnyJobOptions<Type>,
    handler: JobHandler<never> | undefined,
  ): LogJob {
    const { reading, delivery, batching } = jobSettings(name, options)
    const stopping = new AbortController()
    const signal =
      delivery.signal === undefined ? stopping.signal : AbortSignal.any([delivery.signal, stopping.signal])
    const observers = this.#observers
    const { effects, operator } = consumerDelivery<EntryOf<Type>>({
      name,
      handler,
      delivery: { ...delivery, signal },
      batching,
      // Without observers, a call costs one check.
      observed: (handle, entryOf) => (given, own) =>
        observers.isEmpty
          ? handle(given, own)
          : this.#handle(name, entryOf(given), () => handled(handle(given, own))),
    })
    let subscription: Ending | undefined
    const ended = Promise.withResolvers<void>()
    const entries = new Observable<EntryOf<Type>>((subscriber) => {
      subscription = this.#subscribe(name, reading, subscriber, effects)
      this.#jobOf.set(subscription, ended.promise)
    })
    const done = new Promise<void>((resolve, reject) => {
      entries.pipe(operator).subscribe({ error: reject, complete: resolve })
      // No handler is running now.
    }).finally(() => {
      ended.resolve()
      return subscription?.finish()
    })
    return this.#job(done, () => stopping.abort())
  }

  process<Result>(definition: Definition<Result>, options?: DefinitionProcessOptions): LogProcess<unknown>
  process<State, Type extends ResearchEventType>(
    name: string,
    options: ProcessOptions<State, Type>,
  ): LogProcess<State>
  process<State, Type extends ResearchEventType>(
    ...given: OfFunctions<State, Type> | OfDefinition
  ): LogProcess<unknown> {
    if (isOfDefinition(given)) {
      const [definition, options = {}] = given
      return this.#process(definition.name, definitionSettings(definition, options))
    }
    const [name, options] = given
    return this.#process(name, processSettings(name, options))
  }

  #process<State, Type extends ResearchEventType>(
    name: string,
    settings: ProcessSettings<State, Type>,
  ): LogProcess<State> {
    this.#context.check()
    const stopping = new AbortController()
    const { signal } = stopping
    const log = { store: this.#store, order: this.#order, observers: this.#observers }
    const done = this.#runAlone(name, () =>
      settings.share
        ? runShared(log, name, settings, signal)
        : new ProcessRunner(log, name, settings, signal).run(),
    )
    return new RunningProcess(
      this.states,
      name,
      this.#job(done, () => stopping.abort()),
    )
  }

  table<Item>(definition: Definition<unknown>, table: Table<Item>): TableState<Item> {
    return tableState(this.states, definition, table)
  }

  state<State>(process: string): ProcessState<State> {
    return new StoredProcessState(this.states, process)
  }

  deadLetters(reader: string | LogReader): DeadLetterQueue {
    const of = typeof reader === 'string' ? { consumer: reader } : reader
    return deadLettersOf(this.#store, readerName(of), of.process)
  }

  async read(after: Position, options: LogReadOptions = {}): Promise<Page> {
    checkText('after', after)
    checkOptions('options', options, ['limit', 'types'])
    const { limit = 100, types } = options
    checkInteger('limit', limit, 1, 10_000)
    if (types !== undefined) checkTypes(types)
    return this.#store.read(after, { limit, types })
  }

  positionAt(start: StartAt): Promise<Position> {
    return this.#store.positionAt(start)
  }

  wait(after: Position, signal: AbortSignal): Promise<void> {
    return this.#store.wait(after, signal)
  }

  observe(observer: LogObserver): () => void {
    return this.#observers.add(observer)
  }

  async forget(what: { readonly source: string }): Promise<Forgotten> {
    checkOptions('what', what ?? null, ['source'])
    checkText('what.source', what.source)
    const entries = await this.#store.retention.forget(what.source)
    return { entries, processes: await processesMentioning(this.#store, what.source) }
  }

  stats(): Promise<LogStats> {
    return logStats(this.#store)
  }

  export(options: ExportOptions = {}): AsyncIterable<string> {
    checkExportOptions(options)
    return exportLines(this.#store, options)
  }

  async remove(reader: LogReader | { readonly recording: string }): Promise<void> {
    if (isObject(reader) && 'recording' in reader) return this.#removeRecording(reader)
    const whole = readerName(reader)
    const { retention, deadLetters } = this.#store
    const { readers } = await retention.stats()
    const running = readers.find(({ name, owner }) => owner !== null && wholeName(name) === whole)
    if (running?.owner != null) throw new LogInUseError('the log', running.name, running.owner)
    const counts = await deadLetters.counts()
    for (const name of namesOf(whole, [...readers.map((each) => each.name), ...counts.keys()])) {
      await retention.remove(name)
      await deadLetters.remove(name, 'all')
    }
    while (await retention.clean());
    if (reader.process !== undefined) await this.#order.remove(reader.process)
  }

  async #removeRecording(given: { readonly recording: string }): Promise<void> {
    checkOptions('reader', given, ['recording'])
    checkText('reader.recording', given.recording)
    await this.#withRecorder((recorder) => removeRecording(recorder, given.recording))
  }

  /** Calls a function with a recorder, and closes it. Rejects with its failure. */
  async #withRecorder(use: (recorder: Recorder) => Promise<void>): Promise<void> {
    const failed = Promise.withResolvers<never>()
    const recorder = this.recorder(failed.reject)
    try {
      await Promise.race([failed.promise, use(recorder)])
    } finally {
      await recorder.close()
    }
  }

  record(options: RecordOptions): Recording {
    const { inbox } = this
    const { sharing } = this.#store
    const log = {
      inbox,
      sharing,
      recorder: (onFailure: (error: unknown) => void, reports: RecorderReports) =>
        this.recorder(onFailure, reports),
      // Windows of its last events end while the log is open.
      onDone: () => this.#appendClock.touch(),
    }
    return record(log, options)
  }

  async append(
    events: AppEvent | readonly AppEvent[],
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<Pick<Appended, 'entries' | 'duplicates'>> {
    const entries = appEntries(this.#store.name, events, rfc3339(Date.now()))
    checkOptions('options', options, ['signal'])
    const { signal } = options
    if (signal !== undefined) checkSignal('signal', signal)
    this.#context.check()
    const counts = await this.#appender.append(entries, signal)
    this.#appendClock.touch()
    return counts
  }

  recorder(onFailure: (error: unknown) => void, reports: RecorderReports = {}): Recorder {
    this.#context.check()
    const recorder = new Recorder(this.#store, onFailure, {
      observers: this.#observers,
      retention: this.#retention,
      ...reports,
      turns: this.#turns,
    })
    this.#recorders.add(recorder)
    void recorder.closed.then(() => this.#recorders.delete(recorder))
    return recorder
  }

  async close(): Promise<void> {
    this.#store.prepareClose?.()
    this.#appender.stopWaiting()
    for (const stop of this.#jobs.values()) stop()
    const ended = await Promise.allSettled([
      // The jobs report their own failures.
      Promise.allSettled(this.#jobs.keys()),
      ...Array.from(this.#subscriptions.values(), async (subscription) => {
        // The handlers of a job end first, so that what they handled is saved.
        await this.#jobOf.get(subscription)
        await subscription.finish()
      }),
      ...Array.from(this.#recorders, (recorder) => recorder.close()),
    ])
    // After the handlers, which may append.
    await this.#appender.close()
    await this.#appendClock.close()
    await this.#retention.stop()
    await this.#store.close()
    const failed = ended.find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #job(done: Promise<void>, stop: () => void): LogJob {
    this.#jobs.set(done, stop)
    const forget = () => this.#jobs.delete(done)
    done.then(forget, forget)
    return new Job(done, stop)
  }

  /** A second run of the same open log would fence the first. */
  async #runAlone(process: string, run: () => Promise<void>): Promise<void> {
    if (this.#processes.has(process)) {
      throw new LogInUseError('the log', `process:${process}`, 'another run of the same open log')
    }
    this.#processes.add(process)
    try {
      await run()
    } finally {
      this.#processes.delete(process)
    }
  }

  /** Calls a handler within the observers of the log. */
  #handle(consumer: string, entry: Entry, call: () => Handled): Handled {
    return this.#observers.around(call, (observer, proceed) =>
      observer.handle === undefined ? proceed() : observer.handle(consumer, entry, proceed, 'consumer'),
    )
  }

  #subscribe<Type extends ResearchEventType>(
    name: string,
    settings: ConsumerSettings<Type>,
    subscriber: Subscriber<EntryOf<Type>>,
    effects?: ConsumerEffects<unknown>,
  ): Ending {
    this.#context.check()
    const previous = this.#subscriptions.get(name)
    if (previous?.isStopped === false) {
      throw new LogInUseError('the log', `consumer:${name}`, 'another subscription of the same open log')
    }
    const subscription = new ConsumerSubscription(this.#store, subscriber, {
      name,
      settings,
      after: previous?.ended,
      effects,
    })
    this.#subscriptions.set(name, subscription)
    void subscription.ended.then(() => {
      if (this.#subscriptions.get(name) === subscription) this.#subscriptions.delete(name)
    })
    return subscription
  }
}

type OfFunctions<State, Type extends ResearchEventType> = readonly [
  name: string,
  options: ProcessOptions<State, Type>,
]

type OfDefinition = readonly [definition: Definition<unknown>, options?: DefinitionProcessOptions]

function isOfDefinition<State, Type extends ResearchEventType>(
  given: OfFunctions<State, Type> | OfDefinition,
): given is OfDefinition {
  return given[0] instanceof Definition
}

/** A query of some libraries runs at each call of its `then`: observers and `deliver` share a promise of it. */
function handled(result: Handled): Handled {
  return isThenable(result) && !(result instanceof Promise) ? Promise.resolve(result) : result
}
