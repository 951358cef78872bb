import { statSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import { createClient } from 'rivulet'
import type { ResearchClient } from 'rivulet'
import { UsageError } from './exit.ts'

/** Options that every command has. */
export interface CommonOptions {
  readonly json?: boolean
  readonly verbose?: boolean
}

/** Adds the options that every command has. */
export function addCommonOptions(command: Command, json: string): Command {
  return command
    .option('--json', json)
    .option('-v, --verbose', 'log more on stderr; RIVULET_LOG sets the level precisely')
}

/** Adds the option that tells where the service is. */
export function addBaseUrl(command: Command): Command {
  return command.option('--base-url <url>', 'address of the service (default: RIVULET_BASE_URL)')
}

/**
 * A client of the service that the options or the environment name. The key comes from the environment alone: other
 * users of the machine can read a command line.
 */
export function connect(baseUrl = process.env['RIVULET_BASE_URL']): ResearchClient {
  const apiKey = process.env['RIVULET_API_KEY']
  if (baseUrl === undefined || baseUrl === '') {
    throw new UsageError('which service? Set RIVULET_BASE_URL or --base-url to its address')
  }
  if (apiKey === undefined || apiKey === '') {
    throw new UsageError('RIVULET_API_KEY is not set: the service answers only with an API key')
  }
  return createClient({ baseUrl, apiKey })
}

/** Collects the values of an option that may be repeated. */
export function collect<T>(parse: (text: string) => T): (text: string, previous?: readonly T[]) => T[] {
  return (text, previous = []) => [...previous, parse(text)]
}

/** Reads the path of a folder that is there. */
export function folder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path
  throw new InvalidArgumentError('There is no such folder.')
}

/** Reads a whole number of at least `min` and at most `max`. */
export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
    throw new InvalidArgumentError(`Expected a whole number ${range}.`)
  }
}

/** Reads a port; 0 stands for any that is free. */
export const portNumber = wholeNumber(0, 65_535)

/** Reads a factor that makes something faster, not slower. */
export function factor(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= 1 && Number.isFinite(value)) return value
  throw new InvalidArgumentError('Expected a number of at least 1.')
}
