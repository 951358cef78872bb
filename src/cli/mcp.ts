import type { Command } from 'commander'
import { clientOf } from './connection.ts'
import { variable } from './environment.ts'
import { OutputClosed, UsageError } from './exit.ts'
import { aborted } from './interruption.ts'
import { createLog } from './log.ts'
import { openLogAt } from './opened-log.ts'
import { addCommonOptions, outputOf, portNumber } from './options.ts'
import type { CommonOptions } from './options.ts'
import { readRules } from './rules/rule-files.ts'

interface McpOptions extends CommonOptions {
  readonly baseUrl?: string
  readonly log?: string
  readonly rules?: readonly string[]
  readonly name: string
  readonly allowActions?: boolean
  readonly http?: boolean
  readonly port: number
}

const HELP = `
An agent starts it, and speaks with it over stdin and stdout, until it closes stdin. With --http, it serves agents of this machine at the
printed address until Ctrl-C or SIGTERM, and asks for a token: RIVULET_MCP_TOKEN, or a random one that is printed.

The tools of a service are web_search, web_fetch and research_status, and with --allow-actions also research and find_all, which create
runs. Those of a log are recent_events, alerts, explain_alert and rules_check. None of them writes to the log.

Examples:
  $ RIVULET_BASE_URL=… RIVULET_API_KEY=… rivulet mcp --allow-actions
  $ rivulet mcp --log rivulet.db --rules 'rules/*.yaml'
  $ rivulet mcp --http --port 8124 --log rivulet.db`

/** `rivulet mcp`: a service and an event log as tools for language models. */
export function addMcp(program: Command, signal: AbortSignal): void {
  const command = program
    .command('mcp')
    .description('Give an agent tools over a service and an event log, by the Model Context Protocol.')
    .option('--base-url <url>', 'address of the service (default: RIVULET_BASE_URL)')
    .option('--log <file|url>', 'log: an SQLite file, or nats://host:4222/NAME')
    .option('--rules <files...>', 'with --log: rule files, or patterns in quotes, for explain_alert')
    .option('--name <name>', 'with --log: name of the process of alert rules', 'rules')
    .option('--allow-actions', 'also give the tools that create runs, which cost money')
    .option('--http', 'serve HTTP on this machine, instead of stdin and stdout')
    .option('--port <number>', 'with --http: port; 0 is any free port', portNumber, 0)
  addCommonOptions(
    command,
    'with --http: print the address and the token as one line of JSON; without it, stdout has the protocol alone',
  )
    .addHelpText('after', HELP)
    .action((options: McpOptions) => serveTools(options, signal))
}

async function serveTools(options: McpOptions, signal: AbortSignal): Promise<void> {
  const { baseUrl = variable('RIVULET_BASE_URL'), log: file, rules: files, name } = options
  const { allowActions = false, http = false, port } = options
  if (baseUrl === undefined && file === undefined) {
    throw new UsageError('no tools: set RIVULET_BASE_URL or --base-url to a service, or --log to a log')
  }
  if (files !== undefined && file === undefined) throw new UsageError('--rules needs --log')
  const logger = createLog(options)
  const client = baseUrl === undefined ? undefined : clientOf(logger, baseUrl)
  const rules = files === undefined ? undefined : await readRules(files)
  await using opened = file === undefined ? undefined : await openLogAt(file)
  // Imported here, so that other commands start faster.
  const { createTools, openHttp, serveStdio } = await import('./mcp/tool-endpoints.ts')
  const tools = createTools({ client, log: opened?.log, rules, process: name, allowActions })
  if (!http) {
    await serveStdio(tools, logger, signal)
    throw new OutputClosed()
  }

  const token = variable('RIVULET_MCP_TOKEN')
  await using endpoint = await openHttp(tools, port, token)
  const output = outputOf(options, signal)
  // A token from the environment is known, and must not be printed.
  const secret = token === undefined ? { token: endpoint.token } : {}
  if (output.json) await output.value({ mcp: { url: endpoint.url, ...secret } })
  else {
    await output.line(`Tools at ${output.paint('bold', endpoint.url)}`)
    if (token === undefined) await output.line(`  token  ${endpoint.token}`)
    await output.line(output.paint('dim', 'Ctrl-C stops it.'))
  }
  await aborted(signal)
  logger.debug('closing')
}
