import type { Command } from 'commander'
import type { FindDocument } from 'rivulet/dashboard'
import { clientOf } from './connection.ts'
import { variable } from './environment.ts'
import { aborted } from './interruption.ts'
import { LOG_OPTION, openLogAt } from './opened-log.ts'
import { createLog, logServiceError } from './log.ts'
import type { Logger } from './log.ts'
import { addCommonOptions, collect, folder, outputOf, portNumber, siteFolder } from './options.ts'
import type { CommonOptions } from './options.ts'

interface DashboardCommandOptions extends CommonOptions {
  readonly log: string
  readonly port: number
  readonly baseUrl?: string
  readonly docs?: readonly string[]
  readonly site?: readonly { readonly site: string; readonly folder: string }[]
}

const EXAMPLES = `
The page shows the log while any process records it. Only this machine can reach it, and only with the key of the printed address.
A missing log is an error, and is not created.

With a service, whose key is read from RIVULET_API_KEY, the page can search and add runs. With --docs, it shows excerpts in their
documents.

Ctrl-C or SIGTERM ends it.

Examples:
  $ rivulet dashboard --log rivulet.db
  $ rivulet dashboard --log rivulet.db --port 8080 --docs ./docs
  $ RIVULET_API_KEY=… rivulet dashboard --log rivulet.db --base-url https://api.example`

/** `rivulet dashboard`: a page over an event log. */
export function addDashboard(program: Command, signal: AbortSignal): void {
  const command = program
    .command('dashboard')
    .description('Show an event log in the browser, up to date, until Ctrl-C.')
    .requiredOption(...LOG_OPTION)
    .option('--port <number>', 'port; 0 is any free port', portNumber, 0)
    .option(
      '--base-url <url>',
      'address of the service, to search and to add runs (default: RIVULET_BASE_URL)',
    )
    .option('--docs <folder>', 'folder of documents that are cited; may be repeated', collect(folder))
    .option(
      '--site <url=folder>',
      'folder of documents, cited by their URLs on a site; may be repeated',
      collect(siteFolder),
    )
  addCommonOptions(command, 'print the address as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: DashboardCommandOptions) => showDashboard(options, signal))
}

async function showDashboard(options: DashboardCommandOptions, signal: AbortSignal): Promise<void> {
  const { log: file, port, baseUrl = variable('RIVULET_BASE_URL') } = options
  const logger = createLog(options)
  const output = outputOf(options, signal)
  const client = baseUrl === undefined ? undefined : clientOf(logger, baseUrl)
  await using opened = await openLogAt(file)
  await using documents = await openDocuments(options, logger)
  // Imported here, so that other commands start faster.
  const { openDashboard } = await import('./dashboard-endpoint.ts')
  await using endpoint = await openDashboard({
    log: opened.log,
    client,
    documents: documents?.find,
    port,
    logger,
  })
  const { url } = endpoint
  if (output.json) {
    await output.value({ dashboard: { url } })
  } else {
    await output.line(`Dashboard of ${file} at ${output.paint('bold', url)}`)
    await output.line(output.paint('dim', 'Who has this address sees the whole log. Ctrl-C stops it.'))
  }
  await aborted(signal)
  logger.debug('closing')
}

/** The documents of the folders; undefined without folders. */
async function openDocuments(
  { docs = [], site: sites = [] }: DashboardCommandOptions,
  logger: Logger,
): Promise<({ readonly find: FindDocument } & AsyncDisposable) | undefined> {
  if (docs.length + sites.length === 0) return undefined
  const { createResearchService } = await import('rivulet/service')
  // It does not listen: only its index of documents is used.
  const service = await createResearchService({
    docs: [...docs, ...sites],
    onError: (error, ref_id) => logServiceError(logger, error, ref_id),
  })
  return {
    find: (url) => service.corpus.document(url),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}
