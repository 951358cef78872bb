import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { deliver } from '../../../operators/deliver.ts'
import { ArgumentError } from '../../protocol/argument-error.ts'
import { checkInteger, checkOptions, checkText } from '../../protocol/check.ts'
import { isObject } from '../../protocol/json.ts'
import type { ResearchEventType } from '../../protocol/event.ts'
import { isThenable } from '../../protocol/thenable.ts'
import type { WebhookInbox } from '../../protocol/webhook.ts'
import { ConsumerSubscription } from '../consume/consumer.ts'
import { checkTypes, consumerSettings } from '../consume/consumer-options.ts'
import type { ConsumerOptions, ConsumerSettings, EntryOf } from '../consume/consumer-options.ts'
import { deadLettersOf } from './dead-letters.ts'
import type { DeadLetterQueue } from './dead-letters.ts'
import { ConsumerEffects, effectDelivery, hasEffects } from '../consume/effects.ts'
import type { EffectHandler } from '../consume/effects.ts'
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
import { processSettings, RunningProcess } from '../process/process.ts'
import type { LogProcess, ProcessOptions } from '../process/process.ts'
import { StoredProcessState } from '../process/process-state.ts'
import type { ProcessState } from '../process/process-state.ts'
import { processesMentioning } from '../process/mentioning.ts'
import { PartedStates } from '../process/parted-states.ts'
import { runShared } from '../process/shared-process.ts'
import { ProcessRunner } from '../process/runner.ts'
import { Retention } from './retention.ts'
import type { RetentionOptions } from './retention.ts'
import { namesOf, wholeName } from '../consume/part-name.ts'
import { RequestContext } from './request-context.ts'
import { logStats } from './log-stats.ts'
import type { StoredStates } from '../store/process-store.ts'
import type { LogStats } from '../store/stats.ts'
import { Turns } from '../record/turns.ts'
import type { Entry, LogStore, Page, Position, StartAt } from '../store/contract.ts'
import type { EventLog, Forgotten, LogReadOptions } from './event-log.ts'
import { splitOptions } from '../consume/consumer-job-options.ts'
import type { ConsumerJobOptions } from '../consume/consumer-job-options.ts'
import { readerName } from './log-reader.ts'
import type { LogReader } from './log-reader.ts'

/** A subscription that the log ends when it is closed. */
type Ending = Pick<ConsumerSubscription, 'ended' | 'finish' | 'isStopped'>

type Handled = void | PromiseLike<unknown>

type AnyHandler<T> = Handler<T> | EffectHandler<T>

type Handler<T> = (entry: T, signal: AbortSignal) => Handled

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

  constructor(store: LogStore, retention: RetentionOptions) {
    this.#store = store
    this.#retention = new Retention(store.retention, retention)
    this.inbox = store.inbox
    this.states = new PartedStates(store)
  }

  consume<Type extends ResearchEventType>(
    name: string,
    options?: ConsumerOptions<Type>,
  ): Observable<EntryOf<Type>>
  consume<Type extends ResearchEventType>(
    name: string,
    options: ConsumerJobOptions<Type>,
    handler: AnyHandler<EntryOf<Type>>,
  ): LogJob
  consume(name: string, handler: AnyHandler<Entry>): LogJob
  consume<Type extends ResearchEventType>(
    name: string,
    ...given: readonly [(ConsumerJobOptions<Type> | AnyHandler<EntryOf<Type>>)?, AnyHandler<EntryOf<Type>>?]
  ): Observable<EntryOf<Type>> | LogJob {
    const [first = {}, handler] = given
    if (typeof first !== 'function' && !hasEffects<EntryOf<Type>>(first)) {
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
    options: ConsumerJobOptions<Type>,
    handler: AnyHandler<EntryOf<Type>> | undefined,
  ): LogJob {
    const effects = hasEffects<EntryOf<Type>>(handler) ? new ConsumerEffects(handler) : undefined
    const handle = handlerOf(handler, effects)
    const [reading, plain] = splitOptions(options)
    const delivery = effects === undefined ? plain : effectDelivery(effects, plain)
    const settings = consumerSettings(name, reading)
    const stopping = new AbortController()
    const { signal } = delivery
    const abort = signal === undefined ? stopping.signal : AbortSignal.any([signal, stopping.signal])
    let subscription: Ending | undefined
    const ended = Promise.withResolvers<void>()
    const entries = new Observable<EntryOf<Type>>((subscriber) => {
      subscription = this.#subscribe(name, settings, subscriber, effects)
      this.#jobOf.set(subscription, ended.promise)
    })
    const observers = this.#observers
    // Without observers, a call costs one check.
    const observed: Handler<EntryOf<Type>> = (entry, own) =>
      observers.isEmpty ? handle(entry, own) : this.#handle(name, entry, () => handled(handle(entry, own)))
    const delivered = entries.pipe(deliver(observed, { ...delivery, signal: abort }))
    const done = new Promise<void>((resolve, reject) => {
      delivered.subscribe({ error: reject, complete: resolve })
      // No handler is running now.
    }).finally(() => {
      ended.resolve()
      return subscription?.finish()
    })
    return this.#job(done, () => stopping.abort())
  }

  process<State, Type extends ResearchEventType>(
    name: string,
    options: ProcessOptions<State, Type>,
  ): LogProcess<State> {
    const settings = processSettings(name, options)
    this.#context.check()
    const stopping = new AbortController()
    const { signal } = stopping
    const done = this.#runAlone(name, () =>
      settings.share
        ? runShared(this.#store, name, settings, signal, this.#observers)
        : new ProcessRunner(this.#store, name, settings, signal, this.#observers).run(),
    )
    return new RunningProcess(
      this.states,
      name,
      this.#job(done, () => stopping.abort()),
    )
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

  async stats(): Promise<LogStats> {
    return logStats(await this.#store.retention.stats())
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
  }

  async #removeRecording(given: { readonly recording: string }): Promise<void> {
    checkOptions('reader', given, ['recording'])
    checkText('reader.recording', given.recording)
    const failed = Promise.withResolvers<never>()
    const recorder = this.recorder(failed.reject)
    try {
      await Promise.race([failed.promise, removeRecording(recorder, given.recording)])
    } finally {
      await recorder.close()
    }
  }

  record(options: RecordOptions): Recording {
    const { inbox } = this
    const { sharing } = this.#store
    return record(
      { inbox, sharing, recorder: (onFailure, reports) => this.recorder(onFailure, reports) },
      options,
    )
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
    effects?: ConsumerEffects<EntryOf<Type>>,
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

/** The handler that is called for each entry. */
function handlerOf<E extends Entry>(
  handler: AnyHandler<E> | undefined,
  effects: ConsumerEffects<E> | undefined,
): Handler<E> {
  if (effects !== undefined) {
    return (entry, signal) => effects.store(entry, (own) => own.handle(entry, signal))
  }
  if (typeof handler === 'function') return handler
  throw new ArgumentError('handler', 'a function', handler)
}

/** A query of some libraries runs at each call of its `then`: observers and `deliver` share a promise of it. */
function handled(result: Handled): Handled {
  return isThenable(result) && !(result instanceof Promise) ? Promise.resolve(result) : result
}
