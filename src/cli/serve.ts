import { Option } from 'commander'
import type { Command } from 'commander'
import type { Fault } from 'rivulet/service'
import { FAULTS_HELP, parseFault } from './faults.ts'
import { installedDocuments } from './installed.ts'
import { aborted } from './interruption.ts'
import { addCommonOptions, collect, factor, folder, portNumber, siteFolder } from './options.ts'
import type { CommonOptions } from './options.ts'
import { createLog, logServiceError } from './log.ts'
import { createOutput } from './output.ts'

interface ServeOptions extends CommonOptions {
  readonly port: number
  readonly host: string
  readonly apiKey?: string
  readonly docs?: readonly string[]
  readonly site?: readonly { readonly site: string; readonly folder: string }[]
  readonly data?: string
  readonly speed: number
  readonly allowPrivateAddresses?: boolean
  readonly fault?: readonly Fault[]
}

const LOOPBACK = '127.0.0.1'
/** The hosts that only this machine can reach. */
const LOOPBACKS = new Set([LOOPBACK, '::1', 'localhost'])

const DOCS_HELP =
  'folder of Markdown, HTML and text files; may be repeated (default: the README and CHANGELOG files of installed packages)'

const EXAMPLES = `
Examples:
  $ rivulet serve --docs ./docs
  $ rivulet serve --port 8123 --docs ./docs --data research.db
  $ rivulet serve --site https://docs.example=./docs
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
    .option('--port <number>', 'port; 0 is any free port', portNumber, 0)
    .option('--host <address>', 'address to listen on; only loopback excludes other machines', LOOPBACK)
    .addOption(
      new Option('--api-key <key>', 'API key that clients need (default: random)').env('RIVULET_API_KEY'),
    )
    .option('--data <file>', 'SQLite file for all data (default: in memory)')
    .option('--speed <factor>', 'speed of its clock relative to real time', factor, 1)
    .option(
      '--allow-private-addresses',
      'extract pages and call tool servers of this machine and its network, and send webhooks there (default: only webhooks, and only on loopback)',
    )
    .option('--fault <fault>', 'a fault to inject, see below; may be repeated', collect(parseFault))
  addCommonOptions(command, 'print the address as one line of JSON')
    .addHelpText('after', FAULTS_HELP)
    .addHelpText('after', EXAMPLES)
    .action((options: ServeOptions) => serve(options, signal))
}

/** Webhooks of an earlier process are sent before the service listens, so their setting depends on the host here. */
function privateAddresses({ host, allowPrivateAddresses = false }: ServeOptions) {
  return { allowPrivateAddresses, allowPrivateWebhooks: allowPrivateAddresses || LOOPBACKS.has(host) }
}

async function serve(options: ServeOptions, signal: AbortSignal): Promise<void> {
  const { docs = [], site: sites = [], port, host, apiKey, data, speed, fault: faults = [] } = options
  const log = createLog(options)
  const output = createOutput(process.stdout, { json: options.json === true, signal })

  // Imported here, so that other commands start faster.
  const { createResearchService } = await import('rivulet/service')
  const webhookSecret = process.env['RIVULET_WEBHOOK_SECRET']
  await using service = await createResearchService({
    ...(docs.length + sites.length === 0 ? await installedDocuments() : { docs: [...docs, ...sites] }),
    speed,
    faults,
    ...privateAddresses(options),
    ...(apiKey !== undefined && { apiKey }),
    ...(data !== undefined && { data }),
    ...(webhookSecret !== undefined && { webhookSecret }),
    onError: (error, ref_id) => logServiceError(log, error, ref_id),
  })
  const url = await service.listen({ port, host, allowRemote: host !== LOOPBACK })
  const documents = service.corpus.size
  // A secret from the environment is known, and must not be printed.
  const secrets = {
    ...(apiKey === undefined && { api_key: service.apiKey }),
    ...(webhookSecret === undefined && { webhook_secret: service.webhookSecret }),
  }
  if (output.json) {
    await output.value({ service: { url, documents, ...secrets } })
  } else {
    await output.line(
      `Research service at ${output.paint('bold', url)} over ${documents} ${documents === 1 ? 'document' : 'documents'}.`,
    )
    for (const [name, value] of Object.entries(secrets)) {
      await output.line(`  ${name.replace('_', ' ').padEnd(16)}${value}`)
    }
    const key = apiKey === undefined ? ` RIVULET_API_KEY=${service.apiKey}` : ''
    await output.hint(`For other commands: export RIVULET_BASE_URL=${url}${key}`)
    await output.line(output.paint('dim', 'Ctrl-C stops it.'))
  }
  await aborted(signal)
  log.debug('closing')
}
