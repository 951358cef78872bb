import type { Command } from 'commander'
import { RivuletError } from 'rivulet'
import { LogInUseError } from 'rivulet/log'
import type { ResearchEventType } from 'rivulet'
import type { Entry, EventLog, LogJob, Position, StartAt } from 'rivulet/log'
import type { NotifyProblem, RuleError, RunningRules } from 'rivulet/rules'
import { RecordedElsewhere } from '../exit.ts'
import { eventLine } from '../event-line.ts'
import { aborted } from '../interruption.ts'
import { createLog, errorFields } from '../log.ts'
import type { Logger } from '../log.ts'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf, startAt } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import type { Output } from '../output.ts'
import { NOTIFIERS } from './notifiers.ts'
import type { BeginNotifier } from './notifiers.ts'
import { readRules, watchRuleFiles } from './rule-files.ts'

interface RulesRunOptions extends CommonOptions {
  readonly log: string
  readonly rules: readonly string[]
  readonly name?: string
  readonly from?: StartAt
  readonly wait?: boolean
}

const ALERTS = [
  'alert.pending',
  'alert.inactive',
  'alert.firing',
  'alert.resolved',
  'alert.unknown',
  'alert.known',
  'alert.late',
] as const satisfies readonly ResearchEventType[]

/** Maximum number of entries that are read at once. */
const PAGE = 500

const EXAMPLES = `
It prints what becomes of each alert, and follows the log until Ctrl-C or SIGTERM. Started again, it goes on where it was: no alert
fires twice. The log is recorded by another process, as by "rivulet record".

A change of the rule files is used within seconds. Alerts of rules that did not change stay. Where the files have a problem, it is
logged, and the rules that were there go on.

Only one process at a time can run rules of a name: another one ends with exit code 6, or waits with --wait.

Secrets are read from the environment, since other users of the machine can read a command line. Notifiers begin with the alerts that
fire from now on, and go on where they were when they are started again.

Examples:
  $ rivulet rules run --log rivulet.db --rules rules.yaml
  $ rivulet rules run --log rivulet.db --rules 'rules/*.yaml' --alertmanager http://127.0.0.1:9093
  $ SLACK_URL=… rivulet rules run --log rivulet.db --rules rules.yaml --slack-url-env SLACK_URL
  $ rivulet rules run --log rivulet.db --rules rules.yaml --json | jq .data.labels`

/** `rivulet rules run`: rules over a log. */
export function addRun(group: Command, signal: AbortSignal): void {
  const command = group
    .command('run')
    .description('Run rules over an event log, and print and send their alerts.')
    .requiredOption(...LOG_OPTION)
    .requiredOption('--rules <files...>', 'rule files, or patterns in quotes')
  const notifiers = NOTIFIERS.map((add) => add(command))
  command
    .option('--name <name>', 'name of the process in the log (default: rules)')
    .option('--from <time>', 'start, end, or the time at which a new name begins (default: end)', startAt)
    .option('--wait', 'wait while another process runs these rules, instead of an error')
  addCommonOptions(command, 'print each alert event as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (options: RulesRunOptions) => {
      await run(
        options,
        notifiers.flatMap((read) => read() ?? []),
        signal,
      )
      signal.throwIfAborted()
    })
}

/** Resolves after the signal aborts, when everything is saved and closed. */
async function run(
  options: RulesRunOptions,
  notifiers: readonly BeginNotifier[],
  signal: AbortSignal,
): Promise<void> {
  const { log: file, rules: files, name = 'rules', from = 'end', wait = false } = options
  const rules = await readRules(files)
  const log = createLog(options)
  await using opened = await openLogAt(file)
  const printed = await opened.log.positionAt('end')
  const library = await import('rivulet/rules')
  const running = library.runRules(opened.log, rules, { name, startAt: from, ...(wait && { wait: signal }) })
  const onProblem = ({ notifier, error, attempt }: NotifyProblem) =>
    log.warn({ notifier, attempt, ...errorFields(error) }, 'an alert was not notified')
  const jobs: readonly LogJob[] = [
    running,
    ...notifiers.map((begin) => begin(library, opened.log, onProblem)),
  ]
  log.info({ log: file, rules: rules.size }, 'running')
  const ending = new AbortController()
  const output = outputOf(options)
  const printing = print(opened.log, { name, after: printed }, output, ending.signal)
  const watching = watchRuleFiles(files, AbortSignal.any([signal, ending.signal]), () =>
    reload(running, files, log),
  )
  try {
    // A failure of any part ends all of them.
    await Promise.race([aborted(signal), ...jobs.map(({ done }) => done), printing, watching])
  } catch (error) {
    throw error instanceof LogInUseError ? new RecordedElsewhere(error) : error
  } finally {
    // The rules end first, so that their last output is printed, too.
    for (const job of jobs)
      await job.stop().catch((error: unknown) => log.debug({ error: String(error) }, 'a job failed'))
    ending.abort()
    await Promise.allSettled([printing, watching])
  }
}

async function reload(running: RunningRules, files: readonly string[], log: Logger): Promise<void> {
  try {
    const rules = await readRules(files)
    await running.reload(rules)
    log.info({ rules: rules.size }, 'rules reloaded')
  } catch (error) {
    if (!RivuletError.is<RuleError>(error, 'rule')) throw error
    log.error(errorFields(error), 'the rules were changed and have problems: the earlier ones go on')
  }
}

/** Prints the alerts of the rules of this name after a position until the signal aborts, then those that are already there. */
async function print(
  log: EventLog,
  { name, after }: { readonly name: string; readonly after: Position },
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  let position = after
  for (;;) {
    const isLast = signal.aborted
    const page = await log.read(position, { limit: PAGE, types: ALERTS })
    for (const entry of page.entries) if (entry.cause?.process === name) await printAlert(entry, output)
    position = page.position
    if (!page.isEnd) continue
    if (isLast) return
    await log.wait(position, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error
    })
  }
}

function printAlert(entry: Entry, output: Output): Promise<void> {
  return output.json ? output.value(entry) : output.line(eventLine(entry, output))
}
