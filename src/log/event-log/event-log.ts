/// <reference lib="esnext.disposable" preserve="true" />
import type { Observable } from 'rxjs'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { WebhookInbox } from '../../protocol/webhook.ts'
import type { AppEvent } from './app-event.ts'
import type { JobHandler } from '../consume/consumer-delivery.ts'
import type { ConsumerBatches, ConsumerJobOptions } from '../consume/consumer-job-options.ts'
import type { ConsumerOptions, EntryOf, HandledBy } from '../consume/consumer-options.ts'
import type { DeadLetterQueue } from './dead-letters.ts'
import type { ExportOptions } from './export.ts'
import type { LogJob } from './job.ts'
import type { LogObserver } from './observer.ts'
import type { LogReader } from './log-reader.ts'
import type { Recorder, RecorderReports } from '../record/recorder.ts'
import type { Recording, RecordOptions } from '../record/recording.ts'
import type { Definition } from '../../streams/definition/define.ts'
import type { DefinitionProcessOptions, LogProcess, ProcessOptions } from '../process/process.ts'
import type { ProcessState } from '../process/process-state.ts'
import type { TableState } from '../process/table-state.ts'
import type { Table } from '../../streams/definition/table.ts'
import type { StoredStates } from '../store/process-store.ts'
import type { LogStats } from '../store/stats.ts'
import type { Appended, Entry, Page, Position, StartAt } from '../store/contract.ts'

/** Result of {@link EventLog.forget}: what was deleted, and which processes still mention the source. */
export interface Forgotten {
  /** Number of deleted entries. */
  readonly entries: number
  /**
   * Names of the processes whose state or timers mention the source or the id at its end, views of gateways included. A short id may be
   * mentioned by chance.
   */
  readonly processes: readonly string[]
}

/** Settings of {@link EventLog.read}. */
export interface LogReadOptions {
  /** Maximum number of entries, from 1 to 10,000. A page of more than 1 MiB has fewer. Default 100. */
  readonly limit?: number
  /** Only entries of these types. Default: all. */
  readonly types?: readonly string[] | undefined
}

/** A durable sequence of events with any number of readers, each at its own pace. */
export interface EventLog extends AsyncDisposable {
  /**
   * The inbox in which a receiver stores webhooks before its response, in any process that opens the log:
   * `createWebhookReceiver({ secrets, inbox: log.inbox })`. {@link record} with `webhooks` records them.
   */
  readonly inbox: WebhookInbox
  /**
   * Records monitors, task groups, single and FindAll runs and webhooks for any number of consumers: each event once, in one transaction with
   * the position of its stream. Each stream resumes from its position in the log.
   *
   * `done` resolves when the lists have completed, every group and run is done and every monitor is cancelled, and when the
   * log is closed. It rejects with a `LogInUseError` if another recording has one of the streams; with the reason of `wait` if that is
   * aborted first; with the error of an append that the log refuses; with a `LogError` for a position in the log that
   * cannot be read; and with the errors of `client.watch`.
   *
   * ```ts
   * import { createClient } from 'rivulet'
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
   * const recording = log.record({ client: createClient(), monitors: ['monitor_1'] })
   * log.consume('alerts', (entry) => console.log(entry.type, entry.id))
   * await recording.done
   * ```
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  record(options: RecordOptions): Recording
  /**
   * The entries of a consumer, for `deliver` and `for await`, which acknowledge them. The consumer resumes at the first entry
   * that was not acknowledged. Each subscription claims the name.
   *
   * Errors with a `LogInUseError` while another open log has claimed the name, with a `FencedError` once it was claimed again,
   * and with a `StalledConsumerError` when an operator has dropped entries. Completes when the log is closed.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   * import { deliver } from 'rivulet/operators'
   *
   * const log = await openLog(memoryStore())
   * log.consume('billing', { types: ['task_run.state'] })
   *   .pipe(deliver((entry) => console.log(entry.data.run.run_id, entry.revision)))
   *   .subscribe()
   * ```
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  consume<const Type extends ResearchEventType = ResearchEventType>(
    name: string,
    options?: ConsumerOptions<Type>,
  ): Observable<EntryOf<Type>>
  /**
   * With a handler, a job that has begun: calls the handler for each entry of the consumer, as `deliver` does. Its `done` rejects with a
   * `ConsumerError` once the handler has failed for good and there are no `deadLetters`, and with the errors that an Observable of the
   * consumer has.
   *
   * With `batch`, the handler gets batches of the entries. A batch is acknowledged when it is handled. One that fails for good is divided
   * until the entry at fault is alone: only that one becomes a dead letter. So a handler gets entries again that were in a batch that
   * failed; with `exactlyOnce`, their effects happen once all the same.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
   * log.consume('warehouse', { batch: { size: 500, wait: 1_000 }, deadLetters: 'log' }, (entries) =>
   *   console.log(`${entries.length} rows, the first one of ${entries[0].source}`),
   * )
   * ```
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  consume<
    const Type extends ResearchEventType = ResearchEventType,
    Size extends number | undefined = undefined,
  >(
    name: string,
    options: ConsumerJobOptions<Type> & {
      /** Collects entries into batches for the handler. Default: it gets one entry at a time. */
      readonly batch?: ConsumerBatches<Type, Size>
    },
    handler: JobHandler<HandledBy<NoInfer<Type>, Size>>,
  ): LogJob
  consume(name: string, handler: JobHandler<Entry>): LogJob
  /**
   * The entries that a consumer with `deadLetters: 'log'`, or a process with `onError: 'dead-letter'`, could not handle. The dead
   * letters of a process can be listed and removed, but not redelivered: rebuild the process.
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
   * again, with a `ProcessError` if a function fails, and with a `ProcessVersionError`.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * const log = await openLog(memoryStore())
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
  /**
   * Computes a definition of `rivulet/streams` over the entries, and appends its results: each exactly once, whatever is killed. Its process has the name
   * of the definition.
   *
   * Rejects as a process of functions does; also with a `ProcessVersionError` if what it computes has changed, and its version has not.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   * import { aggregate, count, define, from, keyBy, tumbling } from 'rivulet/streams'
   *
   * const changes = define(
   *   'changes',
   *   { version: 1 },
   *   from('monitor.event_stream').pipe(
   *     keyBy(({ source }) => source),
   *     aggregate('per-hour', tumbling('1h'), { changes: count() }),
   *   ),
   * )
   * const log = await openLog(memoryStore())
   * log.process(changes)
   * ```
   *
   * @throws ArgumentError at the call, for an invalid setting.
   */
  process<Result>(definition: Definition<Result>, options?: DefinitionProcessOptions): LogProcess<unknown>
  /**
   * Appends events of the application, to be read beside those of the service: each once, by its `source` and `id`, from any number of
   * processes. The log sets `received`, and `via` to `app`.
   *
   * All events of one call are checked first; then they are appended in order, 256 of at most 4 Mi characters in one transaction. Resolves
   * once all survive a power cut, with the number of new `entries` and of `duplicates`, which the log had. If it rejects, some may
   * be there: call it again with the same events. On a NATS server, that is so within 256 events too.
   *
   * Calls of one open log run one after the other: many events in one call are faster than many calls. They wait while the log is paused,
   * as recordings do, but not for a consumer of the same open log: its handler may wait for the call, in ways that cannot be seen. To keep to
   * `maxBytes` beside a slow consumer, append in another open log. `close` rejects calls that wait with a `LogClosedError`, and completes the
   * others.
   *
   * Rejects with an `ArgumentError` for an event that cannot be right, such as one with a type or a source of this package. Rejects with a
   * `LogValueError` for data that is not JSON, for an event of more than 16 Mi characters, and for one that throws when it is read. No event
   * of the call is appended then.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * declare module 'rivulet' {
   *   interface ResearchEventData {
   *     'order.paid': { amount: number }
   *   }
   * }
   *
   * const log = await openLog(memoryStore())
   * const { entries } = await log.append({ source: '/orders/42', id: 'paid', type: 'order.paid', data: { amount: 100 } })
   * console.log(entries === 1 ? 'appended' : 'known')
   * ```
   */
  append(
    events: AppEvent | readonly AppEvent[],
    options?: {
      /** Ends the wait for earlier calls and for room: rejects with its reason. Default: it waits. */
      readonly signal?: AbortSignal
    },
  ): Promise<Pick<Appended, 'entries' | 'duplicates'>>
  /**
   * A table of a definition, as its process has stored it here or elsewhere.
   *
   * ```ts
   * import { memoryStore, openLog } from 'rivulet/log'
   * import { define, from, latestBy } from 'rivulet/streams'
   *
   * const completions = from('monitor.completion').pipe(latestBy('completions', ({ source }) => source))
   * const monitors = define('monitors', { version: 1 }, completions)
   * const log = await openLog(memoryStore())
   * log.process(monitors)
   * const last = await log.table(monitors, completions).get('/v1/monitors/mon_1')
   * console.log(last?.time)
   * ```
   *
   * @throws ArgumentError for a table that is no stage of the definition.
   */
  table<Item>(definition: Definition<unknown>, table: Table<Item>): TableState<Item>
  /** The state of a process that runs here, elsewhere or not at all. One that never ran has no states. */
  state<State = unknown>(process: string): ProcessState<State>
  /**
   * Reads a page after a position, of any reader's or of {@link positionAt}, without a consumer. Rejects with a
   * `LogPositionError`, and with an `ArgumentError` for an option that cannot be right.
   *
   * @param options `limit`: maximum number of entries, from 1 to 10,000, default 100. `types`: only entries of these types, default all.
   */
  read(after: Position, options?: LogReadOptions): Promise<Page>
  /** The position at which to begin. */
  positionAt(start: StartAt): Promise<Position>
  /**
   * Resolves once there may be entries after this position. Rejects with the signal's reason, and with a `LogClosedError`.
   *
   * @internal
   */
  wait(after: Position, signal: AbortSignal): Promise<void>
  /**
   * Deletes a consumer or process that is gone: its position and its dead letters. Retention no longer keeps
   * anything for it, and the name begins anew. Without effect for an unknown one. Rejects with a `LogInUseError` while it is running,
   * here or in another process.
   *
   * A recording is removed by its name, once it is not started again: event time no longer waits for it.
   *
   * @throws ArgumentError for anything but one name.
   */
  remove(reader: LogReader | { readonly recording: string }): Promise<void>
  /**
   * Deletes what the log has of a source, if the law or a customer asks for it: its entries and their dead letters, its webhooks, and
   * what processes have appended because of it, directly or through other processes, or would append later because of a deleted
   * entry. It also deletes them from free space of the file and from its write-ahead log.
   * Positions of readers stay, and no gap is reported.
   *
   * It does not delete everything:
   * - Hashes of the events' identities stay, so that the events are not recorded again.
   * - New events of the source are recorded: stop that first.
   * - A consumer of another process may receive entries that were read up to a second before.
   * - Processes, and so views of gateways, keep their state. It resolves with the names of the processes that mention the source:
   *   {@link remove} them and call this again, and they are built again without it.
   * - Backups keep what they have.
   *
   * After a crash, and if it rejects, call it again.
   */
  forget(what: { readonly source: string }): Promise<Forgotten>
  /** The numbers of the log, of its event time and of each of its readers. They take some ms, however many entries it has. */
  stats(): Promise<LogStats>
  /**
   * The entries as newline-delimited JSON, one CloudEvent 1.0 each. `position`, `recorded`, `revision`, `backfill`, `received`,
   * `via`, `cursor` and `cause` (as JSON) are extension attributes. A `time` that is not RFC 3339 is left out, and a text
   * that CloudEvents does not allow in an attribute.
   *
   * ```ts
   * import { createWriteStream } from 'node:fs'
   * import { Readable } from 'node:stream'
   * import { pipeline } from 'node:stream/promises'
   * import { memoryStore, openLog } from 'rivulet/log'
   *
   * await using log = await openLog(memoryStore())
   * await pipeline(Readable.from(log.export()), createWriteStream('events.ndjson'))
   * ```
   */
  export(options?: ExportOptions): AsyncIterable<string>
  /** Observes the log from now on, for metrics and traces, until the returned function is called. */
  observe(observer: LogObserver): () => void
  /**
   * The states of processes as they are stored, which gateways read.
   *
   * @internal
   */
  readonly states: StoredStates
  /**
   * A writer of upstream streams, which recordings and gateways use.
   *
   * @internal
   * @param onFailure Called once, when the log has refused an append. Recording has ended.
   */
  recorder(onFailure: (error: unknown) => void, reports?: RecorderReports): Recorder
  /**
   * Stops every job as its `stop` does, completes every consumer, saves what was acknowledged, and closes the store. Rejects
   * if something could not be saved.
   */
  close(): Promise<void>
}
