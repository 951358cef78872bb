import { isRetryable } from '../protocol/backoff.ts'
import { cutText } from '../protocol/cut-text.ts'
import { errorText } from '../protocol/error-text.ts'
import { RivuletError } from '../protocol/rivulet-error.ts'

/** A log refused what it was asked for. Nothing was changed. */
export class LogError extends RivuletError {
  override readonly name: string = 'LogError'
  override readonly code: string = 'log'
}

/** Another open log holds the name. End that process first, or wait for it. */
export class LogInUseError extends LogError {
  override readonly name = 'LogInUseError'
  override readonly code = 'log_in_use'
  /** The name that was claimed. */
  readonly claimed: string
  /** Process and host, or the name that was given to the log. */
  readonly owner: string

  /** @param advice What to do. */
  constructor(
    log: string,
    claimed: string,
    owner: string,
    advice = 'end that process first, or claim with `wait`',
  ) {
    super(`${JSON.stringify(claimed)} in ${log} is held by ${owner}: ${advice}`)
    this.claimed = claimed
    this.owner = owner
  }
}

/** The name was claimed by another since. This writer must stop. */
export class FencedError extends LogError {
  override readonly name = 'FencedError'
  override readonly code = 'fenced'
  readonly claimed: string

  /** @param advice What to do. */
  constructor(log: string, claimed: string, advice = 'See that only one runs') {
    super(
      `${JSON.stringify(claimed)} in ${log} was claimed by another writer since: nothing more is written by this one. ${advice}`,
    )
    this.claimed = claimed
  }
}

/** A stream or a reader does not stand where the writer expected. */
export class LogConflictError extends LogError {
  override readonly name = 'LogConflictError'
  override readonly code = 'log_conflict'
  /** The stream or reader. */
  readonly subject: string

  constructor(log: string, subject: string) {
    super(
      `${JSON.stringify(subject)} in ${log} does not stand where the writer expected: read its position again`,
    )
    this.subject = subject
  }
}

/**
 * Reason why a position is refused. `unknown`: it is of another log or another epoch, or no position. `beyond`: it is beyond the end.
 * `diverged`: an earlier state of the log was restored, and the log has another entry at this position since. For positions of a
 * process also `rebuilt`: it is of another generation of the state; and `forgotten`: removed keys were forgotten since.
 */
export type PositionProblem = 'unknown' | 'beyond' | 'diverged' | 'rebuilt' | 'forgotten'

/** The problem of a position that has diverged, before the log. */
export const DIVERGED = 'is of a state that was lost by putting back an earlier state of'

/** The position is not one of this log, or the entries after it can no longer be read. */
export class LogPositionError extends LogError {
  override readonly name = 'LogPositionError'
  override readonly code = 'log_position'
  readonly position: string
  readonly reason: PositionProblem
  readonly #subject: readonly [log: string, problem: string]

  /** @param advice What to do, as a sentence after the problem: ". Name the file that it belongs to". */
  constructor(log: string, position: string, reason: PositionProblem, problem: string, advice = '') {
    super(`the position ${JSON.stringify(cutText(position, 100))} ${problem} ${log}${advice}`)
    this.position = position
    this.reason = reason
    this.#subject = [log, problem]
  }

  /**
   * The same error with what to do.
   *
   * @internal
   */
  with(advice: string): LogPositionError {
    const [log, problem] = this.#subject
    return new LogPositionError(log, this.position, this.reason, problem, advice)
  }

  /**
   * The same error for the position that the refused one is a part of.
   *
   * @internal
   */
  of(position: string): LogPositionError {
    const [log, problem] = this.#subject
    return new LogPositionError(log, position, this.reason, problem)
  }
}

/** An effect of `exactlyOnce` cannot be stored with its cursor. The job ends, and the entry is neither retried nor a dead letter. */
export class EffectError extends LogError {
  override readonly name = 'EffectError'
  override readonly code = 'effect'
  /** The database of the effects: its file, or the name that its store has. */
  readonly database: string
  /** The entry; undefined if the error concerns no single entry. */
  readonly entry: { readonly source: string; readonly id: string; readonly position: string } | undefined

  constructor(
    database: string,
    problem: string,
    {
      entry,
      ...options
    }: ErrorOptions & {
      readonly entry?: { readonly source: string; readonly id: string; readonly position: string } | undefined
    } = {},
  ) {
    const effect =
      entry === undefined ? 'an effect' : `the effect of the event ${shown(entry.id)} of ${entry.source}`
    super(`${effect} in ${database} ${problem}`, options)
    this.database = database
    this.entry = entry && { source: entry.source, id: entry.id, position: entry.position }
  }
}

/** A value cannot be stored: it is not JSON, or it is too large. */
export class LogValueError extends LogError {
  override readonly name = 'LogValueError'
  override readonly code = 'log_value'

  /** @param subject What the value is, as in "an entry of "m1" cannot be stored in rivulet.db: it is not JSON". */
  constructor(log: string, subject: string, problem: string, options?: ErrorOptions) {
    super(`${subject} cannot be stored in ${log}: ${problem}`, options)
  }
}

/**
 * The handler of a consumer has failed for good at an entry, and nothing takes its dead letter. The job of `log.consume` ends, and the entry
 * comes again at the next start. `cause` is the error of the last attempt.
 */
export class ConsumerError extends LogError {
  override readonly name = 'ConsumerError'
  override readonly code = 'consumer'
  /** Whether the cause has `retryable: true`. */
  override readonly retryable: boolean
  /** The consumer. */
  readonly consumer: string
  /** The source of the entry. */
  readonly source: string
  /** The id of the entry. */
  readonly id: string
  /** Number of calls of the handler with the entry, those with a batch that had it included. */
  readonly attempts: number

  constructor(
    consumer: string,
    { source, id }: { readonly source: string; readonly id: string },
    { error, attempts }: { readonly error: unknown; readonly attempts: number },
  ) {
    super(
      `the handler of the consumer ${JSON.stringify(consumer)} failed at the event ${shown(id)} of ${source} in ` +
        `${attempts} ${attempts === 1 ? 'attempt' : 'attempts'}: ${cutText(errorText(error), 1_000)}. The consumer has stopped, and the ` +
        "event comes again at its next start: correct the handler, or go on past such events with `deadLetters: 'log'`",
      { cause: error },
    )
    this.retryable = isRetryable(error)
    this.consumer = consumer
    this.source = source
    this.id = id
    this.attempts = attempts
  }
}

/** A consumer cannot go on, because an operator has dropped an entry, or has held it for longer than `stallTimeout`. */
export class StalledConsumerError extends LogError {
  override readonly name = 'StalledConsumerError'
  override readonly code = 'stalled_consumer'
  /** The consumer. */
  readonly consumer: string
  /** The position of the entry. */
  readonly position: string

  constructor(
    consumer: string,
    position: string,
    entry: { readonly id: string; readonly source: string } | undefined,
  ) {
    const what =
      entry === undefined
        ? `the entry at ${position}`
        : `the event ${JSON.stringify(entry.id)} of ${entry.source}`
    super(
      `the consumer ${JSON.stringify(consumer)} cannot go on: ${what} was neither acknowledged nor did it come to \`deliver\` ` +
        'or `for await`. An operator between has dropped it, or holds it for longer than `stallTimeout`: filter with `types` ' +
        'and `where` of the consumer or `ofType`, or within the handler',
    )
    this.consumer = consumer
    this.position = position
  }
}

/**
 * Entries that a consumer has not read were deleted, and its `types` leave `log.gap` out. With that type, it gets an entry
 * that says so and goes on after the gap; or remove it, and it begins anew.
 */
export class LogGapError extends LogError {
  override readonly name = 'LogGapError'
  override readonly code = 'log_gap'
  /** The consumer. */
  readonly consumer: string
  /** Its position. */
  readonly from: string
  /** The position after the deleted entries. */
  readonly to: string

  constructor(consumer: string, { from, to }: { readonly from: string; readonly to: string }) {
    super(
      `entries after the position of the consumer ${JSON.stringify(consumer)} were deleted before it read them (${from} to ` +
        `${to}): add "log.gap" to its types to go on after them, or remove it with log.remove to begin anew`,
    )
    this.consumer = consumer
    this.from = from
    this.to = to
  }
}

/**
 * A log cannot do this: because of where it is stored, because a process is given its entries in the order of the log alone, because a
 * consumer was divided, or because another request of a Worker has opened it.
 */
export class LogUnsupportedError extends LogError {
  override readonly name = 'LogUnsupportedError'
  override readonly code = 'log_unsupported'
}

/** A process cannot run in this version, because its state is of another one. The message says what to do. */
export class ProcessVersionError extends LogError {
  override readonly name = 'ProcessVersionError'
  override readonly code = 'process_version'
  /** The process. */
  readonly process: string
  /** The version of its state. */
  readonly stored: number
  /** The version that was to run. */
  readonly version: number

  constructor(process: string, stored: number, version: number, problem: string) {
    super(
      `the process ${JSON.stringify(process)} cannot run in version ${version}, because its state is of version ${stored}: ${problem}`,
    )
    this.process = process
    this.stored = stored
    this.version = version
  }
}

/** The state of a process is too large for a snapshot. Read it one by one, with `changes(undefined, { live: false })`. */
export class SnapshotTooLargeError extends LogError {
  override readonly name = 'SnapshotTooLargeError'
  override readonly code = 'snapshot_too_large'

  constructor(process: string, limit: number) {
    super(
      `the state of ${JSON.stringify(process)} is too large for a snapshot of up to ${limit} keys and 64 MiB: raise \`limit\`, or ` +
        'read it one by one with `changes(undefined, { live: false })`',
    )
  }
}

/** A log's file cannot be used, or can no longer be used. Nothing in it was overwritten. `cause` is SQLite's error. */
export class LogFileError extends LogError {
  override readonly name = 'LogFileError'
  override readonly code = 'log_file'
  override readonly retryable: boolean
  readonly file: string

  /** @param problem What is wrong with the file and what to do, as in "rivulet.db is a folder: name a file in it". */
  constructor(file: string, problem: string, options: ErrorOptions & { readonly retryable?: boolean } = {}) {
    super(`${file} ${problem}`, options)
    this.file = file
    this.retryable = options.retryable ?? false
  }
}

/**
 * A NATS server or its streams cannot be used, or not now. `cause` is the client's error. Neither has credentials.
 *
 * A write that was rejected with it may have been stored in part, if the server became unreachable after the first part.
 * Written again, nothing is doubled.
 */
export class LogServerError extends LogError {
  override readonly name = 'LogServerError'
  override readonly code = 'log_server'
  override readonly retryable: boolean

  /** @param problem What is wrong, as in "the log "watch" cannot be reached: no server answers". */
  constructor(log: string, problem: string, options: ErrorOptions & { readonly retryable?: boolean } = {}) {
    super(`${log} ${problem}`, options)
    this.retryable = options.retryable ?? false
  }
}

/** The log is closed, so it takes no more calls. */
export class LogClosedError extends LogError {
  override readonly name = 'LogClosedError'
  override readonly code = 'log_closed'

  constructor(log: string) {
    super(`${log} is closed: stop what uses it first, then close it`)
  }
}

function shown(text: string): string {
  return JSON.stringify(cutText(text, 100))
}
