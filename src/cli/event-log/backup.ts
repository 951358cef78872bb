import type { Command } from 'commander'
import { LogUnsupportedError } from 'rivulet/log'
import { LOG_OPTION } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { isServerAddress } from '../server-log.ts'

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
    .action(async ({ log, to, ...options }: BackupOptions) => {
      await copyFile(log, to)
      const output = outputOf(options, signal)
      await (output.json ? output.value({ backup: to }) : output.line(`${log} was copied to ${to}.`))
    })
}

async function copyFile(log: string, to: string): Promise<void> {
  if (isServerAddress(log)) {
    throw new LogUnsupportedError(
      'a log on a NATS server cannot be copied to a file: use `nats stream backup` for its streams, or `rivulet log read`',
    )
  }
  const { sqliteStore } = await import('rivulet/log/sqlite')
  const store = sqliteStore(log, { create: false })
  await store.backup(to).finally(() => store.close())
}
