import type { EventLog, LogReader, LogStats } from 'rivulet/log'
import { UsageError } from '../exit.ts'

/** The reader that the options name; undefined if they name none. */
export function readerOf(options: {
  readonly consumer?: string
  readonly process?: string
}): LogReader | undefined {
  const { consumer, process: name } = options
  if (name !== undefined) return { process: name }
  return consumer === undefined ? undefined : { consumer }
}

/** The numbers of a reader. Throws a UsageError that has the known names, if the log does not know it. */
export async function knownReader(
  log: EventLog,
  { consumer, process: name = consumer }: LogReader,
): Promise<LogStats['readers'][number]> {
  const kind = consumer === undefined ? 'process' : 'consumer'
  const { readers } = await log.stats()
  const ofKind = readers.filter((reader) => reader.kind === kind)
  const found = ofKind.find((reader) => reader.name === name)
  if (found !== undefined) return found
  throw unknownName(kind, name, ofKind)
}

/** The error for a name that the log does not know, with the known names. */
export function unknownName(
  kind: string,
  name: string | undefined,
  all: readonly { readonly name: string }[],
): UsageError {
  const known = all.length === 0 ? 'none' : all.map((each) => JSON.stringify(each.name)).join(', ')
  return new UsageError(`the log has no ${kind} ${JSON.stringify(name)}: it has ${known}`)
}
