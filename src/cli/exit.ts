import { CommanderError } from 'commander'
import { ArgumentError, AuthenticationError, ConnectionError, NotFoundError, RivuletError } from 'rivulet'
import { LogFileError, LogInUseError, LogPositionError, LogServerError } from 'rivulet/log'
import type { RuleError } from 'rivulet/rules'
import { EXIT } from './exit-codes.ts'

/** The command line or the environment is not valid. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Another process records the same sources into the log. */
export class RecordedElsewhere extends Error {
  override readonly name = 'RecordedElsewhere'
  readonly code: LogInUseError['code']

  constructor({ claimed, owner, code }: LogInUseError) {
    super(
      `${JSON.stringify(claimed)} is held by ${owner}: end that process first, wait for it with --wait, or give this one another --name`,
    )
    this.code = code
  }
}

/** The log to copy is in use. */
export class CopiedLogInUse extends Error {
  override readonly name = 'CopiedLogInUse'
  readonly code: LogInUseError['code']

  constructor({ claimed, owner, code }: LogInUseError) {
    super(
      `${JSON.stringify(claimed)} is held by ${owner}: end all that uses the log, and copy it then. On a server, a process that was ` +
        'killed holds it until its lease has run out, 10 s by default',
    )
    this.code = code
  }
}

/** A signal interrupted the command. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly signal: 'SIGINT' | 'SIGTERM'

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(`ended by ${signal}`)
    this.signal = signal
  }
}

/** The reader of the output closed it, as `head` does. This is not a failure. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/** A command that checks something has printed its problems. */
export class ProblemsReported extends Error {
  override readonly name = 'ProblemsReported'
}

/** The error for a failed write to an output stream. */
export function outputFailure(error: Error): Error {
  return 'code' in error && error.code === 'EPIPE' ? new OutputClosed() : error
}

const IN_USE = [LogInUseError, RecordedElsewhere, CopiedLogInUse]

/** The exit code for an error that ended a command. */
export function exitCodeOf(thrown: unknown): number {
  const error = firstOf(thrown)
  if (error instanceof OutputClosed) return EXIT.done.code
  if (error instanceof Interrupted) return exitCodeOfSignal(error.signal)
  // Commander throws for --help and --version too, with exit code 0.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done.code : EXIT.usage.code
  if (error instanceof UsageError || error instanceof ArgumentError) return EXIT.usage.code
  if (error instanceof LogPositionError || RivuletError.is<RuleError>(error, 'rule')) return EXIT.usage.code
  if (error instanceof AuthenticationError) return EXIT.authentication.code
  if (error instanceof NotFoundError) return EXIT.notFound.code
  if (error instanceof ConnectionError) return EXIT.unreachable.code
  if (IN_USE.some((known) => error instanceof known)) return EXIT.logInUse.code
  if (error instanceof LogServerError) return error.retryable ? EXIT.unreachable.code : EXIT.log.code
  if (error instanceof LogFileError) return EXIT.log.code
  return EXIT.failed.code
}

/** The exit code of a command that this signal ended: 128 plus the signal's number. */
export function exitCodeOfSignal(signal: 'SIGINT' | 'SIGTERM'): number {
  return signal === 'SIGINT' ? EXIT.interrupted.code : EXIT.terminated.code
}

/**
 * The message to print on stderr; undefined if there is no failure, or commander has printed it. It ends with the code of the error, as in
 * "… [log_file]", by which docs/troubleshooting.md has a remedy.
 */
export function errorMessageOf(thrown: unknown): string | undefined {
  const error = firstOf(thrown)
  if (error instanceof OutputClosed || error instanceof Interrupted) return
  if (error instanceof CommanderError || error instanceof ProblemsReported) return
  if (!(error instanceof Error)) return String(error)
  return withCode(error)
}

/** The message of an error, with its code if it has one of this package. An error of a log is a plain object. */
export function withCode(error: Error): string {
  const code: unknown = 'code' in error ? error.code : undefined
  // Codes of Node and of other packages are in capitals, or numbers.
  return typeof code === 'string' && /^[a-z_]+$/.test(code) ? `${error.message} [${code}]` : error.message
}

/** The original error. `await using` wraps it in a SuppressedError if cleaning up fails too. */
function firstOf(error: unknown): unknown {
  // By its name, since Node 22 does not have the class.
  if (!(error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error)) return error
  return firstOf(error.suppressed)
}
