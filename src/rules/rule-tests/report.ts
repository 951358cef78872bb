/** What became of the tests of rules. */
export interface RuleTestReport {
  /** In the order of the files. */
  readonly tests: readonly RuleTestResult[]
  readonly passed: number
  readonly failed: number
  /** How often each rule fired in the tests. */
  readonly coverage: readonly RuleCoverage[]
  /** Real time that the tests took, in ms. */
  readonly ms: number
}

/** What became of one test. */
export interface RuleTestResult {
  readonly file: string
  /** Of its name in the file, from 1. */
  readonly line: number | null
  readonly name: string
  readonly passed: boolean
  readonly failures: readonly RuleTestFailure[]
  /** What the rules emitted, in order, a line each. At most 100. */
  readonly happened: readonly string[]
  /** Number of events. */
  readonly events: number
  /** Time that passed in the test, in ms. */
  readonly simulated: number
  /** Real time, in ms. */
  readonly ms: number
}

/** Something in a test that is not as expected. */
export interface RuleTestFailure {
  /** Of the expectation, from 1. */
  readonly line: number | null
  readonly column: number | null
  /** What is different. */
  readonly message: string
  readonly expected: string
  /** What there was instead, the nearest first. Empty for nothing. */
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
