import type { Command } from 'commander'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { variable } from './environment.ts'
import { UsageError } from './exit.ts'
import { createLog } from './log.ts'
import type { Logger } from './log.ts'
import { addCommonOptions, outputOf } from './options.ts'
import type { CommonOptions } from './options.ts'
import type { Output } from './output.ts'

/** Options of the commands that use a service. */
export interface ConnectionOptions extends CommonOptions {
  readonly baseUrl?: string
}

/** The client, log and output of a command that uses a service. */
export interface Connection {
  readonly client: ResearchClient
  /** The log, which also receives the client's diagnostics. */
  readonly log: Logger
  readonly output: Output
}

/** Adds the option for the address of the service, and the common ones. */
export function addConnectionOptions(command: Command, json: string): Command {
  const described = command.option('--base-url <url>', 'address of the service (default: RIVULET_BASE_URL)')
  return addCommonOptions(described, json)
}

/** Creates a client from the options and the environment, with the command's log and output. */
export function connect(options: ConnectionOptions, signal?: AbortSignal): Connection {
  const log = createLog(options)
  const client = clientOf(log, options.baseUrl)
  const output = outputOf(options, signal)
  return { client, log, output }
}

/** The key is read only from the environment, since other users of the machine can read a command line. */
export function clientOf(logger: Logger, baseUrl = variable('RIVULET_BASE_URL')): ResearchClient {
  const apiKey = variable('RIVULET_API_KEY')
  if (baseUrl === undefined || baseUrl === '') {
    throw new UsageError('no service: set RIVULET_BASE_URL or --base-url to its address')
  }
  if (apiKey === undefined) {
    throw new UsageError('RIVULET_API_KEY is not set: the service requires an API key')
  }
  return createClient({ baseUrl, apiKey, logger })
}
