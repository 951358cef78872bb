import { randomBytes } from 'node:crypto'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkInteger, checkList, checkText } from '../protocol/check.ts'
import { monitorEvent } from '../protocol/event.ts'
import { MAX_STREAM_DURATION } from '../protocol/limits.ts'
import { createApp } from './app.ts'
import type { Clock } from './clock.ts'
import type { Corpus } from './corpus/corpus.ts'
import { openCorpus, type CorpusOptions } from './corpus/open-corpus.ts'
import { checkFolders, type DocumentFolder } from './corpus/sites.ts'
import { openDatabase } from './database.ts'
import { Faults, type Fault } from './faults.ts'
import { lastingClock } from './lasting-clock.ts'
import type { ListenOptions } from './listen-options.ts'
import { createListener } from './listener.ts'
import type { MonitorRecord } from './monitors/event-log.ts'
import { createMonitors } from './monitors/monitors.ts'
import { extractiveProcessor } from './processor/extractive.ts'
import type { Processor } from './processor/processor.ts'
import { searchRoutes } from './search/search-routes.ts'
import { createTasks } from './tasks/tasks.ts'
import type { RunRecord } from './tasks/task-store.ts'
import { createOutbox } from './webhooks/delivery.ts'

/** What a research service is made of. */
export interface ResearchServiceOptions {
  /**
   * The folder, or folders, of documents (Markdown, HTML, text) that it answers from: each a path, or
   * `{ folder: './docs', site: 'https://docs.example' }`, whose documents are cited by their URLs on that site.
   */
  readonly docs: string | DocumentFolder | readonly (string | DocumentFolder)[]
  /** Whether a file, by its path within its folder, is a document. Default: Markdown, HTML and text files. */
  readonly include?: CorpusOptions['include']
  /** Whether to look into a folder. Default: all but `node_modules` and those whose name begins with a dot. */
  readonly enter?: CorpusOptions['enter']
  /** SQLite file for all that shall outlive the process, which its owner alone can read. Default `:memory:`. */
  readonly data?: string
  /** The key, or keys, that callers may use (§5). Default a random one. */
  readonly apiKey?: string | readonly string[]
  /** What webhooks are signed with (§6.1); several while it is rotated. Default a random one. */
  readonly webhookSecret?: string | readonly string[]
  /** Where time comes from. Default the machine's, at `speed`. */
  readonly clock?: Clock
  /**
   * How many times as fast as real time the clock runs, 1 or more: monitors and the retries of webhooks. Streams, timeouts
   * of requests and quotas keep to real time. Default 1.
   */
  readonly speed?: number
  /** Carries out task runs. Default the one that quotes from the documents. */
  readonly processor?: Processor
  /** Task runs carried out at once. Default 4. */
  readonly concurrency?: number
  /** What it does wrong from the start. Default nothing. */
  readonly faults?: readonly Fault[]
  /** How long a group's stream stays open, in ms of real time. Default an hour (§4.4). */
  readonly streamDuration?: number
  /** Whether POSTs that create something are limited to so many a minute. Default true. Beyond the interface document. */
  readonly quotas?: boolean
  /**
   * Hears of what fails inside: requests that were answered with a 500, with the `ref_id` of the answer, and work that
   * nobody waits for. Default: a warning of the process.
   */
  readonly onError?: (error: unknown, ref_id?: string) => void
}

/** What the service's own database holds, to be compared with what a reader got. */
export interface ServiceRecords {
  readonly runs: readonly RunRecord[]
  /** `id` is that of the event as this library's client tells it. */
  readonly monitor_events: readonly (MonitorRecord & { readonly id: string })[]
}

/** A research service in this process. */
export interface ResearchService extends AsyncDisposable {
  /** Begins to answer, and resolves with the base address. Refuses a host that other machines reach, unless told otherwise. */
  listen(options?: ListenOptions): Promise<string>
  /** The base address; undefined before {@link listen}. */
  readonly url: string | undefined
  /** A key that it accepts. */
  readonly apiKey: string
  /** The secret that a receiver of its webhooks needs. */
  readonly webhookSecret: string
  /** What it does wrong; may be changed at any time. */
  readonly faults: Faults
  readonly clock: Clock
  readonly corpus: Corpus
  records(): ServiceRecords
  /** Ends streams, stops all work and closes the database; what was not finished is taken up by the next start. */
  close(): Promise<void>
}

/**
 * Opens a research service over folders of documents: the interface of this library's client, served from this process.
 * It carries out what a data file still holds at once, and answers once {@link ResearchService.listen} is called.
 *
 * @throws ArgumentError for an option that cannot be right; {@link DataFileError} when the data file cannot be used.
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

/** Closes one of the parts that a service is made of. */
type Closer = () => unknown

/** Closes the parts, the latest first, and each also where another one fails to. */
async function closeAll(opened: Closer[]): Promise<void> {
  const close = opened.pop()
  if (close === undefined) return
  try {
    await close()
  } finally {
    await closeAll(opened)
  }
}

/** Opens one part after the other. Each puts on the list how it is closed, so that whatever is open can be. */
async function assemble(
  options: ResearchServiceOptions,
  { folders, apiKeys, secrets, speed, concurrency, streamDuration }: ReturnType<typeof checked>,
  opened: Closer[],
): Promise<ResearchService> {
  const { data = ':memory:', include, enter, quotas = true, onError = warn } = options

  const faults = new Faults()
  for (const fault of options.faults ?? []) faults.add(fault)
  const database = openDatabase(data)
  opened.push(() => database.close())
  const time =
    options.clock === undefined
      ? lastingClock(database, speed, onError)
      : { clock: options.clock, close() {} }
  opened.push(() => time.close())
  const { clock } = time
  const corpus = await openCorpus(database, { folders, include, enter })
  opened.push(() => corpus.close())
  const outbox = createOutbox({ database, clock, faults, secrets: () => secrets, onError })
  opened.push(() => outbox.close())
  const monitors = createMonitors({ database, clock, corpus, outbox, onError })
  opened.push(() => monitors.close())
  const { processor = extractiveProcessor(corpus) } = options
  const tasks = createTasks({
    database,
    clock,
    outbox,
    faults,
    processor,
    concurrency,
    streamDuration,
    onError,
  })
  const listener = createListener(
    createApp({
      apiKeys,
      clock,
      faults,
      quotas,
      onError,
      mount: (app) => {
        app.route('/', searchRoutes(corpus))
        for (const prefix of ['/v1', '/v1beta']) app.route(`${prefix}/tasks/groups`, tasks.groups)
        app.route('/v1/tasks/runs', tasks.runs)
        app.route('/v1/monitors', monitors.routes())
      },
    }),
  )
  // The tasks come first when it closes: their streams would keep the listener waiting.
  opened.push(
    () => listener.close(),
    () => tasks.close(),
  )
  outbox.start()
  monitors.start()
  tasks.start()

  let url: string | undefined
  let closed: Promise<void> | undefined
  const close = () => (closed ??= closeAll(opened))

  return {
    async listen(where = {}) {
      if (closed !== undefined) throw new Error('the service is closed: create another one')
      if (url !== undefined) throw new Error(`the service listens already, at ${url}`)
      url = await listener.listen(where)
      return url
    },
    get url() {
      return url
    },
    apiKey: apiKeys[0],
    webhookSecret: secrets[0],
    faults,
    clock,
    corpus,
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

/** The options as they are used, or an ArgumentError for the first that cannot be right. */
function checked(options: ResearchServiceOptions) {
  const {
    docs,
    data,
    apiKey = `key_${secret()}`,
    webhookSecret = `whsec_${secret()}`,
    clock,
    speed = 1,
    concurrency = 4,
    streamDuration = MAX_STREAM_DURATION,
  } = options
  if (data !== undefined) checkText('data', data)
  if (!(Number.isFinite(speed) && speed >= 1))
    throw new ArgumentError('speed', 'a number of at least 1', speed)
  if (clock !== undefined && options.speed !== undefined) {
    throw new ArgumentError('speed', 'left out where a clock is given', speed)
  }
  checkInteger('concurrency', concurrency, 1)
  checkDuration('streamDuration', streamDuration)
  return {
    folders: foldersOf(docs),
    apiKeys: texts('apiKey', apiKey),
    secrets: texts('webhookSecret', webhookSecret),
    speed,
    concurrency,
    streamDuration,
  }
}

/** One folder or several, as a list of at least one. */
function foldersOf(docs: ResearchServiceOptions['docs']): DocumentFolder[] {
  const list = Array.isArray(docs) ? docs : [docs]
  checkList('docs', list)
  return checkFolders('docs', list)
}

/** One text or several, as a list of at least one. */
function texts(argument: string, value: string | readonly string[]): readonly [string, ...string[]] {
  const [first, ...others] = Array.isArray(value) ? value : [value]
  checkText(argument, first)
  for (const entry of others) checkText(argument, entry)
  return [first, ...others]
}

function secret(): string {
  return randomBytes(24).toString('base64url')
}

function warn(error: unknown, ref_id?: string): void {
  const said = error instanceof Error ? (error.stack ?? error.message) : String(error)
  process.emitWarning(
    `The research service failed${ref_id === undefined ? '' : ` (ref_id ${ref_id})`}: ${said}`,
  )
}
