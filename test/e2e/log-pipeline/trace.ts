/** What happened in a simulation, and the rules that were violated. */
export class Trace {
  /** Empty for a success. */
  readonly violations: string[] = []
  /** Line by line, with virtual times. */
  readonly lines: string[] = []
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  log(line: string): void {
    this.lines.push(`${this.#now()}: ${line}`)
  }

  report(violation: string): void {
    this.log(`VIOLATION ${violation}`)
    this.violations.push(violation)
  }
}
