import type { Command } from 'commander'
import type { Fault, ResearchService, ResearchServiceOptions } from 'rivulet/service'
import { FAULTS_HELP, parseFault } from './faults.ts'
import { variable } from './environment.ts'
import { UsageError } from './exit.ts'
import { installedDocuments } from './installed.ts'
import { aborted } from './interruption.ts'
import {
  addCommonOptions,
  collect,
  documentSource,
  factor,
  folder,
  headerName,
  headerVariable,
  outputOf,
  portNumber,
  siteFolder,
  timeSpan,
  wholeNumber,
} from './options.ts'
import type { CommonOptions } from './options.ts'
import { createLog, type Logger, logServiceError } from './log.ts'
import { addModelOptions, modelSetting } from './model-options.ts'
import type { ModelFlags } from './model-options.ts'
import { type Output } from './output.ts'

interface ServeOptions extends CommonOptions, ModelFlags {
  readonly port: number
  readonly host: string
  readonly docs?: readonly string[]
  readonly source?: readonly string[]
  readonly sourceHeaderEnv?: readonly (readonly [origin: string, header: Readonly<Record<string, string>>])[]
  readonly refresh?: number
  readonly site?: readonly { readonly site: string; readonly folder: string }[]
  readonly data?: string
  readonly speed: number
  readonly allowPrivateAddresses?: boolean
  /** False with `--no-quotas`. */
  readonly quotas: boolean
  readonly credit?: number
  readonly betaHeader?: string
  readonly fault?: readonly Fault[]
}

const LOOPBACK = '127.0.0.1'
/** The hosts that only this machine can reach. */
const LOOPBACKS = new Set([LOOPBACK, '::1', 'localhost'])

const DOCS_HELP =
  'folder of Markdown, HTML and text files; may be repeated (default: the manifests, READMEs, changelogs and licences of installed packages)'

const EXAMPLES = `
Clients need RIVULET_API_KEY, and webhooks are signed with RIVULET_WEBHOOK_SECRET: each is random by default, and is then printed.

Examples:
  $ rivulet serve --docs ./docs
  $ rivulet serve --port 8123 --docs ./docs --data research.db
  $ rivulet serve --source https://docs.example/sitemap.xml --source https://blog.example/feed.xml
  $ rivulet serve --site https://docs.example=./docs
  $ rivulet serve --docs ./docs --model-url http://127.0.0.1:11434/v1 --model llama3.2
  $ rivulet serve --docs ./docs --speed 3600 --fault cut:after=3,times=2 --fault repeat

  Then, in another terminal, with the printed address and key:
  $ export RIVULET_BASE_URL=http://127.0.0.1:… RIVULET_API_KEY=…
  $ rivulet search "getting started"`

/** `rivulet serve`: runs a research service over folders of documents. */
export function addServe(program: Command, signal: AbortSignal): void {
  const command = program
    .command('serve')
    .description('Serve a folder of documents as a research service, until Ctrl-C.')
    .option('--docs <folder>', DOCS_HELP, collect(folder))
    .option(
      '--site <url=folder>',
      'folder of documents, cited by their URLs on a site; may be repeated',
      collect(siteFolder),
    )
    .option(
      '--source <source>',
      'folder, or URL of a sitemap, an RSS or Atom feed or a page, refreshed while it serves; may be repeated',
      collect(documentSource),
    )
    .option(
      '--source-header-env <origin=variable>',
      'variable of the environment with a header for this origin, such as "Authorization: Bearer …"; may be repeated',
      collect(headerVariable),
    )
    .option(
      '--refresh <time>',
      'how often to request a page of a source again, such as 5m (default: 15m)',
      timeSpan,
    )
    .option('--port <number>', 'port; 0 is any free port', portNumber, 0)
    .option('--host <address>', 'address to listen on; only loopback excludes other machines', LOOPBACK)
    .option('--data <file>', 'SQLite file for all data (default: in memory)')
    .option('--speed <factor>', 'speed of its clock relative to real time', factor, 1)
    .option(
      '--allow-private-addresses',
      'extract pages, read sources and call tool servers of this machine and its network, and send webhooks there (default: only webhooks, and only on loopback)',
    )
    .option('--no-quotas', 'accept any number of requests (default: the quotas of the interface, with 429)')
    .option(
      '--credit <number>',
      'how many task runs and FindAll runs may be active at once, with 402 for more (default: any number)',
      wholeNumber(0),
    )
    .option('--beta-header <name>', 'header that enables beta features (default: service-beta)', headerName)
    .option('--fault <fault>', 'a fault to inject, see below; may be repeated', collect(parseFault))
  addModelOptions(command)
  addCommonOptions(command, 'print the address as one line of JSON')
    .addHelpText('after', FAULTS_HELP)
    .addHelpText('after', EXAMPLES)
    .action((options: ServeOptions) => serve(options, signal))
}

/** Webhooks of an earlier process are sent before the service listens, so their setting depends on the host here. */
function privateAddresses({ host, allowPrivateAddresses = false }: ServeOptions) {
  return { allowPrivateAddresses, allowPrivateWebhooks: allowPrivateAddresses || LOOPBACKS.has(host) }
}

/**
 * Joins the headers of each origin.
 *
 * @throws UsageError for an origin without a source.
 */
function headersByOrigin(
  entries: NonNullable<ServeOptions['sourceHeaderEnv']>,
  sources: readonly string[],
): Record<string, Readonly<Record<string, string>>> {
  const origins = new Set(sources.filter((source) => URL.canParse(source)).map((url) => new URL(url).origin))
  const joined: Record<string, Readonly<Record<string, string>>> = {}
  for (const [origin, header] of entries) {
    if (!origins.has(origin)) throw new UsageError(`--source-header-env has ${origin}, but no --source has`)
    joined[origin] = { ...joined[origin], ...header }
  }
  return joined
}

/** Logs the number of documents, and the result of each URL, when the sources were requested for the first time. */
async function logSources(service: ResearchService, log: Logger): Promise<void> {
  try {
    await service.corpus.settled()
    const sources = service.sources.map(({ url, pages, failing, last_error }) => ({
      url,
      pages,
      failing,
      ...(last_error !== null && { last_error: last_error.code }),
    }))
    log.info({ documents: service.corpus.size, sources }, 'sources were requested')
  } catch (error) {
    logServiceError(log, error)
  }
}

async function serve(options: ServeOptions, signal: AbortSignal): Promise<void> {
  const { source: sources = [], port, host } = options
  const log = createLog(options)
  const output = outputOf(options, signal)
  // Imported here, so that other commands start faster.
  const { createResearchService } = await import('rivulet/service')
  const apiKey = variable('RIVULET_API_KEY')
  const webhookSecret = variable('RIVULET_WEBHOOK_SECRET')
  await using service = await createResearchService({
    ...(await serviceOptions(options)),
    ...(apiKey !== undefined && { apiKey }),
    ...(webhookSecret !== undefined && { webhookSecret }),
    onError: (error, ref_id) => logServiceError(log, error, ref_id),
  })
  // A new secret of the environment is the first.
  if (webhookSecret !== undefined && service.webhookSecret !== webhookSecret) {
    log.warn(
      'a rotation has replaced the secret in RIVULET_WEBHOOK_SECRET: leave the variable out, and the current one is printed',
    )
  }
  const url = await service.listen({ port, host, allowRemote: host !== LOOPBACK })
  // A secret from the environment is known, and must not be printed.
  await printService(output, url, service.corpus.size, {
    ...(apiKey === undefined && { api_key: service.apiKey }),
    ...(webhookSecret === undefined && { webhook_secret: service.webhookSecret }),
  })
  if (sources.length > 0) void logSources(service, log)
  await aborted(signal)
  log.debug('closing')
}

/** The settings of the service that options of the command name. */
async function serviceOptions(options: ServeOptions): Promise<ResearchServiceOptions> {
  const { docs = [], source: sources = [], sourceHeaderEnv: sourceHeaders = [], site: sites = [] } = options
  const { refresh, data, speed, fault: faults = [], quotas, credit, betaHeader } = options
  return {
    ...(docs.length + sites.length > 0
      ? { docs: [...docs, ...sites] }
      : sources.length === 0 && (await installedDocuments())),
    ...(sources.length > 0 && { sources }),
    ...(sourceHeaders.length > 0 && { sourceHeaders: headersByOrigin(sourceHeaders, sources) }),
    ...(refresh !== undefined && { refreshInterval: refresh }),
    speed,
    faults,
    ...privateAddresses(options),
    quotas,
    ...(credit !== undefined && { credit }),
    ...(betaHeader !== undefined && { betaHeader }),
    ...(data !== undefined && { data }),
    ...modelSetting(options),
  }
}

/** Prints where the service is, and the secrets that it has made. */
async function printService(
  output: Output,
  url: string,
  documents: number,
  secrets: { readonly api_key?: string; readonly webhook_secret?: string },
): Promise<void> {
  if (output.json) {
    await output.value({ service: { url, documents, ...secrets } })
    return
  }
  await output.line(
    `Research service at ${output.paint('bold', url)} over ${documents} ${documents === 1 ? 'document' : 'documents'}.`,
  )
  for (const [name, value] of Object.entries(secrets)) {
    await output.line(`  ${name.replace('_', ' ').padEnd(16)}${value}`)
  }
  const key = secrets.api_key === undefined ? '' : ` RIVULET_API_KEY=${secrets.api_key}`
  await output.hint(`For other commands: export RIVULET_BASE_URL=${url}${key}`)
  await output.line(output.paint('dim', 'Ctrl-C stops it.'))
}
