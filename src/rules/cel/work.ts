/**
 * How much work the rules of one event may do together. A unit is about a nanosecond in the worst case. Work is counted from the sizes of
 * inputs and outputs, and never measured, so that a replay refuses the same expressions on every machine.
 */
export const EVENT_WORK = 24_000_000

/** How much work one `${…}` of an alert may do: it reads a few short texts. */
export const ALERT_WORK = 1_000_000

/** The work for a node of the syntax tree, once for each time that it is evaluated. */
export const STEP = 200

/** The work for a value within a list or a map that is visited. */
export const VALUE = 20

/** The work for a character of a result, which is written as JSON and hashed. */
export const HASHED = 5

/** The work that an evaluation may still do. */
export class Allowance {
  left: number

  constructor(units: number) {
    this.left = units
  }
}

/** Thrown out of an evaluation, since `||` would otherwise treat it as an error of one side. */
class WorkExceededError extends Error {
  constructor() {
    super('the expression needs more work than the rules of one event may do')
  }
}

let current = new Allowance(Infinity)

/** Runs an evaluation that uses up the allowance. */
export function spending<T>(allowance: Allowance, evaluate: () => T): T {
  const before = current
  current = allowance
  try {
    return evaluate()
  } finally {
    current = before
  }
}

/** Counts work before it is done. */
export function spend(units: number): void {
  current.left -= units
  if (current.left < 0) throw new WorkExceededError()
}

/** An unlimited allowance, for a computation that is done once for an event and has its own bound. */
export function uncounted<T>(compute: () => T): T {
  return spending(new Allowance(Infinity), compute)
}
