/** A problem of a notifier that continues. */
export interface NotifyProblem {
  /** The name of the notifier. */
  readonly notifier: string
  /** A {@link SinkError} of the receiver, or an error that describes the problem with an event. */
  readonly error: Error
  /** The number of failed attempts in a row, from 1; 0 for an attempt that is not repeated. */
  readonly attempt: number
}

/** Takes the problems of a notifier. An error that it throws or rejects with is ignored. */
export type OnProblem = (problem: NotifyProblem) => void

/** Reports a problem. An error of the function does not stop a notifier. */
export function report(onProblem: OnProblem, problem: NotifyProblem): void {
  try {
    const result: unknown = onProblem(problem)
    void Promise.resolve(result).catch(() => undefined)
  } catch {
    // It was to be reported here.
  }
}

/** Writes a warning of the process, for the attempts 1, 2, 4, 8 and so on, so that a receiver that is down does not fill a log. */
export function warn({ notifier, error, attempt }: NotifyProblem): void {
  if (attempt > 1 && !Number.isInteger(Math.log2(attempt))) return
  const suffix = attempt > 1 ? ` (${attempt} attempts)` : ''
  process.emitWarning(`${notifier}: ${error.message}${suffix}`, 'NotifyWarning')
}
