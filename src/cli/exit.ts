import { CommanderError } from 'commander'
import {
  ArgumentError,
  AuthenticationError,
  ConnectionError,
  NotFoundError,
  StateFileError,
  StateInUseError,
} from 'rivulet'

/** What the command's exit codes mean. */
const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  authentication: 3,
  notFound: 4,
  unreachable: 5,
  stateInUse: 6,
  stateFile: 7,
  interrupted: 130,
  terminated: 143,
} as const

/** The exit codes as the help explains them. */
export const EXIT_CODES_HELP = `
Exit codes:
  0    done; for serve also: stopped by Ctrl-C or SIGTERM
  1    failed; for run: the run did not complete
  2    the command line or the environment is wrong
  3    the service refused the API key
  4    there is no such monitor or task group
  5    the service cannot be reached
  6    another process uses the state file
  7    the state file cannot be used: damaged, of a newer version, not writable
  130  interrupted by Ctrl-C before it was done (143: by SIGTERM)`

/** A command line or an environment that the command cannot work with. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A signal asked the command to end. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly signal: 'SIGINT' | 'SIGTERM'

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super(`ended by ${signal}`)
    this.signal = signal
  }
}

/** Whoever read the output went away, as `head` does: nothing more is wanted, and nothing went wrong. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed'
}

/** What a stream that is written to failed with. */
export function outputFailure(error: Error): Error {
  return 'code' in error && error.code === 'EPIPE' ? new OutputClosed() : error
}

/** The exit code for what ended a command. */
export function exitCodeOf(thrown: unknown): number {
  const error = firstOf(thrown)
  if (error instanceof OutputClosed) return EXIT.done
  if (error instanceof Interrupted) return exitCodeOfSignal(error.signal)
  // Asked-for help and the version are no errors, though commander throws them.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage
  if (error instanceof UsageError || error instanceof ArgumentError) return EXIT.usage
  if (error instanceof AuthenticationError) return EXIT.authentication
  if (error instanceof NotFoundError) return EXIT.notFound
  if (error instanceof ConnectionError) return EXIT.unreachable
  if (error instanceof StateInUseError) return EXIT.stateInUse
  if (error instanceof StateFileError) return EXIT.stateFile
  return EXIT.failed
}

/** The exit code of a command that this signal ended: 128 and the signal's number. */
export function exitCodeOfSignal(signal: 'SIGINT' | 'SIGTERM'): number {
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated
}

/** What to tell of an error on stderr; undefined where nothing is wrong, or where it has been told. */
export function complaint(thrown: unknown): string | undefined {
  const error = firstOf(thrown)
  if (error instanceof OutputClosed || error instanceof Interrupted || error instanceof CommanderError) return
  return error instanceof Error ? error.message : String(error)
}

/** What went wrong first: what failed while that was cleaned up after, `await using` puts in front of it. */
function firstOf(error: unknown): unknown {
  // By its name: Node 22 has no such class, and compiled code makes do without.
  if (!(error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error)) return error
  return firstOf(error.suppressed)
}
