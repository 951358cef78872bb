import { Command } from 'commander'
import { addChat } from './chat.ts'
import { EXIT_CODES_HELP } from './exit.ts'
import { addDashboard } from './dashboard.ts'
import { addEventLog } from './event-log.ts'
import { addExtract } from './extract.ts'
import { addFindAll } from './find-all.ts'
import { addGroup } from './group.ts'
import { addMcp } from './mcp.ts'
import { addMemory } from './memory.ts'
import { addMonitor } from './monitor.ts'
import { addRecord } from './record.ts'
import { addRules } from './rules.ts'
import { addRun } from './run.ts'
import { addSearch } from './search.ts'
import { addServe } from './serve.ts'
import { addStart } from './start.ts'
import { manifest } from './installed.ts'
import { plain } from './plain.ts'
import { addWatch } from './watch.ts'

/** The `rivulet` command. Its subcommands end with the signal's reason when the signal aborts. */
export function createProgram(signal: AbortSignal): Command {
  const program = new Command('rivulet')
    .description('A web-research service as one stream of typed events.')
    .version(manifest().version)
    .exitOverride()
    // An argument that is wrong is in the error.
    .configureOutput({ writeErr: (text) => void process.stderr.write(plain(text)) })
    .showHelpAfterError('(use --help for details)')
    .addHelpText('after', ENVIRONMENT_HELP)
    .addHelpText('after', EXIT_CODES_HELP)
  addStart(program, signal)
  addServe(program, signal)
  addSearch(program, signal)
  addExtract(program, signal)
  addChat(program, signal)
  addFindAll(program, signal)
  addMemory(program, signal)
  addRun(program, signal)
  addGroup(program, signal)
  addMonitor(program, signal)
  addWatch(program, signal)
  addRecord(program, signal)
  addEventLog(program, signal)
  addDashboard(program, signal)
  addRules(program, signal)
  addMcp(program, signal)
  return program
}

const ENVIRONMENT_HELP = `
Environment:
  RIVULET_BASE_URL         address of the service, for all commands but start, serve, log and rules
  RIVULET_API_KEY          API key of the service; also the key that serve requires
  RIVULET_WEBHOOK_SECRET   secret that signs webhooks, for watch and serve
  RIVULET_MCP_TOKEN        token that agents send, for mcp --http (default: random)
  RIVULET_MODEL_KEY        key of the model server, for serve
  RIVULET_NATS_CREDS_FILE  .creds file for a log on a NATS server; or instead
  RIVULET_NATS_USER        user, and RIVULET_NATS_PASSWORD; or
  RIVULET_NATS_TOKEN       token
  RIVULET_NATS_CA_FILE     authorities of the certificate of this server, in PEM (default: those of Node)
  RIVULET_LOG              level of the log on stderr: trace, debug, info, warn, error or silent
  NO_COLOR                 no colours`
