import { Command, Help } from 'commander'
import { addChat } from './chat.ts'
import { addDashboard } from './dashboard.ts'
import { VARIABLES } from './environment.ts'
import { addEventLog } from './event-log.ts'
import { EXIT } from './exit-codes.ts'
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
    .addHelpText('after', environmentAndExitCodes)
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

function environmentAndExitCodes(): string {
  const help = new Help()
  help.prepareContext({ helpWidth: process.stdout.columns })
  const variables = Object.entries(VARIABLES).map(([name, { meaning, usedBy, defaultValue }]) => {
    const text = `${meaning}; ${usedBy}${defaultValue === '' ? '' : ` (default: ${defaultValue})`}`
    return help.formatItem(name, VARIABLE_WIDTH, text, help)
  })
  const codes = Object.values(EXIT).map(({ code, meaning }) =>
    help.formatItem(String(code), 3, meaning, help),
  )
  const noColor = help.formatItem('NO_COLOR', VARIABLE_WIDTH, 'no colours', help)
  return ['', 'Environment:', ...variables, noColor, '', 'Exit codes:', ...codes].join('\n')
}

const VARIABLE_WIDTH = Math.max(...Object.keys(VARIABLES).map(({ length }) => length))
