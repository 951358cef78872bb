import type { Command } from 'commander'
import { collect, portNumber } from './options.ts'

/** Options that name what to follow: monitors, task groups, single runs, FindAll runs and webhooks. */
export interface SourceOptions {
  readonly monitor?: readonly string[]
  readonly group?: readonly string[]
  readonly run?: readonly string[]
  readonly findAll?: readonly string[]
  readonly webhookPort?: number
  readonly webhookHost: string
}

/** Adds the options that name what to follow. */
export function addSourceOptions(command: Command, verb: 'follow' | 'record'): Command {
  return command
    .option('--monitor <id>', `a monitor to ${verb}; may be repeated`, collect(String))
    .option('--group <id>', `a task group to ${verb} until it is done; may be repeated`, collect(String))
    .option('--run <id>', `a single run to ${verb} until it ends; may be repeated`, collect(String))
    .option('--find-all <id>', `a FindAll run to ${verb} until it ends; may be repeated`, collect(String))
    .option(
      '--webhook-port <number>',
      'receive webhooks on this port; needs RIVULET_WEBHOOK_SECRET',
      portNumber,
    )
    .option('--webhook-host <address>', 'address to receive webhooks on', '127.0.0.1')
}

/** The ids of the sources to follow, as `client.watch` and `log.record` take them. */
export type WatchedIds = Readonly<Record<'monitors' | 'taskGroups' | 'runs' | 'findAlls', readonly string[]>>

/** The ids that the options name. */
export function watchedIds({ monitor = [], group = [], run = [], findAll = [] }: SourceOptions): WatchedIds {
  return { monitors: monitor, taskGroups: group, runs: run, findAlls: findAll }
}

/** Whether no id is named. */
export function hasNoIds(ids: WatchedIds): boolean {
  return Object.values(ids).every((list) => list.length === 0)
}

/** The ids as fields of a log entry. */
export function sourceFields({ taskGroups, ...others }: WatchedIds) {
  return Object.fromEntries(
    Object.entries({ ...others, groups: taskGroups }).filter(([, ids]) => ids.length > 0),
  )
}
