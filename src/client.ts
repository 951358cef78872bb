import { asyncScheduler, Subject } from 'rxjs'
import type { Observable, SchedulerLike } from 'rxjs'
import { ArgumentError } from './protocol/argument-error.ts'
import { INITIAL_DELAY, MAX_DELAY } from './protocol/backoff.ts'
import type { Backoff } from './protocol/backoff.ts'
import { checkDuration, checkOptions } from './protocol/check.ts'
import type { ExtractRequest, ExtractResponse } from './protocol/extract.ts'
import type { SearchBetaRequest, SearchBetaResponse } from './protocol/search.ts'
import { withContext } from './sources/context.ts'
import type { Context, Diagnostic } from './sources/context.ts'
import { extract } from './sources/extract/extract.ts'
import { findAllCalls } from './sources/find-all/calls.ts'
import type { FindAllCalls } from './sources/find-all/calls.ts'
import { memoryCalls } from './sources/memory/calls.ts'
import type { MemoryCalls } from './sources/memory/calls.ts'
import { LEVELS, logDiagnostic } from './sources/log-diagnostic.ts'
import type { Logger } from './sources/log-diagnostic.ts'
import { searchCalls } from './sources/search/calls.ts'
import type { SearchCalls } from './sources/search/calls.ts'
import { searchBeta } from './sources/search/search.ts'
import type { AwaitableSource, SourceOptions } from './sources/shapes/source.ts'
import { chatCalls } from './sources/chat/calls.ts'
import type { ChatCalls } from './sources/chat/calls.ts'
import { responseCalls } from './sources/responses/calls.ts'
import type { ResponseCalls } from './sources/responses/calls.ts'
import { taskCalls } from './sources/tasks/calls.ts'
import type { TaskCalls } from './sources/tasks/calls.ts'
import { untypedCalls } from './sources/untyped.ts'
import type { UntypedCalls } from './sources/untyped.ts'
import { watchCalls } from './sources/watch.ts'
import type { WatchCalls } from './sources/watch.ts'
import type { ClientObserver } from './transport/observer.ts'
import { createTransport } from './transport/transport.ts'
import type { TransportSettings } from './transport/transport.ts'
import { monitorCalls } from './sources/monitors/calls.ts'
import type { MonitorCalls } from './sources/monitors/calls.ts'
import { taskGroupCalls } from './sources/task-groups/calls.ts'
import type { TaskGroupCalls } from './sources/task-groups/calls.ts'

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
export interface ResearchClient extends UntypedCalls {
  /** Searches (§4.7), once or for each of many queries. */
  readonly search: SearchCalls
  /**
   * Extracts excerpts, or the whole content as Markdown, from up to 20 pages. Emits the response, in which each URL has a result
   * or an error, then completes. Beyond the interface document.
   */
  extract(request: ExtractRequest, options?: SourceOptions): AwaitableSource<ExtractResponse>
  /** Searches with the beta interface (§4.6). Emits the response, then completes. */
  searchBeta(request: SearchBetaRequest, options?: SourceOptions): AwaitableSource<SearchBetaResponse>
  /** Monitors and their events (§4.1, §4.2). */
  readonly monitors: MonitorCalls
  /** Answers conversations. Beyond the interface document. */
  readonly chat: ChatCalls
  /** Answers inputs, in conversations that the service keeps. Beyond the interface document. */
  readonly responses: ResponseCalls
  /** Runs single tasks. Beyond the interface document. */
  readonly tasks: TaskCalls
  /** Groups of runs and their events (§4.3, §4.4, §4.5). */
  readonly taskGroups: TaskGroupCalls
  /** Finds entities that match conditions. Beyond the interface document. */
  readonly findAll: FindAllCalls
  /** Searches the results of earlier runs, monitors and FindAll runs. Beyond the interface document. */
  readonly memory: MemoryCalls
  /** Monitors, task groups, single and FindAll runs and webhooks as one stream. */
  readonly watch: WatchCalls
  /** Retries, reconnects, dropped duplicates and the service's warnings. Hot. */
  readonly diagnostics: Observable<Diagnostic>
  /** Observes every request from now on, for metrics and traces, until the returned function is called. */
  observe(observer: ClientObserver): () => void
}

/** The part of a {@link ResearchClient} that follows monitors. */
export type MonitorClient = Pick<ResearchClient, 'monitors' | 'diagnostics' | 'observe'>

/** Default of {@link ClientOptions.patience}, in ms. */
const PATIENCE = 300_000

/**
 * Creates a client of a research service. `baseUrl` and `apiKey` default to the environment's `RIVULET_BASE_URL` and
 * `RIVULET_API_KEY`; `apiKey: null` sends none, for a proxy that adds it. Throws an ArgumentError for an invalid or
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
  const { context, diagnostics, observe } = connection(options)
  const client: ResearchClient = {
    search: searchCalls(context),
    searchBeta: (request, own) => searchBeta(context, request, own),
    extract: (request, own) => extract(context, request, own),
    monitors: monitorCalls(context),
    chat: chatCalls(context),
    responses: responseCalls(context),
    tasks: taskCalls(context),
    taskGroups: taskGroupCalls(context),
    findAll: findAllCalls(context),
    memory: memoryCalls(context),
    watch: watchCalls(context),
    ...untypedCalls(context),
    diagnostics,
    observe,
  }
  return withContext(client, context)
}

/**
 * Creates a client of monitors alone, with the options and errors of {@link createClient}. It has less than half of the code, for a
 * page whose size counts.
 *
 * ```ts
 * import { createMonitorClient } from 'rivulet'
 *
 * const { monitors } = createMonitorClient({ baseUrl: '/api', apiKey: null })
 * monitors.follow('monitor_1').subscribe((event) => console.log(event.id))
 * ```
 */
export function createMonitorClient(options: ClientOptions = {}): MonitorClient {
  const { context, diagnostics, observe } = connection(options)
  return withContext({ monitors: monitorCalls(context), diagnostics, observe }, context)
}

/** What a client has, whichever areas it is for. */
interface Connection extends Pick<ResearchClient, 'diagnostics' | 'observe'> {
  readonly context: Context
}

function connection(options: ClientOptions): Connection {
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
    betaHeader: settings.betaHeader ?? (environment('RIVULET_BETA_HEADER') || undefined),
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
  return {
    context,
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
