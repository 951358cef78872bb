import { asyncScheduler } from 'rxjs'
import type { Observable, SchedulerLike } from 'rxjs'
import { Subject } from 'rxjs'
import { ArgumentError } from './protocol/argument-error.ts'
import { INITIAL_DELAY, MAX_DELAY } from './protocol/backoff.ts'
import type { Backoff } from './protocol/backoff.ts'
import { checkDuration, checkOptions } from './protocol/check.ts'
import type {
  FollowedMonitorEvent,
  GroupEvent,
  GroupRunEvent,
  ListedMonitorEvent,
  ResearchEvent,
} from './protocol/event.ts'
import { groupSource, monitorSource } from './protocol/event.ts'
import type { ExtractRequest, ExtractResponse } from './protocol/extract.ts'
import type { CreateMonitorRequest, Monitor, UpdateMonitorRequest } from './protocol/monitor.ts'
import type { SearchBetaRequest, SearchBetaResponse } from './protocol/search.ts'
import type { AddRunsRequest, AddRunsResponse, TaskGroup } from './protocol/task-group.ts'
import type { RunInput, TaskRun } from './protocol/task.ts'
import { addRuns } from './sources/task-groups/add-runs.ts'
import type { AddRunsOptions } from './sources/task-groups/add-runs.ts'
import type { Context, Diagnostic } from './sources/context.ts'
import { createExecute } from './sources/task-groups/execute.ts'
import type { ExecutedRun, ExecuteOptions, TypedExecuteOptions } from './sources/task-groups/execute.ts'
import type { CheckedOutput } from './sources/shapes/answer-schema.ts'
import { extract } from './sources/extract/extract.ts'
import { followMonitor } from './sources/monitors/follow.ts'
import type { FollowMonitorOptions } from './sources/monitors/follow.ts'
import { groupEvents } from './sources/task-groups/events.ts'
import type { GroupEventsOptions } from './sources/task-groups/events.ts'
import { groupProgress } from './sources/task-groups/progress.ts'
import type { GroupProgress, GroupProgressOptions } from './sources/task-groups/progress.ts'
import { createRetry } from './sources/task-groups/retry.ts'
import type { RetriedRun, RetryOptions } from './sources/task-groups/retry.ts'
import { groupErrors } from './sources/task-groups/run-errors.ts'
import type { GroupErrors } from './sources/task-groups/run-errors.ts'
import type { GroupRunsOptions } from './sources/task-groups/runs.ts'
import { monitorEvents } from './sources/monitors/events.ts'
import type { MonitorEventsOptions } from './sources/monitors/events.ts'
import { findAllCalls } from './sources/find-all/calls.ts'
import type { FindAllCalls } from './sources/find-all/calls.ts'
import { memoryCalls } from './sources/memory/calls.ts'
import type { MemoryCalls } from './sources/memory/calls.ts'
import { LEVELS, logDiagnostic } from './sources/log-diagnostic.ts'
import type { Logger } from './sources/log-diagnostic.ts'
import {
  cancelMonitor,
  createMonitor,
  getMonitor,
  listMonitors,
  triggerMonitor,
  updateMonitor,
} from './sources/monitors/monitors.ts'
import type { ListMonitorsOptions } from './sources/monitors/monitors.ts'
import { createSnapshots } from './sources/monitors/snapshots.ts'
import type {
  CheckedMonitorSnapshot,
  MonitorSnapshot,
  MonitorSnapshotsOptions,
  TypedMonitorSnapshotsOptions,
} from './sources/monitors/snapshots.ts'
import { reportRunAhead } from './sources/shapes/run-ahead.ts'
import { searchCalls } from './sources/search/calls.ts'
import type { SearchCalls } from './sources/search/calls.ts'
import { searchBeta } from './sources/search/search.ts'
import type { AwaitableSource, Source, SourceOptions } from './sources/shapes/source.ts'
import { createTaskGroup, getGroupRun, getTaskGroup } from './sources/task-groups/task-groups.ts'
import type { CreateTaskGroupOptions } from './sources/task-groups/task-groups.ts'
import { createRuns } from './sources/task-groups/typed-runs.ts'
import type { CheckedGroupRunEvent, TypedGroupRunsOptions } from './sources/task-groups/typed-runs.ts'
import { chatCalls } from './sources/chat/chat.ts'
import type { ChatCalls } from './sources/chat/chat.ts'
import { responseCalls } from './sources/responses/responses.ts'
import type { ResponseCalls } from './sources/responses/responses.ts'
import { taskCalls } from './sources/tasks/tasks.ts'
import type { TaskCalls } from './sources/tasks/tasks.ts'
import { untypedGet, untypedPost, untypedStream } from './sources/untyped.ts'
import type { UntypedOptions, UntypedPostOptions, UntypedStreamOptions } from './sources/untyped.ts'
import { record } from './sources/record.ts'
import type { Recording, RecordOptions } from './sources/record.ts'
import { watch } from './sources/watch.ts'
import type { WatchOptions } from './sources/watch.ts'
import type { ClientObserver } from './transport/observer.ts'
import { createTransport } from './transport/transport.ts'
import type { StreamMessage, TransportSettings } from './transport/transport.ts'

/** Settings of a client. */
export interface ClientOptions
  extends Backoff, Partial<Omit<TransportSettings, 'backoff' | 'onRetry' | 'onQuotaWait'>> {
  /**
   * How long an incomplete stream of a task group is resumed without a new event, in ms. Then it errors with an
   * `IncompleteStreamError`. Also how long `tasks.result` asks again while the service sends results of a run that has not ended; then
   * it errors with a `ProtocolError`. `Infinity` sets no limit. Default 300,000.
   */
  readonly patience?: number | undefined
  /** Logs the `diagnostics`, with a level for each kind and without secrets. Default: none. */
  readonly logger?: Logger | undefined
}

const OPTIONS = Object.keys({
  baseUrl: true,
  apiKey: true,
  betaHeader: true,
  headers: true,
  allowInsecure: true,
  timeouts: true,
  retries: true,
  initialDelay: true,
  maxDelay: true,
  maxBodyBytes: true,
  maxEventLength: true,
  quotas: true,
  scheduler: true,
  random: true,
  fetch: true,
  exchange: true,
  logger: true,
  patience: true,
} satisfies Record<keyof ClientOptions, true>)

/**
 * The service as streams. Every method checks its arguments synchronously, and sends no request before its result is
 * subscribed to or, for a single response, awaited.
 */
export interface ResearchClient {
  readonly search: SearchCalls
  /**
   * Extracts excerpts, or the whole content as Markdown, from up to 20 pages. Emits the response, in which each URL has a result
   * or an error, then completes. Beyond the interface document.
   */
  extract(request: ExtractRequest, options?: SourceOptions): AwaitableSource<ExtractResponse>
  /** Searches with the beta interface (§4.6). Emits the response, then completes. */
  searchBeta(request: SearchBetaRequest, options?: SourceOptions): AwaitableSource<SearchBetaResponse>
  readonly monitors: {
    /** Emits the past events of a monitor (§4.1), page by page, newest first, then completes. */
    events(monitorId: string, options?: MonitorEventsOptions): Source<ListedMonitorEvent>
    /** Emits all events of a monitor, oldest first, each once. Completes only when the monitor is cancelled. */
    follow(monitorId: string, options?: FollowMonitorOptions): Source<FollowedMonitorEvent>
    /** Cancels a monitor permanently and emits it (§4.2). */
    cancel(monitorId: string, options?: SourceOptions): AwaitableSource<Monitor>
    /** Creates a monitor. Beyond the interface document. */
    create(request: CreateMonitorRequest, options?: SourceOptions): AwaitableSource<Monitor>
    /** Emits a snapshot monitor's output before and after each change, oldest first, until the monitor is cancelled. */
    snapshots<Content>(
      monitorId: string,
      options: TypedMonitorSnapshotsOptions<Content>,
    ): Source<CheckedMonitorSnapshot<Content>>
    snapshots(monitorId: string, options?: MonitorSnapshotsOptions): Source<MonitorSnapshot>
    /** Changes a monitor and emits it. Null removes its webhook or metadata. Beyond the interface document. */
    update(
      monitorId: string,
      changes: UpdateMonitorRequest,
      options?: SourceOptions,
    ): AwaitableSource<Monitor>
    /** Reads a monitor. Beyond the interface document. */
    get(monitorId: string, options?: SourceOptions): AwaitableSource<Monitor>
    /** Emits each monitor, over all pages. Beyond the interface document. */
    list(options?: ListMonitorsOptions): Source<Monitor>
    /** Runs a monitor once, now. Beyond the interface document. */
    trigger(monitorId: string, options?: SourceOptions): AwaitableSource<void>
  }
  readonly chat: ChatCalls
  readonly responses: ResponseCalls
  readonly tasks: TaskCalls
  readonly taskGroups: {
    /** Adds any number of runs (§4.3). Emits a response for each request of at most 1,000; an `await` returns one for all. */
    addRuns(
      groupId: string,
      request: AddRunsRequest,
      options?: AddRunsOptions,
    ): AwaitableSource<AddRunsResponse>
    /** Adds any number of runs and emits each with its input and output as it ends (§4.3, §4.5). */
    execute(
      groupId: string,
      inputs: readonly RunInput[] | AddRunsRequest,
      options?: ExecuteOptions,
    ): Source<ExecutedRun>
    /** The same with a schema for the answers: it is sent, outputs are checked, and `output.content` has its type. */
    execute<Content>(
      groupId: string,
      inputs: readonly RunInput[] | AddRunsRequest,
      options: TypedExecuteOptions<Content>,
    ): Source<ExecutedRun<CheckedOutput<Content>>>
    /**
     * Adds the inputs of failed runs to the group again, and emits which run replaces which; an `await` returns all. Never
     * replaces a run twice, by a second call either.
     */
    retry(groupId: string, options?: RetryOptions): AwaitableSource<RetriedRun, RetriedRun[]>
    /** Groups the failed runs by their error, updated while the group runs; an `await` returns the errors of the whole group. */
    errors(groupId: string, options?: SourceOptions): AwaitableSource<GroupErrors>
    /** Emits status updates and run completions (§4.4), resumed automatically until the group is done. */
    events(groupId: string, options?: GroupEventsOptions): Source<GroupEvent>
    /** Emits each run as it ends (§4.5), resumed automatically until the group is done. */
    runs(groupId: string, options?: GroupRunsOptions): Source<GroupRunEvent>
    /** The same with a schema for the outputs: `output.content` has its type, `misfit` lists what does not match it. */
    runs<Content>(
      groupId: string,
      options: TypedGroupRunsOptions<Content>,
    ): Source<CheckedGroupRunEvent<Content>>
    /** Emits the progress of a group (§4.4) at each change; completes with the group. */
    progress(groupId: string, options?: GroupProgressOptions): Source<GroupProgress>
    /** Creates an empty group. Beyond the interface document. */
    create(options?: CreateTaskGroupOptions): AwaitableSource<TaskGroup>
    /** Reads a group. Beyond the interface document. */
    get(groupId: string, options?: SourceOptions): AwaitableSource<TaskGroup>
    /** Reads a run of a group. Beyond the interface document. */
    getRun(groupId: string, runId: string, options?: SourceOptions): AwaitableSource<TaskRun>
  }
  /** Finds entities that match conditions. Beyond the interface document. */
  readonly findAll: FindAllCalls
  /** Searches the results of earlier runs, monitors and FindAll runs. Beyond the interface document. */
  readonly memory: MemoryCalls
  /** Monitors, task groups, single runs and webhooks as one stream, each event once. */
  watch(options: WatchOptions): Source<ResearchEvent>
  /** Records monitors, groups, single runs and webhooks into a log of `openLog`, for any number of consumers. */
  record(options: RecordOptions): Recording
  /** `GET path`, unchecked, for endpoints that the library does not support yet. */
  get(path: string, options?: UntypedOptions): AwaitableSource<unknown>
  /** `POST path`, unchecked, for endpoints that the library does not support yet. */
  post(path: string, body?: unknown, options?: UntypedPostOptions): AwaitableSource<unknown>
  /** The messages of an event stream, unchecked, over one connection, for endpoints that the library does not support yet. */
  stream(path: string, options?: UntypedStreamOptions): Source<StreamMessage>
  /** Retries, reconnects, dropped duplicates and the service's warnings. Hot. */
  readonly diagnostics: Observable<Diagnostic>
  /** Observes every request from now on, for metrics and traces, until the returned function is called. */
  observe(observer: ClientObserver): () => void
}

/** Default of {@link ClientOptions.patience}, in ms. */
const PATIENCE = 300_000

/**
 * Creates a client of a research service. `baseUrl` and `apiKey` default to the environment's `RIVULET_BASE_URL` and
 * `RIVULET_API_KEY`; `apiKey: null` sends none, for a gateway that adds it. Throws an ArgumentError for an invalid or
 * unknown setting.
 *
 * ```ts
 * import { createClient } from 'rivulet'
 *
 * const client = createClient({ baseUrl: 'https://research.example', apiKey: 'key-of-this-account' })
 * const { results } = await client.search({ search_queries: ['solid state battery'] })
 * ```
 */
export function createClient(options: ClientOptions = {}): ResearchClient {
  checkOptions('options', options, OPTIONS)
  const { initialDelay = INITIAL_DELAY, maxDelay = MAX_DELAY, patience = PATIENCE, ...others } = options
  const { logger, ...settings } = others
  checkDuration('patience', patience, true)
  const backoff = { initialDelay, maxDelay }
  const diagnostics = new Subject<Diagnostic>()
  const report = (diagnostic: Diagnostic) => diagnostics.next(diagnostic)
  if (logger !== undefined) logTo(logger, diagnostics)
  const transport = createTransport({
    ...settings,
    baseUrl: settings.baseUrl ?? fromEnvironment('RIVULET_BASE_URL', 'baseUrl'),
    apiKey: settings.apiKey === undefined ? fromEnvironment('RIVULET_API_KEY', 'apiKey') : settings.apiKey,
    backoff,
    onRetry: (info) => report({ kind: 'retry', ...info }),
    onQuotaWait: (wait) => report({ kind: 'quota', ...wait }),
  })
  const scheduler: SchedulerLike = settings.scheduler ?? asyncScheduler
  const { random = Math.random } = settings
  const context: Context = {
    transport,
    backoff,
    scheduler,
    random,
    patience,
    report,
    groupRuns: { prefix: '/v1beta' },
  }
  const reporting = <T>(source: Source<T>, name: string) => reportRunAhead(context, source, name)
  return {
    search: searchCalls(context),
    searchBeta: (request, own) => searchBeta(context, request, own),
    extract: (request, own) => extract(context, request, own),
    monitors: {
      events: (id, own) => reporting(monitorEvents(context, id, own), monitorSource(id)),
      follow: (id, own) => reporting(followMonitor(context, id, own), monitorSource(id)),
      cancel: (id, own) => cancelMonitor(context, id, own),
      create: (request, own) => createMonitor(context, request, own),
      snapshots: createSnapshots(context),
      update: (id, changes, own) => updateMonitor(context, id, changes, own),
      get: (id, own) => getMonitor(context, id, own),
      list: (own) => listMonitors(context, own),
      trigger: (id, own) => triggerMonitor(context, id, own),
    },
    chat: chatCalls(context),
    responses: responseCalls(context),
    tasks: taskCalls(context),
    taskGroups: {
      addRuns: (id, request, own) => addRuns(context, id, request, own),
      execute: createExecute(context),
      retry: createRetry(context),
      errors: (id, own) => groupErrors(context, id, own),
      events: (id, own) => reporting(groupEvents(context, id, own), groupSource(id)),
      runs: createRuns(context),
      progress: (id, own) => groupProgress(context, id, own),
      create: (own) => createTaskGroup(context, own),
      get: (id, own) => getTaskGroup(context, id, own),
      getRun: (id, runId, own) => getGroupRun(context, id, runId, own),
    },
    findAll: findAllCalls(context),
    memory: memoryCalls(context),
    watch: (own) => reporting(watch(context, own), 'watch'),
    record: (own) => record(context, own),
    get: (path, own) => untypedGet(context, path, own),
    post: (path, body, own) => untypedPost(context, path, body, own),
    stream: (path, own) => reporting(untypedStream(context, path, own), path),
    diagnostics: diagnostics.asObservable(),
    observe: (observer) => transport.observers.add(observer),
  }
}

function logTo(logger: Logger, diagnostics: Observable<Diagnostic>): void {
  const isLogger = LEVELS.every((level) => typeof Object(logger)[level] === 'function')
  if (!isLogger) throw new ArgumentError('logger', `an object with the methods ${LEVELS.join(', ')}`, logger)
  diagnostics.subscribe((diagnostic) => {
    try {
      logDiagnostic(logger, diagnostic)
    } catch {
      // A failing logger must not affect events.
    }
  })
}

function fromEnvironment(name: string, option: string): string {
  const value = environment(name)
  if (value === undefined || value === '') {
    const none = option === 'apiKey' ? ' (null for none)' : ''
    throw new ArgumentError(option, `given${none}, or set as ${name} in the environment`, undefined)
  }
  return value
}

function environment(name: string): string | undefined {
  try {
    // Browsers have no environment.
    return globalThis.process?.env?.[name]
  } catch {
    // Deno throws without the permission.
    return undefined
  }
}
