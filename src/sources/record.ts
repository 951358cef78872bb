import { defer, finalize, from, mergeMap } from 'rxjs'
import { ArgumentError } from '../protocol/argument-error.ts'
import { checkOptions, checkSignal } from '../protocol/check.ts'
import type { ResearchEvent } from '../protocol/event.ts'
import { subscribeUnderGate } from '../protocol/gate.ts'
import { LogError } from '../log/errors.ts'
import type { EventLog } from '../log/event-log.ts'
import { Job } from '../log/job.ts'
import type { LogJob } from '../log/job.ts'
import type { RecordedStream } from '../log/recorder.ts'
import type { Context } from './context.ts'
import type { Tracking } from './shapes/tracking.ts'
import { isEmpty, watchedStreams } from './watched-streams.ts'
import type { OpenMember, Watched, WatchedGroup, WatchedMonitor } from './watched-streams.ts'

/** Options of `client.record`. At least one of `monitors` and `taskGroups` is required. */
export interface RecordOptions {
  readonly monitors?: Watched<WatchedMonitor>
  /** Runs come with their output unless `include_output` is false. */
  readonly taskGroups?: Watched<WatchedGroup>
  /** The log to record into. */
  readonly log: EventLog
  /** Waits for streams that another open log records, until this signal is aborted. Default: a `LogInUseError`. */
  readonly wait?: AbortSignal
}

const OPTIONS = Object.keys({
  monitors: true,
  taskGroups: true,
  log: true,
  wait: true,
} satisfies Record<keyof RecordOptions, true>)

/**
 * Records monitors and groups into a log: each event once, in one transaction with the position of its stream. Each stream
 * resumes where the log has it.
 *
 * `done` resolves when the lists have completed, every group is done and every monitor is cancelled, and when the log is
 * closed. It rejects with a `LogInUseError` where another open log records one of the streams, with the reason of `wait` when
 * that is aborted first, with what the log refuses an append for, and with the errors of `client.watch`.
 */
export function record(context: Context, options: RecordOptions): LogJob {
  checkOptions('options', options ?? null, OPTIONS)
  const { monitors = [], taskGroups = [], log, wait } = options
  if (wait !== undefined) checkSignal('wait', wait)
  if (isEmpty(monitors) && isEmpty(taskGroups)) {
    throw new ArgumentError('options', { message: 'record needs monitors or taskGroups' }, options)
  }
  const ending = Promise.withResolvers<void>()
  let failure: { readonly error: unknown } | undefined
  const recorder = log.recorder(
    (error) => {
      failure = { error }
      ending.reject(error)
    },
    (pausedBy) => context.report({ kind: 'retention', pausedBy }),
  )
  const open: OpenMember = (names, project) => {
    // Checks the options of the member at the call.
    project(() => undefined)
    return defer(() => {
      const leaving = new AbortController()
      const opening = names.map((name) => recorder.open(name, { wait, signal: leaving.signal }))
      return from(Promise.all(opening)).pipe(
        mergeMap((streams) => {
          const byName = new Map(names.map((name, n) => [name, streams[n]]))
          return project((name, ignores) => tracked(name, byName.get(name), ignores))
        }),
        // Also closes what is open or being opened when the others of these names could not be opened.
        finalize(() => leaving.abort()),
      )
    })
  }
  const streams = watchedStreams(context, { monitors, taskGroups }, open)
  const subscription = subscribeUnderGate(recorder.gate, undefined, streams, {
    next: () => {},
    error: ending.reject,
    complete: ending.resolve,
  })
  recorder.ending.addEventListener('abort', () => ending.resolve(), { once: true })
  const finish = async () => {
    try {
      await ending.promise
    } finally {
      subscription.unsubscribe()
      await recorder.close()
    }
    // The last append may fail after `stop`.
    if (failure !== undefined) throw failure.error
  }
  return new Job(finish(), () => ending.resolve())
}

/** What keeps the position of a recorded stream. */
function tracked(
  name: string,
  stream: RecordedStream | undefined,
  ignores: (event: ResearchEvent) => boolean = () => false,
): Tracking | undefined {
  if (stream === undefined) return undefined
  return {
    position: stream.position,
    entered(event, position) {
      if (!ignores(event)) stream.add(event, position)
    },
    unreadable: () =>
      new LogError(`the position of the stream ${name} in the log cannot be read; it was left as it is`),
  }
}
