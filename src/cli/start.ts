import type { Command } from 'commander'
import { aborted } from './interruption.ts'
import { createLog } from './log.ts'
import { addCommonOptions, collect, folder, outputOf } from './options.ts'
import type { CommonOptions } from './options.ts'
import type { Summary } from './start/ledger.ts'

interface StartOptions extends CommonOptions {
  readonly docs?: readonly string[]
  readonly dashboard?: boolean
}

/** The timeout of the demonstration, in ms. It normally takes seconds. */
const DEADLINE = 55_000

const DOCS_HELP =
  'folder of documents to answer from; may be repeated (default: the README and CHANGELOG files of installed packages)'

const EXAMPLES = `
It needs neither a key nor a network, and ends on its own, or with --dashboard at Ctrl-C.

Examples:
  $ rivulet start
  $ rivulet start --docs ./docs
  $ rivulet start --dashboard
  $ rivulet start --json | tail -n 1`

/** `rivulet start`: demonstrates the whole library on real documents, in a few seconds. */
export function addStart(program: Command, signal: AbortSignal): void {
  const command = program
    .command('start')
    .description(
      'Run a demonstration: a service, broken streams, repeated webhooks, and a log with consumers, a process and an alert rule.',
    )
    .option('--docs <folder>', DOCS_HELP, collect(folder))
    .option('--dashboard', 'keep everything open at the end, for the dashboard, until Ctrl-C')
  addCommonOptions(command, 'print each event, then the summary, as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: StartOptions) => start(options, signal))
}

async function start(options: StartOptions, ended: AbortSignal): Promise<void> {
  const log = createLog(options, 'error')
  const overdue = new AbortController()
  const timer = setTimeout(() => {
    overdue.abort(new Error(`the demonstration timed out after ${DEADLINE / 1_000} s; --verbose shows where`))
  }, DEADLINE)
  try {
    const signal = AbortSignal.any([ended, overdue.signal])
    const output = outputOf(options, signal)
    // Imported here, so that other commands start faster.
    const [{ runScenario }, { jsonNarrator }, { StoryNarrator }] = await Promise.all([
      import('./start/scenario.ts'),
      import('./start/narrator.ts'),
      import('./start/story.ts'),
    ])
    const narrator = output.json ? jsonNarrator(output) : new StoryNarrator(output)
    const stay = async (summary: Summary) => {
      clearTimeout(timer)
      verify(summary)
      await output.hint('The dashboard is open until Ctrl-C.')
      await aborted(ended)
    }
    const { docs, dashboard = false } = options
    verify(await runScenario({ docs, narrator, log, signal, ...(dashboard && { stay }) }))
  } finally {
    clearTimeout(timer)
  }
}

/** Throws if the demonstration failed. */
function verify({ lost, doubled, reconnects, duplicates_dropped, alerts }: Summary): void {
  const failures = [
    ...(lost > 0 ? [`${lost} events were lost`] : []),
    ...(doubled > 0 ? [`${doubled} events were duplicated`] : []),
    ...(reconnects < 2 ? [`streams reconnected ${reconnects} times, expected at least 2`] : []),
    ...(alerts.firing !== 1 || alerts.resolved !== 1
      ? [`${alerts.firing} alerts fired and ${alerts.resolved} were resolved, expected 1`]
      : []),
    ...(duplicates_dropped < 1 ? ['no duplicate was dropped'] : []),
  ]
  if (failures.length > 0) throw new Error(failures.join('; '))
}
