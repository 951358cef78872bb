import type { EventLog } from '../../log/event-log/event-log.ts'
import type { ProcessOptions } from '../../log/process/process.ts'
import type { ProcessContext } from '../../streams/process-functions.ts'
import type { Entry } from '../../log/store/entry.ts'
import { viewOf } from '../cel/index.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { hashOf, keyPrefix } from '../evaluate/key.ts'
import { ruleProgram, staleKeys } from '../evaluate/program.ts'
import type { RuleProgram } from '../evaluate/program.ts'
import type { RuleState } from '../evaluate/state.ts'
import { compiledRules } from '../rule-set.ts'
import type { RuleSet } from '../rule-set.ts'
import { REGISTRY } from './registry.ts'

/** Version of the states. States of another version are refused with a ProcessVersionError. Raise it when {@link RuleState} changes. */
const STATE_VERSION = 3

/** Number of states of removed rules that end at one entry, so that an entry does not take long. */
const STALE_PER_ENTRY = 1_000

/** The state of {@link REGISTRY}. */
interface Registry {
  /** Hashes of the names and versions of rules. */
  readonly rules?: readonly string[]
}

/** A state of the process of rules. */
export type ProcessedState = RuleState & Registry

/**
 * Rules as the functions of a process. If a rule that had states was removed, it finds these states in the log and ends them, some at each
 * entry. Its memory of them is rebuilt after a crash.
 */
export class RuleProcess {
  readonly #rules: readonly CompiledRule[]
  readonly #program: RuleProgram
  readonly #types: ReadonlySet<string> | undefined
  /** The content of {@link Registry} if no other rules have states. */
  readonly #current: readonly string[]
  /** Keys of states whose rules were removed, without those that have ended. */
  readonly #stale = new Set<string>()
  /** The search for such keys since the process runs. An earlier search may have missed states that another process wrote meanwhile. */
  #search: 'none' | 'running' | 'done' = 'none'
  /** Whether the registry has the current rules alone. */
  #isRegistered = false

  /** Throws an ArgumentError for a rule that asks for more than there is room for. */
  constructor(rules: RuleSet) {
    this.#rules = compiledRules(rules)
    this.#program = ruleProgram(this.#rules, viewOf)
    this.#types = this.#program.types && new Set(this.#program.types)
    this.#current = this.#rules.map((rule) => hashOf(keyPrefix(rule)).slice(0, 16)).toSorted()
  }

  /**
   * Reads the states of the rules before the process runs, and finds states of removed rules, so that they end at its first entry. If the
   * process then waits for another process, it does not learn of the deleted entries that the other one finds meanwhile.
   */
  async prepare(log: EventLog, name: string, signal: AbortSignal): Promise<void> {
    const states = log.state<ProcessedState>(name)
    for (const { name: rule, windows } of this.#rules) {
      if (windows.some(({ kind }) => kind === 'absence')) this.#program.resume((await states.get(rule)) ?? {})
    }
    const registry = await states.get(REGISTRY)
    if (this.#goneOf(registry).length > 0) await this.#find(log, name, signal)
  }

  /** The options of the process. Use them once. */
  options(
    log: EventLog,
    name: string,
    signal: AbortSignal,
  ): Pick<
    ProcessOptions<ProcessedState>,
    'version' | 'key' | 'init' | 'event' | 'timer' | 'onError' | 'maxStateBytes'
  > {
    return {
      version: STATE_VERSION,
      key: (entry) => this.#keys(entry),
      init: () => ({}),
      event: (state, entry, context) => {
        if (context.key === REGISTRY) {
          this.#register(state, context, () => this.#findAgain(log, name, signal))
          return
        }
        this.#stale.delete(context.key)
        this.#program.event(state, entry, context)
      },
      timer: (state, due, context, timer, data) => this.#program.timer(state, due, context, timer, data),
      // A rule that fails at an entry must not stop the others.
      onError: 'dead-letter',
      maxStateBytes: 256 * 1024,
    }
  }

  #keys(entry: Entry): readonly string[] | undefined {
    const isRead = this.#types === undefined || this.#types.has(entry.type)
    const keys = isRead ? this.#program.keys(entry) : undefined
    if (this.#isRegistered) return keys
    const all = [REGISTRY, ...(keys ?? [])]
    // Alerts that end because of a process's output may be its 17th output in a row, which is refused.
    if (entry.cause !== undefined) return all
    for (const key of this.#stale) {
      if (all.push(key) > STALE_PER_ENTRY) break
    }
    return all
  }

  /** Keeps the names of all rules that may have states. */
  #register(state: Registry, context: ProcessContext<ProcessedState>, findAgain: () => void): void {
    const gone = this.#goneOf(state)
    if (gone.length > 0 && this.#search === 'none') findAgain()
    this.#isRegistered = gone.length === 0 || (this.#search === 'done' && this.#stale.size === 0)
    const rules = this.#isRegistered ? this.#current : [...this.#current, ...gone].toSorted()
    context.set({ rules })
  }

  #goneOf(registry: Registry | undefined): readonly string[] {
    const current = new Set(this.#current)
    return registry?.rules?.filter((rule) => !current.has(rule)) ?? []
  }

  #findAgain(log: EventLog, name: string, signal: AbortSignal): void {
    this.#search = 'running'
    this.#find(log, name, signal).then(
      () => (this.#search = 'done'),
      // The next entry begins it again.
      () => (this.#search = 'none'),
    )
  }

  /** Finds the keys of states whose rules were removed. */
  #find(log: EventLog, name: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      let keys: string[] = []
      const take = () => {
        for (const key of staleKeys(keys, this.#rules)) this.#stale.add(key)
        keys = []
      }
      const subscription = log
        .state<ProcessedState>(name)
        .changes(undefined, { live: false })
        .subscribe({
          next: ({ key, state }) => {
            if (state === null || key === REGISTRY) return
            if (keys.push(key) === STALE_PER_ENTRY) take()
          },
          error: reject,
          complete: () => {
            take()
            resolve()
          },
        })
      const stop = () => {
        subscription.unsubscribe()
        resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
      subscription.add(() => signal.removeEventListener('abort', stop))
      if (signal.aborted) stop()
    })
  }
}
