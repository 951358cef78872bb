/** The results of the tests of rules. */
export interface RuleTestReport {
  /** The results, in the order of the files. */
  readonly tests: readonly RuleTestResult[]
  readonly passed: number
  readonly failed: number
  /** How often each rule fired in the tests. */
  readonly coverage: readonly RuleCoverage[]
  /** Real time that the tests took, in ms. */
  readonly ms: number
}

/** The result of one test. */
export interface RuleTestResult {
  readonly file: string
  /** Line of the test's name in the file, from 1. */
  readonly line: number | null
  readonly name: string
  readonly passed: boolean
  readonly failures: readonly RuleTestFailure[]
  /** The events that the rules emitted, in order, one line each. At most 100. */
  readonly happened: readonly string[]
  /** Number of events, those of the same source and id once. */
  readonly events: number
  /** Events that were merged, since a log keeps events of the same source and id once. At most 100. */
  readonly merged: readonly MergedTestEvents[]
  /** Time that passed in the test, in ms. */
  readonly simulated: number
  /** Real time, in ms. */
  readonly ms: number
}

/** Events of a test that are one event. */
interface MergedTestEvents {
  /** Line in the file of the event that was merged first, from 1. */
  readonly line: number | null
  readonly column: number | null
  /** The number of events, and their source and id. */
  readonly message: string
}

/** Something in a test that is not as expected. */
interface RuleTestFailure {
  /** Line of the expectation in the file, from 1. */
  readonly line: number | null
  readonly column: number | null
  /** The difference. */
  readonly message: string
  readonly expected: string
  /** The actual results, the nearest first. Empty if there are none. */
  readonly got: readonly string[]
}

/** How often a rule did what, in all tests. */
export interface RuleCoverage {
  readonly rule: string
  /** The file of the rule. */
  readonly file: string
  readonly fired: number
  readonly resolved: number
}
