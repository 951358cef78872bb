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
  /** Number of events. */
  readonly events: number
  /** Time that passed in the test, in ms. */
  readonly simulated: number
  /** Real time, in ms. */
  readonly ms: number
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
