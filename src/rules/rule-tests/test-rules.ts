import { compare } from './compare.ts'
import { Coverage } from './coverage.ts'
import { loadTests } from './load-tests.ts'
import type { LoadedTest } from './load-tests.ts'
import type { RuleTestReport, RuleTestResult } from './report.ts'
import { runTest } from './run-test.ts'
import { transitionText } from './transition.ts'
import type { Transition } from './transition.ts'

/** The most lines of what happened in a test. */
const MAX_HAPPENED = 100

/**
 * Runs tests of rules, in virtual time: a month of a test takes milliseconds.
 *
 * @param files Paths of test files, or patterns such as `rules/*.test.yaml`. Paths of rule files in them are relative to theirs.
 * @throws {RuleError} With all problems of the test files and of their rule files.
 *
 * @example
 * ```ts
 * import { testRules } from 'rivulet/rules'
 *
 * const { passed, failed, tests } = await testRules('rules/*.test.yaml')
 * for (const test of tests) if (!test.passed) console.error(`${test.file}:${test.line} ${test.name}`)
 * console.log(`${passed} passed, ${failed} failed`)
 * ```
 */
export async function testRules(files: string | readonly string[]): Promise<RuleTestReport> {
  const begun = performance.now()
  const loaded = await loadTests(typeof files === 'string' ? [files] : files)
  const coverage = new Coverage(loaded.ruleFiles)
  const tests = loaded.tests.map((test) => resultOf(test, coverage))
  const passed = tests.filter((test) => test.passed).length
  return {
    tests,
    passed,
    failed: tests.length - passed,
    coverage: coverage.rules,
    ms: performance.now() - begun,
  }
}

function resultOf(test: LoadedTest, coverage: Coverage): RuleTestResult {
  const begun = performance.now()
  const run = runTest(test)
  const { transitions } = run
  coverage.add(test, transitions)
  const failures = compare(test, run).map(({ place: { line, column }, message, expected, got }) => {
    return { line, column, message, expected, got }
  })
  const { file, place, name, events, start, until } = test
  return {
    file,
    line: place.line,
    name,
    passed: failures.length === 0,
    failures,
    happened: happened(transitions, start),
    events: events.length,
    simulated: until - start,
    ms: performance.now() - begun,
  }
}

function happened(transitions: readonly Transition[], start: number): readonly string[] {
  return transitions.slice(0, MAX_HAPPENED).map((transition) => transitionText(transition, start))
}
