import type { Command } from 'commander'
import { LOG_OPTION, openLogAt } from '../opened-log.ts'
import { addCommonOptions } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { createOutput } from '../output.ts'

interface BackupOptions extends CommonOptions {
  readonly log: string
  readonly to: string
}

const EXAMPLES = `
The log may be recorded and read meanwhile. The copy is a log of its own: positions of the one are not valid in the other.

Examples:
  $ rivulet log backup --log rivulet.db --to backup.db`

/** `rivulet log backup`: a copy of a log. */
export function addBackup(group: Command, signal: AbortSignal): void {
  const command = group
    .command('backup')
    .description('Copy a log into a new file, while it is used.')
    .requiredOption(...LOG_OPTION)
    .requiredOption('--to <file>', 'the file to create')
  addCommonOptions(command, 'print the file as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action(async ({ log, to, json = false }: BackupOptions) => {
      await using file = await openLogAt(log)
      await file.log.backup(to)
      const output = createOutput(process.stdout, { json, signal })
      await (json ? output.value({ backup: to }) : output.line(`${log} was copied to ${to}.`))
    })
}
