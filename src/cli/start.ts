import type { Command } from 'commander'
import { createLog } from './log.ts'
import { addCommonOptions, collect, folder } from './options.ts'
import type { CommonOptions } from './options.ts'
import { createOutput } from './output.ts'
import type { Summary } from './start/ledger.ts'

interface StartOptions extends CommonOptions {
  readonly docs?: readonly string[]
}

/** How long the demonstration may take, in ms. It takes seconds; what takes longer is stuck. */
const DEADLINE = 55_000

const DOCS_HELP =
  'folder of documents to answer from; may be repeated (default: the README and CHANGELOG files of installed packages)'

const EXAMPLES = `
It needs neither key nor network, and ends by itself.

Examples:
  $ rivulet start
  $ rivulet start --docs ./docs
  $ rivulet start --json | tail -n 1`

/** `rivulet start`: the whole of it at work on real documents, in a few seconds. */
export function addStart(program: Command, signal: AbortSignal): void {
  const command = program
    .command('start')
    .description(
      'See it at work: a service, a client, cut streams and repeated webhooks, nothing lost, nothing twice.',
    )
    .option('--docs <folder>', DOCS_HELP, collect(folder))
  addCommonOptions(command, 'print events as they are, one a line, and a summary in the last line')
    .addHelpText('after', EXAMPLES)
    .action((options: StartOptions) => start(options, signal))
}

async function start(options: StartOptions, ended: AbortSignal): Promise<void> {
  const log = createLog(options, 'error')
  const overdue = new AbortController()
  const timer = setTimeout(() => {
    overdue.abort(
      new Error(`it was not done after ${DEADLINE / 1_000} s; --verbose shows where it stands still`),
    )
  }, DEADLINE)
  try {
    const signal = AbortSignal.any([ended, overdue.signal])
    const output = createOutput(process.stdout, { json: options.json === true, signal })
    // The other commands do without, and start sooner.
    const [{ runScenario }, { jsonNarrator }, { storyNarrator }] = await Promise.all([
      import('./start/scenario.ts'),
      import('./start/narrator.ts'),
      import('./start/story.ts'),
    ])
    const narrator = output.json ? jsonNarrator(output) : storyNarrator(output)
    verify(await runScenario({ docs: options.docs, narrator, log, signal }))
  } finally {
    clearTimeout(timer)
  }
}

/** Throws where the demonstration did not show what it is there to show. */
function verify({ lost, doubled, reconnects, duplicates_dropped }: Summary): void {
  const failures = [
    ...(lost > 0 ? [`${lost} facts were lost`] : []),
    ...(doubled > 0 ? [`${doubled} facts came twice`] : []),
    ...(reconnects < 2 ? [`streams were taken up again ${reconnects} times, not at least twice`] : []),
    ...(duplicates_dropped < 1 ? ['there was no duplicate to drop'] : []),
  ]
  if (failures.length > 0) throw new Error(failures.join('; '))
}
