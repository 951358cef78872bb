import { checkedFiles } from '../check-arguments.ts'
import { compare } from './compare.ts'
import { loadTests } from './load-tests.ts'
import type { LoadedTest, LoadedTests } from './load-tests.ts'
import type { RuleTestReport, RuleTestResult, RuleCoverage } from './report.ts'
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
  const loaded = await loadTests(checkedFiles(files))
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
  const { file, place, name, events, merged, start, until } = test
  return {
    file,
    line: place.line,
    name,
    passed: failures.length === 0,
    failures,
    happened: happened(transitions, start),
    events: events.length,
    merged: merged.map(({ place: { line, column }, message }) => ({ line, column, message })),
    simulated: until - start,
    ms: performance.now() - begun,
  }
}

function happened(transitions: readonly Transition[], start: number): readonly string[] {
  return transitions.slice(0, MAX_HAPPENED).map((transition) => transitionText(transition, start))
}

/** Counts how often the rules of files fire. */
class Coverage {
  readonly #files: LoadedTests['ruleFiles']
  readonly #counts = new Map<string, { fired: number; resolved: number }>()

  constructor(files: LoadedTests['ruleFiles']) {
    this.#files = files
  }

  add({ ruleFiles }: Pick<LoadedTest, 'ruleFiles'>, transitions: readonly Transition[]): void {
    for (const file of ruleFiles) {
      const names = new Set(this.#files.get(file))
      for (const { alert, kind } of transitions) {
        if (!names.has(alert)) continue
        const id = idOf(file, alert)
        const counts = this.#counts.get(id) ?? { fired: 0, resolved: 0 }
        this.#counts.set(id, counts)
        if (kind === 'firing') counts.fired++
        if (kind === 'resolved') counts.resolved++
      }
    }
  }

  /** The coverage of each rule, in the order of the files. */
  get rules(): readonly RuleCoverage[] {
    return Array.from(this.#files).flatMap(([file, rules]) =>
      rules.map((rule) => ({
        rule,
        file,
        fired: this.#counts.get(idOf(file, rule))?.fired ?? 0,
        resolved: this.#counts.get(idOf(file, rule))?.resolved ?? 0,
      })),
    )
  }
}

function idOf(file: string, rule: string): string {
  return JSON.stringify([file, rule])
}
