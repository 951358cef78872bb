import { JetStreamApiError } from '@nats-io/jetstream'
import type { JetStreamManager, StreamConfig } from '@nats-io/jetstream'
import { isObject, parseJson } from '../../../protocol/json.ts'
import { LogServerError } from '../../errors.ts'
import { retryTransient } from './retry-transient.ts'
import type { Connected } from './retry-transient.ts'
import { isTransient } from './server-error.ts'

/** The version of what a log stores. */
export const FORMAT = 4

/** Error code of the server: it has no stream of this name. */
const STREAM_NOT_FOUND = 10_059

/** Error codes of the server: it has a stream of this name with another configuration, or one with its subjects. */
const IN_USE = new Set([10_058, 10_065])

/** The configuration of a new stream of a log. */
export interface NewStream {
  readonly name: string
  readonly subjects: readonly string[]
  /** Purpose of the stream, as the tools of NATS show it. */
  readonly description: string
  readonly replicas: number
}

/** The server of a log's streams. */
export interface StreamHost extends Connected {
  readonly jsm: JetStreamManager
}

/** Throws a LogServerError for a log that another version has stored, by its record of itself. */
export function checkFormat(log: string, about: unknown): void {
  const format = isObject(about) ? about['format'] : undefined
  if (format === FORMAT) return
  if (typeof format !== 'number') {
    throw new LogServerError(log, 'has a record of itself that cannot be read')
  }
  const problem =
    format > FORMAT
      ? `is of a newer version (format ${format}): update rivulet`
      : `is of an older version (format ${format}), which this one cannot read: open it with that one, or use another name`
  throw new LogServerError(log, problem)
}

/** Whether a log was created. Rejects with a LogServerError for one of another format, before anything is touched. */
export async function isThere(
  host: StreamHost,
  { events, state, about }: Readonly<Record<'events' | 'state' | 'about', string>>,
): Promise<boolean> {
  const streams = await Promise.all([configOf(host, events), configOf(host, state)])
  if (streams[1] === undefined) return false
  const query = { last_by_subj: about }
  const found = await retryTransient(host, () => host.jsm.streams.getMessage(state, query))
  if (found !== null) checkFormat(host.log, parseJson(found.string()))
  return found !== null && streams[0] !== undefined
}

/** The configuration of a stream; undefined if there is none. */
export async function configOf(host: StreamHost, stream: string): Promise<StreamConfig | undefined> {
  return retryTransient(host, async () => {
    try {
      return (await host.jsm.streams.info(stream)).config
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return undefined
      throw error
    }
  })
}

/**
 * Creates a stream of a log if it is missing. One that is there stays as it is: others may have set what this library does not
 * know.
 *
 * @returns The number of its copies. Rejects with a LogServerError for a stream that would lose entries, or is another program's.
 */
export async function ensureStream(
  host: StreamHost,
  { name, subjects, description, replicas }: NewStream,
): Promise<number> {
  const { jsm, log } = host
  const config = await configOf(host, name)
  if (config !== undefined) {
    const problem = problemOf(config, subjects)
    if (problem === undefined) return config.num_replicas
    throw new LogServerError(log, `would lose entries: its stream ${name} ${problem}`)
  }
  await createOnce(host, name, () =>
    jsm.streams.add({
      name,
      subjects: [...subjects],
      description,
      storage: 'file',
      num_replicas: replicas,
      allow_rollup_hdrs: true,
      // Reads that decide go to the leader.
      allow_direct: false,
      deny_delete: false,
      deny_purge: false,
      discard: 'new',
    }),
  )
  return replicas
}

/**
 * Creates a stream that another process may create at the same moment. The server refuses one of them then, as one with another
 * configuration or with the subjects of another stream, before it shows the one that there is; a cluster may not answer it at all.
 */
export async function createOnce(
  host: StreamHost,
  stream: string,
  create: () => Promise<unknown>,
): Promise<void> {
  const isInUse = (error: unknown) => error instanceof JetStreamApiError && IN_USE.has(error.code)
  const attempt = async () => {
    try {
      await create()
    } catch (error) {
      if (!(error instanceof JetStreamApiError) && !isTransient(error)) throw error
      if ((await configOf(host, stream)) === undefined) throw error
    }
  }
  await retryTransient(host, attempt, { isTransient: (error) => isInUse(error) || isTransient(error) })
}

function problemOf(config: StreamConfig, subjects: readonly string[]): string | undefined {
  const missing = subjects.find((subject) => !config.subjects?.includes(subject))
  if (missing !== undefined) return `does not have the subject ${missing}: it may be another program's`
  if (config.no_ack) return 'does not acknowledge what it stores: create it without no_ack'
  const isLimited = [config.max_msgs, config.max_bytes].some((limit) => limit > 0)
  if (config.storage !== 'file') return 'is kept in memory: create it with storage "file"'
  if (config.retention !== 'limits') return `has the retention "${config.retention}": set it to "limits"`
  if (config.max_age > 0)
    return 'deletes messages by their age: set max_age to 0, and use `retention` of the log'
  if (config.max_msgs_per_subject > 0) return 'has a maximum of messages for each subject: remove it'
  if (isLimited && config.discard !== 'new') {
    return 'deletes old messages where it is full: set discard to "new", and use `retention` of the log'
  }
  if (!config.allow_rollup_hdrs || config.deny_purge || config.deny_delete) {
    return 'cannot be made shorter: set allow_rollup_hdrs, and neither deny_purge nor deny_delete'
  }
  return undefined
}
