import type { EventLog } from '../../log/event-log/event-log.ts'
import { LogClosedError, LogError } from '../../log/errors.ts'
import { Job } from '../../log/event-log/job.ts'
import type { LogJob } from '../../log/event-log/job.ts'
import type { StartAt } from '../../log/store/contract.ts'
import { checkAfter } from '../../log/process/process.ts'
import { checkStart } from '../../log/store/checked-store.ts'
import { checkOptions, checkSignal, checkText } from '../../protocol/check.ts'
import { checkLog } from '../../protocol/check-log.ts'
import { checkRuleSet } from '../check-arguments.ts'
import type { RuleSet } from '../rule-set.ts'
import { RuleProcess } from './rule-process.ts'

/** Settings of {@link runRules}. */
export interface RunRulesOptions {
  /** Name of the process in the log. Default `rules`. */
  readonly name?: string
  /**
   * The position at which rules with a new name begin. A backtest shows the alerts that earlier events would have fired. Rules with a known
   * name resume. Default `end`.
   */
  readonly startAt?: StartAt
  /**
   * Names of processes of the same log whose output the rules read, as in `log.process`: event time waits for them, so that nothing is late
   * because they lag. Default: none.
   */
  readonly after?: readonly string[]
  /** Waits while another open log runs rules of this name, until this signal is aborted. Default: an error instead of waiting. */
  readonly wait?: AbortSignal
}

/** Rules that run over a log. */
export interface RunningRules extends LogJob {
  /**
   * Continues with other rules, from the next entry on. New rules begin there. Rules that were removed, and rules with another
   * condition, key or labels, begin anew: their firing alerts are resolved with the reason `rule` at the next entry. Alerts of all other
   * rules do not change.
   *
   * Resolves when the new rules are in use. Rejects with an ArgumentError for rules that cannot run, in which case the earlier ones
   * continue, and if the job has ended.
   */
  reload(rules: RuleSet): Promise<void>
}

/**
 * Runs rules over the entries of a log, as a process of it: state, alerts and position are committed together. So each alert fires once and
 * is resolved once, even if a process is killed. The output consists of events in the log: `alert.firing` and `alert.resolved`, `alert.pending`
 * and `alert.inactive`, `alert.unknown` and `alert.known`, and `alert.late`.
 *
 * A rule that fails at an entry, which is a bug, does not stop the others: the entry becomes a dead letter of the process.
 *
 * Rejects, as `done` does, for the reasons for which `log.process` rejects.
 *
 * @example
 * ```ts
 * import { memoryStore, openLog } from 'rivulet/log'
 * import { defineRules, runRules } from 'rivulet/rules'
 *
 * await using log = await openLog(memoryStore())
 * const running = runRules(log, defineRules([{ alert: 'MonitorFailed', on: ['monitor.error'] }]))
 * log
 *   .consume('alerts', { types: ['alert.firing', 'alert.resolved'], startAt: 'end' })
 *   .subscribe(({ type, data }) => console.log(type, data.alert, data.labels))
 * await running.stop()
 * ```
 *
 * @throws ArgumentError at the call, for an invalid setting and for rules that cannot run.
 */
export function runRules(log: EventLog, rules: RuleSet, options: RunRulesOptions = {}): RunningRules {
  checkLog(log)
  checkOptions('options', options, ['name', 'startAt', 'after', 'wait'])
  const { name = 'rules', startAt = 'end', after = [], wait } = options
  checkText('options.name', name)
  checkStart('options.startAt', startAt)
  checkAfter('options.after', name, after)
  if (wait !== undefined) checkSignal('options.wait', wait)
  // The caller may change the list.
  return new RulesJob(log, rules, { name, startAt, after: [...after], ...(wait && { wait }) })
}

/** The rules to run next, and the callbacks of the call that passed them. */
interface Reload {
  readonly process: RuleProcess
  readonly started: PromiseWithResolvers<void>
}

/** {@link RunRulesOptions} with their defaults. */
type RunSettings = RunRulesOptions & Required<Pick<RunRulesOptions, 'name' | 'startAt' | 'after'>>

class RulesJob implements RunningRules {
  readonly #log: EventLog
  readonly #options: RunSettings
  readonly #stop = new AbortController()
  readonly #job: Job
  #next: Reload[] = []
  #interrupt = () => {}
  #isOver = false

  constructor(log: EventLog, rules: RuleSet, options: RunSettings) {
    this.#log = log
    this.#options = options
    const process = processOf(rules)
    const done = this.#run(process).finally(() => this.#end())
    this.#job = new Job(done, () => {
      this.#stop.abort()
      this.#interrupt()
    })
  }

  get done(): Promise<void> {
    return this.#job.done
  }

  stop(): Promise<void> {
    return this.#job.stop()
  }

  async reload(rules: RuleSet): Promise<void> {
    const process = processOf(rules)
    if (this.#isOver) throw ended()
    const started = Promise.withResolvers<void>()
    this.#next.push({ process, started })
    this.#interrupt()
    await started.promise
  }

  /** Runs the rules, then each set of rules that replaces them. */
  async #run(first: RuleProcess): Promise<void> {
    let process = first
    for (;;) {
      const reloads = this.#next
      this.#next = []
      // If several came meanwhile, the last ones count.
      process = reloads.at(-1)?.process ?? process
      const settle = (how: (each: Reload['started']) => void) => {
        for (const { started } of reloads) how(started)
      }
      try {
        await this.#runOnce(process, () => settle((started) => started.resolve()))
        // It was stopped before these rules were in use.
        settle((started) => started.reject(ended()))
      } catch (error) {
        settle((started) => started.reject(error))
        throw error
      }
      if (this.#stop.signal.aborted || this.#next.length === 0) return
    }
  }

  /** Runs rules until the job ends or is interrupted for other rules. */
  async #runOnce(process: RuleProcess, onStart: () => void): Promise<void> {
    const interrupted = new AbortController()
    this.#interrupt = () => interrupted.abort()
    if (this.#stop.signal.aborted || this.#next.length > 0) interrupted.abort()
    const { signal } = interrupted
    const { name, startAt, after, wait } = this.#options
    try {
      await process.prepare(this.#log, name, signal)
      if (this.#stop.signal.aborted) return
      const job = this.#log.process(name, {
        ...process.options(this.#log, name, signal),
        startAt,
        after,
        ...(wait && { wait }),
      })
      onStart()
      const stop = () => void job.stop().catch(() => {})
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
      await job.done
    } catch (error) {
      // The log was closed between two processes.
      if (!(error instanceof LogClosedError)) throw error
    } finally {
      // Ends the current read.
      interrupted.abort()
    }
  }

  #end(): void {
    this.#isOver = true
    for (const { started } of this.#next) started.reject(ended())
    this.#next = []
  }
}

function processOf(rules: RuleSet): RuleProcess {
  checkRuleSet(rules)
  return new RuleProcess(rules)
}

function ended(): Error {
  return new LogError('the rules have ended: there is nothing to reload')
}
