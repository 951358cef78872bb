import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { UsageError } from '../exit.ts'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { oneLine } from '../plain.ts'
import { knownReader } from './known-reader.ts'

interface RewindOptions extends CommonOptions {
  readonly log: string
  readonly consumer: string
  readonly effects: string
}

const EXAMPLES = `
For a consumer with exactlyOnce whose log was put back to an earlier state, while the database of its effects was not. The consumer goes on
where the log has it: nothing is missing then, and effects of entries after that position are applied again when the entries are read or
recorded again. To avoid that, put the database back to the same moment as the log in its place. End the consumer first.

Example:
  $ rivulet log rewind --log rivulet.db --consumer ledger --effects ledger.db`

/** `rivulet log rewind`: sets the position that a consumer's effects store to the position in the log. */
export function addRewind(group: Command, signal: AbortSignal): void {
  const command = group
    .command('rewind')
    .description('Let a consumer with exactlyOnce go on where the log has it, after the log was put back.')
    .requiredOption(...LOG_OPTION)
    .requiredOption('--consumer <name>', 'the consumer')
    .requiredOption('--effects <file>', 'the SQLite database of its effects')
  addCommonOptions(command, 'print the positions as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: RewindOptions) => rewind(options, signal))
}

async function rewind(
  { log, consumer, effects, ...options }: RewindOptions,
  signal: AbortSignal,
): Promise<void> {
  if (!existsSync(effects)) throw new UsageError(`--effects: there is no file ${effects}`)
  await using opened = await openLogAt(log)
  await knownReader(opened.log, { consumer })
  const [{ DatabaseSync }, { rewindEffects }] = await Promise.all([
    import('node:sqlite'),
    import('rivulet/log/sqlite'),
  ])
  const database = new DatabaseSync(effects)
  try {
    const rewound = await rewindEffects(database, opened.store, consumer)
    const output = outputOf(options, signal)
    if (output.json) return await output.value({ rewound })
    for (const { from, to } of rewound) {
      await output.line(
        `The consumer ${oneLine(consumer, 200)} goes on after ${to}. It was at ${from ?? 'no position'}.`,
      )
    }
  } finally {
    database.close()
  }
}
