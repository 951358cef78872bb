import type { LoadedTest, LoadedTests } from './load-tests.ts'
import type { RuleCoverage } from './report.ts'
import type { Transition } from './transition.ts'

/** Counts how often the rules of files fire. */
export class Coverage {
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
