import { statSync } from 'node:fs'
import { InvalidArgumentError } from 'commander'
import type { Command } from 'commander'
import type { StartAt } from 'rivulet/log'
import { UsageError } from './exit.ts'
import { createOutput } from './output.ts'
import type { Output } from './output.ts'

/** Options that every command has. */
export interface CommonOptions {
  readonly json?: boolean
  readonly verbose?: boolean
}

/** Adds the options that every command has. */
export function addCommonOptions(command: Command, json: string): Command {
  return command
    .option('--json', json)
    .option('-v, --verbose', 'log debug messages on stderr; RIVULET_LOG_LEVEL sets the exact level')
}

/** The output of a command. `signal` aborts waiting for a slow reader. */
export function outputOf({ json = false }: CommonOptions, signal?: AbortSignal): Output {
  return createOutput(process.stdout, { json, ...(signal !== undefined && { signal }) })
}

/** Collects the values of an option that may be repeated. */
export function collect<T>(parse: (text: string) => T): (text: string, previous?: readonly T[]) => T[] {
  return (text, previous = []) => [...previous, parse(text)]
}

/** Reads the path of an existing folder. */
export function folder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path
  throw new InvalidArgumentError('There is no such folder.')
}

/** Reads a source of documents: the path of an existing folder, or an http or https URL without credentials. */
export function documentSource(text: string): string {
  if (!/^[a-z][a-z0-9+.-]+:/i.test(text)) return folder(text)
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isValid =
    url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
  // Not an InvalidArgumentError, whose message would have the credentials.
  if (!isValid) {
    throw new UsageError('--source must be a folder, or an http or https URL without credentials')
  }
  return text
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

/** Parses the position from which a log is read: `start`, `end`, or a time in ISO 8601. */
export function startAt(text: string): StartAt {
  if (text === 'start' || text === 'end') return text
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN
  if (!Number.isNaN(time)) return { time }
  throw new InvalidArgumentError('Expected start, end, or a time such as 2026-01-31T12:00:00Z.')
}

const MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Reads a time with its unit, such as `30d`, in ms. */
export function timeSpan(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text) ?? []
  if (unit === 's' || unit === 'm' || unit === 'h' || unit === 'd') return Number(number) * MS[unit]
  throw new InvalidArgumentError('Expected a number and s, m, h or d, such as 30d.')
}

const BYTES = { kB: 1e3, MB: 1e6, GB: 1e9 } as const

/** Reads a size with its unit, such as `2GB`, in bytes. */
export function byteSize(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(kB|MB|GB)$/.exec(text) ?? []
  if (unit === 'kB' || unit === 'MB' || unit === 'GB') return Math.round(Number(number) * BYTES[unit])
  throw new InvalidArgumentError('Expected a number and kB, MB or GB, such as 2GB.')
}

/** Reads a port; 0 is any free port. */
export const portNumber = wholeNumber(0, 65_535)

/** Reads a speed factor of at least 1. */
export function factor(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= 1 && Number.isFinite(value)) return value
  throw new InvalidArgumentError('Expected a number of at least 1.')
}

/** Reads the name of a header. */
export function headerName(text: string): string {
  if (/^[\w-]+$/.test(text)) return text
  throw new InvalidArgumentError('Expected the name of a header, such as service-beta.')
}

/** Reads `name=value`. */
export function metadataEntry(text: string): readonly [name: string, value: string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new InvalidArgumentError('Expected name=value.')
}

/**
 * Reads `https://wiki.example=WIKI_AUTH`: an origin, and the variable of the environment whose value is a header line. No message has
 * the value.
 */
export function headerVariable(
  text: string,
): readonly [origin: string, header: Readonly<Record<string, string>>] {
  const at = text.lastIndexOf('=')
  const [url, variable] = [text.slice(0, Math.max(0, at)), text.slice(at + 1)]
  if (!URL.canParse(url)) throw new UsageError('--source-header-env must be ORIGIN=VARIABLE')
  const header = process.env[variable]
  if (header === undefined) throw new UsageError(`${variable} is not set, for --source-header-env`)
  const [, name, value] = /^([^:\s]+):[ \t]*(.+)$/.exec(header) ?? []
  if (name === undefined || value === undefined) {
    throw new UsageError(
      `${variable} must be a header, such as "Authorization: Bearer …", for --source-header-env`,
    )
  }
  return [new URL(url).origin, { [name]: value }]
}

/** Reads `https://docs.example=./docs`: a site, and the folder that it publishes. */
export function siteFolder(text: string): { readonly site: string; readonly folder: string } {
  const at = text.lastIndexOf('=')
  if (at <= 0 || !URL.canParse(text.slice(0, at))) {
    throw new InvalidArgumentError('Expected URL=FOLDER, such as https://docs.example=./docs.')
  }
  return { site: text.slice(0, at), folder: folder(text.slice(at + 1)) }
}
