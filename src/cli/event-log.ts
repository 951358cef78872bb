import type { Command } from 'commander'
import { addAppend } from './event-log/append.ts'
import { addBackup } from './event-log/backup.ts'
import { addDeadLetters } from './event-log/dead-letters.ts'
import { addRead, addTail } from './event-log/entries.ts'
import { addMigrate } from './event-log/migrate.ts'
import { addConsumers, addProcesses, addStats } from './event-log/numbers.ts'
import { addRemoveReader } from './event-log/remove-reader.ts'
import { addRewind } from './event-log/rewind.ts'

const EXAMPLES = `
The log may be recorded by another process at the same time. A missing log is an error, and is not created.

A log on a NATS server is nats://host:4222/NAME or tls://host:4222/NAME; in a cluster, nats://a:4222,b:4222/NAME. Its credentials are
read from the environment: see "rivulet --help".

Examples:
  $ rivulet log tail --log rivulet.db
  $ rivulet log stats --log nats://localhost:4222/watch
  $ rivulet log read --log rivulet.db --type task_run.state --json | jq .data.output`

/** `rivulet log`: reads and maintains an event log. */
export function addEventLog(program: Command, signal: AbortSignal): void {
  const group = program
    .command('log')
    .description(
      'Show what is in an event log that "rivulet record" or the library has written, and append to it.',
    )
    .addHelpText('after', EXAMPLES)
  addTail(group, signal)
  addRead(group, signal)
  addAppend(group, signal)
  addStats(group, signal)
  addConsumers(group, signal)
  addProcesses(group, signal)
  addDeadLetters(group, signal)
  addRemoveReader(group, signal)
  addBackup(group, signal)
  addMigrate(group, signal)
  addRewind(group, signal)
}
