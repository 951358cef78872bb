import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { Command } from 'commander'
import { LogInUseError } from 'rivulet/log'
import type { Migrated } from 'rivulet/log/store'
import { CopiedLogInUse, UsageError } from '../exit.ts'
import { LOG_OPTION, storeAt } from '../opened-log.ts'
import { addCommonOptions, outputOf } from '../options.ts'
import type { CommonOptions } from '../options.ts'
import { createProgress } from '../progress.ts'
import { isServerAddress } from '../server-log.ts'

interface MigrateCommandOptions extends CommonOptions {
  readonly log: string
  readonly to: string
  readonly effects?: readonly string[]
}

const EXAMPLES = `
Everything goes along: entries, positions of streams, consumers and processes with their state, dead letters, webhooks, and what is known
of deleted entries. Recorders, consumers and processes go on in the new log where they were in the old one, which stays as it is. End
all of them first: nothing may be recorded or consumed meanwhile.

At the end, the new log is read and compared with the old one. Interrupted, it leaves no log; the same command begins anew. A log is a
file, or nats://host:4222/NAME, whose credentials are read from the environment: see "rivulet --help".

A consumer with exactlyOnce has its position in the database of its effects: name each of these databases with --effects. It stays where it is,
and knows both logs until the consumer begins in one of them. From then on, the other log is refused.

Examples:
  $ rivulet log migrate --log rivulet.db --to nats://localhost:4222/watch
  $ rivulet log migrate --log nats://localhost:4222/watch --to rivulet.db
  $ rivulet log migrate --log rivulet.db --to nats://localhost:4222/watch --effects ledger.db`

/** `rivulet log migrate`: a whole log into a new one of any kind. */
export function addMigrate(group: Command, signal: AbortSignal): void {
  const command = group
    .command('migrate')
    .description('Copy a whole log into a new one, from a file to a server or back.')
    .requiredOption(...LOG_OPTION)
    .requiredOption('--to <file|url>', 'the new log')
    .option('--effects <files...>', 'the SQLite databases of the effects of consumers with exactlyOnce')
  addCommonOptions(command, 'print what was copied as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((options: MigrateCommandOptions) => migrate(options, signal))
}

async function migrate(options: MigrateCommandOptions, signal: AbortSignal): Promise<void> {
  const { log: from, to, effects = [] } = options
  // A log without entries would be treated as a new one, and created again. A file is refused in any case.
  if (from === to && isServerAddress(from))
    throw new UsageError('--log and --to are the same log: name a new one')
  const missing = effects.find((file) => !existsSync(file))
  if (missing !== undefined) throw new UsageError(`--effects: there is no file ${missing}`)
  await using source = closing(await storeAt(from, false))
  await using target = closing(await storeAt(to, true))
  const { sqliteEffects } = await import('rivulet/log/sqlite')
  const { migrateLog } = await import('rivulet/log/store')
  const progress = createProgress(process.stderr, process, 'entries')
  const { DatabaseSync } = await import('node:sqlite')
  const databases: DatabaseSync[] = []
  let migrated: Migrated
  try {
    for (const file of effects) databases.push(new DatabaseSync(file))
    migrated = await migrateLog(source.store, target.store, {
      effects: databases.map(sqliteEffects),
      onProgress: (copied, entries) => progress.set(copied, entries),
      signal,
    })
  } catch (error) {
    throw error instanceof LogInUseError ? new CopiedLogInUse(error) : error
  } finally {
    for (const database of databases) database.close()
    progress.stop()
  }
  const output = outputOf(options, signal)
  if (output.json) return await output.value({ migrated })
  const { entries, hash, streams, readers, states, deadLetters, webhooks, identities } = migrated
  const count = (number: number) => number.toLocaleString('en')
  await output.line(`${to} has what ${from} has:`)
  await output.line(`${count(entries)} entries, SHA-256 ${hash}`)
  await output.line(
    `${count(streams)} streams, ${count(readers)} consumers and processes, ${count(states)} states, ` +
      `${count(deadLetters)} dead letters, ${count(webhooks)} webhooks, ${count(identities)} identities of deleted entries`,
  )
}

function closing<Store extends { close(): Promise<void> }>(store: Store) {
  return { store, [Symbol.asyncDispose]: () => store.close() }
}
