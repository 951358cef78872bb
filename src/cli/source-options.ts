import type { Command } from 'commander'
import { collect, portNumber } from './options.ts'

/** Options that name what to follow: monitors, task groups and webhooks. */
export interface SourceOptions {
  readonly monitor?: readonly string[]
  readonly group?: readonly string[]
  readonly webhookPort?: number
  readonly webhookHost: string
}

/** Adds the options that name what to follow. */
export function addSourceOptions(command: Command, verb: 'follow' | 'record'): Command {
  return command
    .option('--monitor <id>', `a monitor to ${verb}; may be repeated`, collect(String))
    .option('--group <id>', `a task group to ${verb} until it is done; may be repeated`, collect(String))
    .option(
      '--webhook-port <number>',
      'receive webhooks on this port; needs RIVULET_WEBHOOK_SECRET',
      portNumber,
    )
    .option('--webhook-host <address>', 'address to receive webhooks on', '127.0.0.1')
}

/** The monitors and groups as fields of a log entry. */
export function sourceFields({ monitor = [], group = [] }: SourceOptions) {
  return { ...(monitor.length > 0 && { monitors: monitor }), ...(group.length > 0 && { groups: group }) }
}
