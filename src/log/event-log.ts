import { Observable } from 'rxjs'
import type { Subscriber } from 'rxjs'
import { deliver } from '../../operators/deliver.ts'
import type { DeliverConfig } from '../../operators/deliver.ts'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkInteger, checkOptions, checkText } from '../protocol/check.ts'
import type { ResearchEventType } from '../protocol/event.ts'
import { Observers } from '../protocol/observers.ts'
import { isThenable } from '../protocol/thenable.ts'
import type { WebhookInbox } from '../protocol/webhook.ts'
import { ConsumerSubscription } from './consume/consumer.ts'
import { checkStart, consumerSettings } from './consume/consumer-options.ts'
import type { ConsumerOptions, ConsumerSettings, EntryOf } from './consume/consumer-options.ts'
import { deadLettersOf } from './dead-letters.ts'
import type { DeadLetterQueue } from './dead-letters.ts'
import { effectDelivery, EFFECTS, hasEffects } from './consume/effects.ts'
import type { EffectHandler, Effects } from './consume/effects.ts'
import { LogInUseError } from './errors.ts'
import { storingInbox } from './inbox.ts'
import { exportLines } from './export.ts'
import type { ExportOptions } from './export.ts'
import { Job } from './job.ts'
import type { LogJob } from './job.ts'
import type { LogObserver } from './observer.ts'
import { Recorder } from './record/recorder.ts'
import { processSettings, RunningProcess } from './process/process.ts'
import type { LogProcess, ProcessOptions } from './process/process.ts'
import { StoredProcessState } from './process/process-state.ts'
import type { ProcessState } from './process/process-state.ts'
import { ProcessRunner } from './process/runner.ts'
import { Retention, retentionSettings } from './retention.ts'
import type { RetentionOptions } from './retention.ts'
import { logStats } from './log-stats.ts'
import type { LogStats } from './store/stats.ts'
import { Turns } from './record/turns.ts'
import type { Entry, LogStore, Page, Position, ReadOptions, StartAt } from './store/contract.ts'

/** Settings of {@link EventLog.consume}: those of a consumer and of `deliver`. */
export interface ConsumeOptions<Type extends ResearchEventType = ResearchEventType>
  extends ConsumerOptions<Type>, Omit<DeliverConfig<EntryOf<Type>>, 'gate' | 'scheduler'> {}

/** A durable sequence of events with any number of readers, each at its own pace. */
export interface EventLog extends AsyncDisposable {
  /**
   * Where a receiver stores webhooks before its response, in any process that opens the log:
   * `createWebhookReceiver({ secrets, inbox: log.inbox })`. `client.record({ webhooks, log })` records them.
   */
  readonly inbox: WebhookInbox
  /**
   * The entries of a consumer, for `deliver` and `for await`, which acknowledge them. The consumer resumes at the first entry
   * that was not acknowledged. Each subscription claims the name.
   *
   * Errors with a `LogInUseError` while another open log has claimed the name, with a `FencedError` once it was claimed again,
   * and with a `StalledConsumerError` when an operator has dropped entries. Completes when the log is closed.
   *
   * ```ts
   * import { memoryLog, openLog } from 'rivulet'
   * import { deliver } from 'rivulet/operators'
   *
   * const log = await openLog(memoryLog())
   * log.consumer('billing', { types: ['task_run.state'] })
   *   .pipe(deliver((entry) => console.log(entry.data.run.run_id, entry.revision)))
   *   .subscribe()
   * ```
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  consumer<const Type extends ResearchEventType = ResearchEventType>(
    name: string,
    options?: ConsumerOptions<Type>,
  ): Observable<EntryOf<Type>>
  /**
   * Calls the handler for each entry of a consumer: {@link consumer} with `deliver`, as a job.
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  consume<const Type extends ResearchEventType = ResearchEventType>(
    name: string,
    options: ConsumeOptions<Type>,
    handler:
      | ((entry: EntryOf<Type>, signal: AbortSignal) => void | PromiseLike<unknown>)
      | EffectHandler<EntryOf<Type>>,
  ): LogJob
  consume(
    name: string,
    handler: ((entry: Entry, signal: AbortSignal) => void | PromiseLike<unknown>) | EffectHandler<Entry>,
  ): LogJob
  /**
   * The entries that a consumer could not handle, where its `deadLetters` is `'log'`, or a process, where its `onError` is
   * `'dead-letter'`. Those of a process are listed and removed, and not handed out again: rebuild the process.
   *
   * @param reader The name of a consumer, or a reader as in {@link remove}.
   * @throws ArgumentError for anything but one name.
   */
  deadLetters(reader: string | LogReader): DeadLetterQueue
  /**
   * Runs functions over the entries, with a state for each key and with timers. State, timers, output and the position in the
   * log are committed together, so each entry counts exactly once, whatever is killed.
   *
   * Rejects, as `done`, with a `LogInUseError` while another one runs this process, with a `FencedError` once it was claimed
   * again, with a `ProcessError` where a function fails, and with a `ProcessVersionError`.
   *
   * ```ts
   * import { memoryLog, openLog } from 'rivulet'
   *
   * const log = await openLog(memoryLog())
   * const counts = log.process('counts', {
   *   version: 1,
   *   key: (entry) => entry.source,
   *   init: () => ({ entries: 0 }),
   *   event: (state, entry, context) => context.set({ entries: state.entries + 1 }),
   * })
   * console.log((await counts.snapshot()).state)
   * ```
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  process<State, const Type extends ResearchEventType = ResearchEventType>(
    name: string,
    options: ProcessOptions<State, Type>,
  ): LogProcess<State>
  /** The state of a process that runs here, elsewhere or not at all. One that never ran has no states. */
  state<State = unknown>(process: string): ProcessState<State>
  /**
   * Reads a page after a position, of any reader's or of {@link positionAt}, without a consumer. Rejects with a
   * `LogPositionError`.
   *
   * @param options `limit` from 1 to 10,000, default 100.
   */
  read(after: Position, options?: Partial<ReadOptions>): Promise<Page>
  /** The position at which to begin. */
  positionAt(start: StartAt): Promise<Position>
  /**
   * Deletes a consumer or process that is gone: its position and its dead letters. Retention keeps nothing for it any
   * more, and the name begins anew. Without effect for an unknown one. Rejects with a `LogInUseError` while it is running,
   * here or in another process.
   *
   * @throws ArgumentError for anything but one name.
   */
  remove(reader: LogReader): Promise<void>
  /**
   * Deletes what the log has of a source, where the law or a customer asks for it: its entries and their dead letters, its
   * webhooks, and what processes have appended because of it, also one because of another, or would append later because of
   * a deleted entry. Also from free space of the file and its write-ahead log.
   * Resolves with the number of deleted entries. Positions of readers stay, and no gap is reported.
   *
   * What it does not do: it keeps hashes of the events' identities, so that they are not recorded again; new events of the
   * source are recorded, so stop that first; processes keep their state, so rebuild them; and backups keep what they have.
   *
   * After a crash, and where it rejects, call it again.
   */
  forget(what: { readonly source: string }): Promise<number>
  /** The numbers of the log and of each of its readers. They take some ms, however many entries it has. */
  stats(): Promise<LogStats>
  /**
   * Copies the log into a new file with mode 0600, as it was at one moment, while it is written to. The copy is a log of its
   * own: it has all readers with their positions, and it refuses positions of this log.
   *
   * Rejects with a `LogFileError` where the file exists or cannot be written, and leaves no part of it; with a
   * `LogUnsupportedError` for a log in memory.
   *
   * @param file A path on a local disk.
   */
  backup(file: string): Promise<void>
  /**
   * The entries as newline-delimited JSON, one CloudEvent 1.0 each. `position`, `recorded`, `revision`, `backfill`, `received`,
   * `via`, `cursor` and `cause` (as JSON) are extension attributes. A `time` that is not RFC 3339 is left out, and a text
   * that CloudEvents does not allow in an attribute.
   *
   * ```ts
   * import { createWriteStream } from 'node:fs'
   * import { Readable } from 'node:stream'
   * import { pipeline } from 'node:stream/promises'
   * import { memoryLog, openLog } from 'rivulet'
   *
   * await using log = await openLog(memoryLog())
   * await pipeline(Readable.from(log.export()), createWriteStream('events.ndjson'))
   * ```
   */
  export(options?: ExportOptions): AsyncIterable<string>
  /** Observes the log from now on, for metrics and traces, until the returned function is called. */
  observe(observer: LogObserver): () => void
  /**
   * A writer of upstream streams, which `client.record` uses.
   *
   * @internal
   * @param onFailure Called once, when the log has refused an append. Nothing is recorded any more.
   * @param onPause Called with the reader that keeps the log too large, and with null when recording goes on.
   */
  recorder(onFailure: (error: unknown) => void, onPause?: (reader: string | null) => void): Recorder
  /**
   * Stops every job as its `stop` does, completes every consumer, saves what was acknowledged, and closes the store. Rejects
   * where something could not be saved.
   */
  close(): Promise<void>
}

/** Settings of {@link openLog}. */
export interface LogOptions {
  /** How long this log keeps what it records. */
  readonly retention?: RetentionOptions
}

/** A consumer or a process, by its name. */
export type LogReader =
  | { readonly consumer: string; readonly process?: undefined }
  | { readonly process: string; readonly consumer?: undefined }

/**
 * Opens a log. Its recorders delete what is beyond `retention`; the oldest entry that a consumer or process needs, and those
 * after it, are kept.
 *
 * ```ts
 * import { memoryLog, openLog } from 'rivulet'
 *
 * await using log = await openLog(memoryLog())
 * ```
 */
export async function openLog(store: LogStore, options: LogOptions = {}): Promise<EventLog> {
  checkOptions('options', options, ['retention'])
  const retention = retentionSettings(options.retention)
  // A store that cannot be opened refuses this.
  await store.positionAt('start')
  return new StoredLog(store, retention)
}

/** What a log ends when it is closed. */
type Ending = Pick<ConsumerSubscription, 'ended' | 'finish' | 'isStopped'>

type Handled = void | PromiseLike<unknown>

type AnyHandler<T> = Handler<T> | EffectHandler<T>

type Handler<T> = (entry: T, signal: AbortSignal) => Handled

class StoredLog implements EventLog {
  readonly inbox: WebhookInbox
  readonly #store: LogStore
  /** The latest subscription of each consumer that has not ended. */
  readonly #subscriptions = new Map<string, Ending>()
  /** What stops each job, by its end. */
  readonly #jobs = new Map<Promise<void>, () => void>()
  /** The ends of jobs, by their subscriptions. */
  readonly #jobOf = new WeakMap<Ending, Promise<void>>()
  readonly #recorders = new Set<Recorder>()
  /** The names of the processes that run. */
  readonly #processes = new Set<string>()
  readonly #retention: Retention
  readonly #turns = new Turns()
  readonly #observers = new Observers<LogObserver>()

  constructor(store: LogStore, retention: RetentionOptions) {
    this.#store = store
    this.#retention = new Retention(store.retention, retention)
    this.inbox = storingInbox(store.inbox)
  }

  consumer<Type extends ResearchEventType>(
    name: string,
    options: ConsumerOptions<Type> = {},
  ): Observable<EntryOf<Type>> {
    const settings = consumerSettings(name, options)
    return new Observable((subscriber) => {
      this.#subscribe(name, settings, subscriber)
    })
  }

  consume<Type extends ResearchEventType>(
    name: string,
    given: ConsumeOptions<Type> | AnyHandler<EntryOf<Type>>,
    givenHandler?: AnyHandler<EntryOf<Type>>,
  ): LogJob {
    const isHandler = typeof given === 'function' || hasEffects<EntryOf<Type>>(given)
    const [options, handler] = isHandler ? [{}, given] : [given, givenHandler]
    const effects = hasEffects<EntryOf<Type>>(handler) ? handler[EFFECTS]() : undefined
    const handle = effects === undefined ? handler : effects.handle.bind(effects)
    if (typeof handle !== 'function') throw new ArgumentError('handler', 'a function', handler)
    const [reading, plain] = split(options)
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
      // No handler is running any more.
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
    const stopping = new AbortController()
    const runner = new ProcessRunner(this.#store, name, settings, stopping.signal, this.#observers)
    const done = this.#runAlone(name, () => runner.run())
    return new RunningProcess(
      this.#store,
      name,
      this.#job(done, () => stopping.abort()),
    )
  }

  state<State>(process: string): ProcessState<State> {
    return new StoredProcessState(this.#store, process)
  }

  deadLetters(reader: string | LogReader): DeadLetterQueue {
    const of = typeof reader === 'string' ? { consumer: reader } : reader
    return deadLettersOf(this.#store, readerName(of), of.process)
  }

  async read(after: Position, options: Partial<ReadOptions> = {}): Promise<Page> {
    const { limit = 100, types } = options
    checkInteger('limit', limit, 1, 10_000)
    return this.#store.read(after, { limit, types })
  }

  positionAt(start: StartAt): Promise<Position> {
    checkStart('start', start)
    return this.#store.positionAt(start)
  }

  observe(observer: LogObserver): () => void {
    return this.#observers.add(observer)
  }

  async forget(what: { readonly source: string }): Promise<number> {
    checkOptions('what', what, ['source'])
    checkText('what.source', what?.source)
    return this.#store.retention.forget(what.source)
  }

  async stats(): Promise<LogStats> {
    return logStats(await this.#store.retention.stats())
  }

  async backup(file: string): Promise<void> {
    checkText('file', file)
    await this.#store.retention.backup(file)
  }

  export(options: ExportOptions = {}): AsyncIterable<string> {
    checkOptions('options', options, ['after', 'until', 'types'])
    return exportLines(this.#store, options)
  }

  async remove(reader: LogReader): Promise<void> {
    const name = readerName(reader)
    await this.#store.retention.remove(name)
    await this.#store.deadLetters.remove(name, 'all')
    while (await this.#store.processes.clean());
  }

  recorder(onFailure: (error: unknown) => void, onPause?: (reader: string | null) => void): Recorder {
    const recorder = new Recorder(this.#store, onFailure, {
      observers: this.#observers,
      retention: this.#retention,
      onPause,
      turns: this.#turns,
    })
    this.#recorders.add(recorder)
    void recorder.closed.then(() => this.#recorders.delete(recorder))
    return recorder
  }

  async close(): Promise<void> {
    this.#store.prepareClose()
    for (const stop of this.#jobs.values()) stop()
    const ended = await Promise.allSettled([
      // Their failures are reported by the jobs.
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

  /** Calls a handler as the observers want it. */
  #handle(consumer: string, entry: Entry, call: () => Handled): Handled {
    return this.#observers.around(call, (observer, proceed) =>
      observer.handle === undefined ? proceed() : observer.handle(consumer, entry, proceed, 'consumer'),
    )
  }

  #subscribe<Type extends ResearchEventType>(
    name: string,
    settings: ConsumerSettings<Type>,
    subscriber: Subscriber<EntryOf<Type>>,
    effects?: Effects<EntryOf<Type>>,
  ): Ending {
    const previous = this.#subscriptions.get(name)
    if (previous?.isStopped === false) {
      throw new LogInUseError('the log', `consumer:${name}`, 'another subscription of the same open log')
    }
    const subscription = new ConsumerSubscription(
      this.#store,
      name,
      settings,
      subscriber,
      previous?.ended,
      effects,
    )
    this.#subscriptions.set(name, subscription)
    void subscription.ended.then(() => {
      if (this.#subscriptions.get(name) === subscription) this.#subscriptions.delete(name)
    })
    return subscription
  }
}

/** A query of some libraries runs at each call of its `then`: observers and `deliver` share a promise of it. */
function handled(result: Handled): Handled {
  return isThenable(result) && !(result instanceof Promise) ? Promise.resolve(result) : result
}

/** The name of a reader in the store. */
function readerName(reader: LogReader): string {
  checkOptions('reader', reader, ['consumer', 'process'])
  const { consumer, process } = reader
  if (consumer === undefined) {
    checkText('reader.process', process)
    return `process:${process}`
  }
  if (process !== undefined) throw new ArgumentError('reader', 'a consumer or a process, not both', reader)
  checkText('reader.consumer', consumer)
  return `consumer:${consumer}`
}

/** The settings of the consumer, and those of `deliver`. */
function split<Type extends ResearchEventType>({
  types,
  where,
  startAt,
  revisions,
  maxUnacknowledged,
  stallTimeout,
  wait,
  scheduler,
  ...delivery
}: ConsumeOptions<Type>): [ConsumerOptions<Type>, DeliverConfig<EntryOf<Type>>] {
  return [
    {
      ...(types !== undefined && { types }),
      ...(where !== undefined && { where }),
      ...(startAt !== undefined && { startAt }),
      ...(revisions !== undefined && { revisions }),
      ...(maxUnacknowledged !== undefined && { maxUnacknowledged }),
      ...(stallTimeout !== undefined && { stallTimeout }),
      ...(wait !== undefined && { wait }),
      ...(scheduler !== undefined && { scheduler }),
    },
    { ...delivery, ...(scheduler !== undefined && { scheduler }) },
  ]
}
