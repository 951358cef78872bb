/// <reference lib="esnext.disposable" preserve="true" />
import { randomBytes } from 'node:crypto'
import { ArgumentError, hidden } from '../protocol/argument-error.ts'
import {
  checkBoolean,
  checkDuration,
  checkOptionalFunctions,
  checkInteger,
  checkList,
  checkMethods,
  checkOptions,
  checkText,
} from '../protocol/check.ts'
import { monitorEvent } from '../protocol/event.ts'
import { MAX_STREAM_DURATION } from '../protocol/limits.ts'
import { createApp } from './app.ts'
import type { Clock } from './clock.ts'
import { createConversations } from './conversations/conversations.ts'
import { Credit } from './credit.ts'
import type { Corpus } from './corpus/corpus.ts'
import { openCorpus, type CorpusOptions } from './corpus/open-corpus.ts'
import { checkFolders, type DocumentFolder } from './corpus/sites.ts'
import { openDatabase } from './database.ts'
import { createExtract } from './extract/extract.ts'
import { refuseDeletedGroup } from './faults/deleted-group.ts'
import { Faults, type Fault } from './faults/faults.ts'
import { openFaultyWriter } from './faults/faulty-event-writer.ts'
import { openFaultyGroupStream, repeated } from './faults/group-stream-faults.ts'
import { extractiveEvaluator } from './find-all/evaluate.ts'
import { createFindAll } from './find-all/find-all.ts'
import { createIsolated } from './isolated/isolated.ts'
import { persistentClock } from './persistent-clock.ts'
import { Interactions } from './interactions/interactions.ts'
import { BETA_HEADER } from './http/betas.ts'
import { Quotas } from './http/quota.ts'
import { serviceLimits, type ServiceQuotas } from './http/service-quotas.ts'
import type { ListenOptions } from './listen-options.ts'
import { createListener, isExposed } from './listener.ts'
import { LiveDocuments, MIN_REFRESH_INTERVAL, REFRESH_INTERVAL } from './live-documents/live-documents.ts'
import { checkSources } from './live-documents/source.ts'
import type { MonitorRecord } from './monitors/event-log.ts'
import { Memories } from './memory/memories.ts'
import { memoryRoutes } from './memory/routes.ts'
import { createHostedTools } from './mcp/route.ts'
import { checkModel } from './model/check-model.ts'
import { modelEvaluator } from './model/model-evaluator.ts'
import { modelProcessor } from './model/model-processor.ts'
import { type ModelOptions, ModelServer } from './model/model-server.ts'
import { checkSourceHeaders } from './live-documents/source-headers.ts'
import type { SourceState } from './live-documents/source-state.ts'
import { Monitors } from './monitors/monitors.ts'
import { extractiveProcessor } from './processor/extractive.ts'
import type { Processor } from './processor/processor.ts'
import { openApiRoute } from './openapi/route.ts'
import { validating } from './processor/validating.ts'
import { ProcessorSlots } from './processor/slots.ts'
import { searchRoutes } from './search/search-routes.ts'
import { createTasks } from './tasks/tasks.ts'
import type { RunRecord } from './tasks/task-store.ts'
import { withToolServers } from './tool-servers/tool-servers.ts'
import { isPublicAddress } from './web/public-address.ts'
import { createWeb } from './web/safe-fetch.ts'
import { DeliveringOutbox } from './webhooks/delivery.ts'
import { MAX_SECRETS, WebhookSecrets } from './webhooks/secrets.ts'

/** How long a replaced webhook secret signs too, in ms of the clock. */
const DAY = 86_400_000

/** Settings of {@link createResearchService}. */
export interface ResearchServiceOptions {
  /**
   * Folders of documents (Markdown, HTML, text): a path, `{ folder, site }`, or several of these. With `site`, they are cited by their URLs
   * there. Default: none, with `sources`.
   *
   * For example `{ folder: './docs', site: 'https://docs.example' }`.
   */
  readonly docs?: string | DocumentFolder | readonly (string | DocumentFolder)[]
  /**
   * Folders, and URLs of sitemaps, feeds and pages, which are refreshed in the background. Default: none.
   *
   * The response of a URL decides whether it is a sitemap, an RSS or Atom feed, or a page. {@link ResearchService.sources} has their state.
   * Beyond the interface document.
   */
  readonly sources?: readonly string[]
  /**
   * Headers of the requests to sources, by origin. Default: none.
   *
   * For example `{ 'https://wiki.example': { authorization: 'Bearer …' } }`. They are sent to this origin only, and never after a redirect by
   * another origin. Beyond the interface document.
   */
  readonly sourceHeaders?: Readonly<Record<string, Readonly<Record<string, string>>>>
  /**
   * How often a URL of `sources` is requested again, in ms of the clock. Default 15 minutes.
   *
   * Less often if its `max-age` is longer. Beyond the interface document.
   */
  readonly refreshInterval?: number
  /** Whether a file, by its path within its folder, is a document. Default: Markdown, HTML and text files. */
  readonly include?: CorpusOptions['include']
  /** Whether to read a folder. Default: all but `node_modules` and those whose name begins with a dot. */
  readonly enter?: CorpusOptions['enter']
  /**
   * SQLite file for all state, also after a kill. Default `:memory:`, lost when the process ends.
   *
   * Only its owner can read it. One service can use it at a time: a second one is refused. Files beside it have the same name and `-wal`, `-shm`
   * or `-lock`, so share its folder with a container, not the file alone.
   */
  readonly data?: string
  /** One or more valid API keys (§5). Default: a random one. */
  readonly apiKey?: string | readonly string[]
  /**
   * Signs webhooks (§6.1); at most eight secrets during a rotation. Default: a random one.
   *
   * One that {@link ResearchService.rotateWebhookSecret} has replaced is not used again.
   */
  readonly webhookSecret?: string | readonly string[]
  /** The clock of the service: `systemClock(speed)`, or a `ManualClock` in tests. Default: the system clock, at `speed`. */
  readonly clock?: Clock
  /**
   * Speed of the clock, 1 or more: of monitors and retries of webhooks. Default 1.
   *
   * Streams, timeouts of requests and quotas use real time.
   */
  readonly speed?: number
  /** Answers runs, chats and responses. Default: a processor that extracts answers from the documents. */
  readonly processor?: Processor
  /**
   * A model that writes the answers: `{ url, name, apiKey? }`. Default: none. Not with `processor`.
   *
   * It writes from the passages of a search, and judges the conditions of FindAll, with quotes that are checked word for word. If it fails, the
   * answer is extracted. Beyond the interface document.
   */
  readonly model?: ModelOptions
  /**
   * Maximum number of runs, chats and responses that are executed at once. Default 4.
   *
   * Runs of `snapshot` monitors count too. Chats and responses come before waiting task runs.
   */
  readonly concurrency?: number
  /** Faults that are armed from the start. Default: none. */
  readonly faults?: readonly Fault[]
  /** Maximum duration of an event stream, in ms of real time; 570 s at most for a single run. Default: an hour (§4.4). */
  readonly streamDuration?: number
  /**
   * Whether extraction, `sources` and tool servers may use addresses of this machine and its network. Default false.
   *
   * Then only addresses of the public Internet are used, checked after DNS and for each redirect. Beyond the interface document.
   */
  readonly allowPrivateAddresses?: boolean
  /**
   * Whether webhooks may go to such addresses. Default: true until the service listens on a host that other machines can reach.
   *
   * A service that resumes webhooks before it listens like this needs an explicit false. Beyond the interface document.
   */
  readonly allowPrivateWebhooks?: boolean
  /**
   * Quotas of each key, for POSTs that create something; more is a 429. An object replaces the limits of the named quotas, and false has none.
   * Default true.
   *
   * For example `{ search: { requests: 10, window: 1_000 } }`, with the window in ms of real time. Beyond the interface document.
   */
  readonly quotas?: ServiceQuotas
  /** The name of the header whose value names beta features (§9). Default `service-beta`. */
  readonly betaHeader?: string
  /**
   * Maximum number of task and FindAll runs that are active at once; more is a 402 with `Retry-After`. Default: no limit.
   *
   * Each reserves a credit until it ends. Chats, responses and monitors reserve none. Beyond the interface document.
   */
  readonly credit?: number
  /** Gets internal errors: of a 500, with its `ref_id`, and of background work. Default: a process warning. */
  readonly onError?: (error: unknown, ref_id?: string) => void
}

const OPTIONS = Object.keys({
  docs: true,
  sources: true,
  sourceHeaders: true,
  refreshInterval: true,
  include: true,
  enter: true,
  data: true,
  apiKey: true,
  webhookSecret: true,
  clock: true,
  speed: true,
  processor: true,
  model: true,
  concurrency: true,
  faults: true,
  streamDuration: true,
  allowPrivateAddresses: true,
  allowPrivateWebhooks: true,
  quotas: true,
  betaHeader: true,
  credit: true,
  onError: true,
} satisfies Record<keyof ResearchServiceOptions, true>)

/** The contents of the service's database, for comparison with the events of a client. */
export interface ServiceRecords {
  readonly runs: readonly RunRecord[]
  /** `id` is the id of the client's event. */
  readonly monitor_events: readonly (MonitorRecord & { readonly id: string })[]
}

/** A research service that runs in this process. */
export interface ResearchService extends AsyncDisposable {
  /** Starts to listen, and resolves with the base URL. Only loopback hosts are allowed, unless `allowRemote` is true. */
  listen(options?: ListenOptions): Promise<string>
  /** The base URL; undefined before {@link listen}. */
  readonly url: string | undefined
  /** A valid API key. */
  readonly apiKey: string
  /** The secret for receivers of its webhooks: the newest one. */
  readonly webhookSecret: string
  /**
   * Replaces the secret of webhooks (§5) by a new one, and returns it. Webhooks are signed with both for `overlap` ms of the service's
   * clock: by default a day; with 0 the old secret is void at once. The data file keeps both.
   *
   * @throws ArgumentError for an `overlap` that is not a whole number from 0 to a year, and an Error once the service is closed.
   */
  rotateWebhookSecret(options?: {
    /** How long both secrets sign, in ms of the service's clock. Default a day. */
    readonly overlap?: number
  }): string
  /** The armed faults; may be changed at any time. */
  readonly faults: Faults
  readonly clock: Clock
  readonly corpus: Corpus
  /** The URLs of the option `sources`, with their present state. */
  readonly sources: readonly SourceState[]
  /** Returns the contents of the database, for comparison with the events of a client. */
  records(): ServiceRecords
  /** Ends streams, stops all work and closes the database. The next start resumes unfinished work. */
  close(): Promise<void>
}

/**
 * Creates a research service over folders of documents, which serves the interface of this library's client. Unfinished
 * work in the data file resumes at once; requests are served after {@link ResearchService.listen}.
 *
 * @throws ArgumentError for an invalid option; {@link DataFileError} when the data file cannot be used, or
 * another service has it open.
 * @example
 * ```ts
 * import { createClient } from 'rivulet'
 * import { createResearchService } from 'rivulet/service'
 *
 * await using service = await createResearchService({ docs: './docs' })
 * const baseUrl = await service.listen()
 * const client = createClient({ baseUrl, apiKey: service.apiKey })
 * ```
 */
export async function createResearchService(options: ResearchServiceOptions): Promise<ResearchService> {
  const settings = checked(options)
  const opened: Closer[] = []
  try {
    return await assemble(options, settings, opened)
  } catch (error) {
    await closeAll(opened)
    throw error
  }
}

/** Closes a component of the service. */
type Closer = () => unknown

/** Closes the components in reverse order, each even if another fails to close. */
async function closeAll(opened: Closer[]): Promise<void> {
  const close = opened.pop()
  if (close === undefined) return
  try {
    await close()
  } finally {
    await closeAll(opened)
  }
}

/** Settings after their checks. */
type Settings = ReturnType<typeof checked>

/** Opens the components in order, and adds the closer of each to `opened`. */
async function assemble(
  options: ResearchServiceOptions,
  settings: Settings,
  opened: Closer[],
): Promise<ResearchService> {
  const base = await openBase(options, settings, opened)
  const areas = createAreas(base, options, settings, opened)
  const { live, tasks, conversations, monitors, findAll, hostedTools } = areas
  const listener = createListener(createAppOf(base, areas, settings))
  // The listener waits for streams and requests to end, so their dependencies are closed before it.
  opened.push(
    () => listener.close(),
    () => base.web.close(),
    () => base.isolated.refuse(),
    // Before the web and the isolated thread, whose errors would count as failures of its pages.
    () => live.close(),
    () => tasks.close(),
    () => findAll.close(),
    () => conversations.close(),
    () => hostedTools.close(),
  )
  await live.start()
  base.outbox.start()
  monitors.start()
  tasks.start()
  findAll.start()
  return serviceOf(base, areas, { listener, apiKey: settings.apiKeys[0], opened })
}

/** What all areas use. */
type Base = Awaited<ReturnType<typeof openBase>>

async function openBase(
  options: ResearchServiceOptions,
  { folders, secrets, speed, concurrency, streamDuration, quotas }: Settings,
  opened: Closer[],
) {
  const { data = ':memory:', include, enter, onError = warn } = options
  const faults = new Faults()
  for (const fault of options.faults ?? []) faults.add(fault)
  const database = openDatabase(data)
  opened.push(() => database.close())
  const time =
    options.clock === undefined
      ? persistentClock(database, speed, onError)
      : { clock: options.clock, close() {} }
  opened.push(() => time.close())
  const { clock } = time
  const corpus = await openCorpus(database, { folders, include, enter, pages: true })
  opened.push(() => corpus.close())
  const webhookAddresses = new WebhookAddresses(options.allowPrivateWebhooks)
  const webhookSecrets = new WebhookSecrets(database, clock, secrets)
  const outbox = new DeliveringOutbox({
    database,
    clock,
    faults,
    secrets: () => webhookSecrets.current(),
    isAllowed: (address) => webhookAddresses.allows(address),
    onError,
  })
  opened.push(() => outbox.close())
  const isolated = createIsolated()
  opened.push(() => isolated.close())
  return {
    faults,
    database,
    clock,
    corpus,
    webhookAddresses,
    webhookSecrets,
    outbox,
    isolated,
    interactions: new Interactions(database),
    memories: new Memories(database, clock),
    web: createWeb(options.allowPrivateAddresses === true ? { isAllowed: () => true } : {}),
    slots: new ProcessorSlots(concurrency),
    credit: new Credit(options.credit),
    quotas: new Quotas(clock, quotas),
    streamDuration,
    onError,
  }
}

/** Allows webhooks to private addresses until other machines can reach the service, unless the option decides it. */
class WebhookAddresses {
  readonly #option: boolean | undefined
  #allowPrivate: boolean

  constructor(option: boolean | undefined) {
    this.#option = option
    this.#allowPrivate = option ?? true
  }

  allows(address: string): boolean {
    return this.#allowPrivate || isPublicAddress(address)
  }

  /** Called before other machines can reach the service. */
  expose(): void {
    this.#allowPrivate = this.#option ?? false
  }
}

/** The areas of the service. */
type Areas = ReturnType<typeof createAreas>

function createAreas(
  base: Base,
  options: ResearchServiceOptions,
  { sources, sourceHeaders, refreshInterval, speed }: Settings,
  opened: Closer[],
) {
  const { faults, isolated } = base
  const { processor, runProcessor, evaluator } = createProcessors(base, options, opened)
  const openWriter = (path: string) => openFaultyWriter(faults, path)
  const live = new LiveDocuments({
    ...base,
    sources,
    headers: sourceHeaders,
    interval: refreshInterval,
    speed,
  })
  const tasks = createTasks({
    ...base,
    openWriter,
    openStream: openFaultyGroupStream(faults),
    beforeRequest: (groupId) => refuseDeletedGroup(faults, groupId),
    processor: runProcessor,
    checks: isolated,
  })
  const conversations = createConversations({
    ...base,
    previous: tasks.interactions,
    openWriter,
    processor,
    checks: isolated,
  })
  const monitors = new Monitors({
    ...base,
    processor: runProcessor,
    completedRun: (id) => tasks.completed(id),
  })
  opened.push(() => monitors.close())
  const extract = createExtract(base)
  const findAll = createFindAll({
    ...base,
    processor: runProcessor,
    evaluator,
    checks: isolated,
    openWriter,
    startAt: (path, position) => repeated(faults, path, position),
  })
  const hostedTools = createHostedTools({ ...base, extract, tasks, findAll })
  return { live, tasks, conversations, monitors, extract, findAll, hostedTools }
}

function createProcessors(
  { corpus, isolated, web }: Base,
  options: ResearchServiceOptions,
  opened: Closer[],
) {
  const server = options.model === undefined ? undefined : new ModelServer(options.model)
  opened.push(() => server?.close())
  const extractive = extractiveProcessor(corpus, isolated)
  const builtIn =
    server === undefined ? extractive : modelProcessor({ corpus, server, isolated, fallback: extractive })
  const processor = validating(options.processor ?? builtIn, isolated)
  return {
    processor,
    // A processor of the caller calls the tool servers itself. Only the output of a run reports the calls.
    runProcessor: options.processor === undefined ? withToolServers(processor, { web }) : processor,
    evaluator: server === undefined ? extractiveEvaluator : modelEvaluator(server, extractiveEvaluator),
  }
}

function createAppOf(
  { faults, corpus, memories, quotas, onError }: Base,
  { tasks, conversations, monitors, extract, findAll, hostedTools }: Areas,
  { apiKeys, betaHeader }: Settings,
) {
  return createApp({
    apiKeys,
    faults,
    betaHeader,
    quotas,
    onError,
    mount: (app) => {
      app.route('/', openApiRoute({ betaHeader }))
      app.route('/', searchRoutes(corpus))
      app.route('/', extract.routes)
      for (const prefix of ['/v1', '/v1beta']) {
        app.route(`${prefix}/models`, conversations.models)
        app.route(`${prefix}/tasks/groups`, tasks.groups)
        app.route(`${prefix}/tasks/runs`, tasks.runEvents)
      }
      app.route('/v1/tasks/runs', tasks.runs)
      app.route('/v1/monitors', monitors.routes())
      app.route('/v1beta/findall', findAll.routes)
      app.route('/v1beta/memory', memoryRoutes(memories))
      app.route('/v1beta/chat/completions', conversations.chat)
      app.route('/v1/responses', conversations.responses)
      app.route('/', hostedTools.routes)
    },
  })
}

/** The service as its caller sees it, once its areas have started. */
function serviceOf(
  { faults, clock, corpus, webhookAddresses, webhookSecrets }: Base,
  { live, tasks, monitors }: Areas,
  {
    listener,
    apiKey,
    opened,
  }: {
    readonly listener: ReturnType<typeof createListener>
    readonly apiKey: string
    readonly opened: Closer[]
  },
): ResearchService {
  let url: string | undefined
  let closed: Promise<void> | undefined
  const close = () => (closed ??= closeAll(opened))
  const checkOpen = () => {
    if (closed !== undefined) throw new Error('the service is closed: create another one')
  }
  return {
    async listen(where = {}) {
      checkOptions('options', where, ['port', 'host', 'allowRemote'])
      checkOpen()
      if (url !== undefined) throw new Error(`the service listens already, at ${url}`)
      // Before the first request can register a webhook.
      if (isExposed(where)) webhookAddresses.expose()
      url = await listener.listen(where)
      return url
    },
    get url() {
      return url
    },
    apiKey,
    get webhookSecret() {
      return webhookSecrets.current()[0]
    },
    rotateWebhookSecret(rotation = {}) {
      checkOpen()
      checkOptions('rotateWebhookSecret', rotation, ['overlap'])
      const { overlap = DAY } = rotation
      checkInteger('overlap', overlap, 0, 365 * DAY)
      return webhookSecrets.rotate(overlap)
    },
    faults,
    clock,
    corpus,
    get sources() {
      return live.sources()
    },
    records: () => ({
      runs: tasks.records(),
      monitor_events: monitors.records().map(({ monitor_id, event }) => ({
        monitor_id,
        id: monitorEvent(monitor_id, event, 'poll').id,
        event,
      })),
    }),
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Returns the options with defaults. Throws an ArgumentError for the first invalid one. */
function checked(options: ResearchServiceOptions) {
  checkOptions('options', options ?? null, OPTIONS)
  const {
    docs,
    data,
    apiKey = `key_${secret()}`,
    webhookSecret,
    clock,
    refreshInterval = REFRESH_INTERVAL,
    speed = 1,
    concurrency = 4,
    streamDuration = MAX_STREAM_DURATION,
    quotas = true,
    betaHeader = BETA_HEADER,
  } = options
  if (data !== undefined) checkText('data', data)
  if (!(Number.isFinite(speed) && speed >= 1))
    throw new ArgumentError('speed', 'a number of at least 1', speed)
  if (clock !== undefined && options.speed !== undefined) {
    throw new ArgumentError('speed', 'left out where a clock is given', speed)
  }
  if (options.model !== undefined) {
    if (options.processor !== undefined) {
      throw new ArgumentError('model', 'left out where a processor is given', hidden(options.model))
    }
    checkModel(options.model)
  }
  if (options.processor !== undefined)
    checkMethods('processor', options.processor, 'an object with run', ['run'])
  if (clock !== undefined)
    checkMethods('clock', clock, 'an object with now and schedule', ['now', 'schedule'])
  if (options.faults !== undefined && !Array.isArray(options.faults))
    throw new ArgumentError('faults', 'an array', options.faults)
  checkOptionalFunctions({ include: options.include, enter: options.enter, onError: options.onError })
  for (const name of ['allowPrivateAddresses', 'allowPrivateWebhooks'] as const) {
    if (options[name] !== undefined) checkBoolean(name, options[name])
  }
  if (typeof betaHeader !== 'string' || !/^[\w-]+$/.test(betaHeader))
    throw new ArgumentError('betaHeader', 'the name of a header', betaHeader)
  checkInteger('concurrency', concurrency, 1)
  if (options.credit !== undefined) checkInteger('credit', options.credit, 0)
  checkDuration('streamDuration', streamDuration)
  checkInteger('refreshInterval', refreshInterval, MIN_REFRESH_INTERVAL)
  const sources = checkSources('sources', options.sources ?? [])
  return {
    folders: [
      ...(docs === undefined && options.sources !== undefined ? [] : foldersOf(docs ?? [])),
      ...sources.folders.map((folder) => ({ folder })),
    ],
    sources: sources.urls,
    sourceHeaders: checkSourceHeaders('sourceHeaders', options.sourceHeaders ?? {}, sources.urls),
    refreshInterval,
    apiKeys: texts('apiKey', apiKey),
    secrets: webhookSecret === undefined ? [] : checkSecrets(webhookSecret),
    speed,
    concurrency,
    streamDuration,
    quotas: serviceLimits(quotas),
    betaHeader: betaHeader.toLowerCase(),
  }
}

/** Returns one or more folders as a non-empty list. */
function foldersOf(docs: NonNullable<ResearchServiceOptions['docs']>): DocumentFolder[] {
  const list = Array.isArray(docs) ? docs : [docs]
  checkList('docs', list)
  return checkFolders('docs', list)
}

/** Returns one or more strings as a non-empty list. */
function texts(argument: string, value: string | readonly string[]): readonly [string, ...string[]] {
  const [first, ...others] = Array.isArray(value) ? value : [value]
  checkText(argument, first)
  for (const entry of others) checkText(argument, entry)
  return [first, ...others]
}

/** Returns one or more webhook secrets, as many as can sign. */
function checkSecrets(given: string | readonly string[]): readonly string[] {
  const secrets = texts('webhookSecret', given)
  if (secrets.length > MAX_SECRETS)
    throw new ArgumentError('webhookSecret', `at most ${MAX_SECRETS} secrets`, hidden(secrets))
  return secrets
}

function secret(): string {
  return randomBytes(24).toString('base64url')
}

function warn(error: unknown, ref_id?: string): void {
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.emitWarning(
    `The research service failed${ref_id === undefined ? '' : ` (ref_id ${ref_id})`}: ${text}`,
  )
}
