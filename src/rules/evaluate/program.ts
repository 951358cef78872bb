import type { ResearchEventType } from '../../protocol/event.ts'
import { arrivedAt } from '../../streams/clocks.ts'
import type { EventView } from '../cel/expression.ts'
import { EVENT_WORK } from '../cel/work.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { AbsenceWatch, EVIDENCE, isWatched } from './absence.ts'
import type { Evidence } from './absence.ts'
import { LATE_TIMER, TIMER } from './context.ts'
import type { RuleContext } from './context.ts'
import type { RuleInput } from './event-time.ts'
import { heldEvent } from './held-event.ts'
import { matchEvent, displayKey } from './match-event.ts'
import type { KeyedMatch, ProblemCounts } from './match-event.ts'
import { keyPrefix, ruleOfKey, stateKey } from './key.ts'
import { KeyAlert } from './key-alert.ts'
import { prepareRule, readsType } from './prepared-rule.ts'
import type { PreparedRule } from './prepared-rule.ts'
import type { Counts, RuleState } from './state.ts'
import { Timeline } from './timeline.ts'

/** Rules as the functions of a process over a log. They depend only on their arguments and on {@link RuleProgram.resume}. */
export interface RuleProgram {
  /** The types of the entries that they read; undefined for all. */
  readonly types: readonly ResearchEventType[] | undefined
  /** Continues from the state of a rule, whose key is the name of the rule. */
  resume(state: RuleState): void
  /**
   * The keys of the states that an entry may change. Conditions are evaluated here, once. Call it before the timers that a `log.gap` makes
   * due fire.
   */
  keys(entry: RuleInput): readonly string[] | undefined
  init(key: string): RuleState
  /** For a key of a rule that was removed, see {@link staleKeys}, ends its alert and removes its state. */
  event(state: RuleState, entry: RuleInput, context: RuleContext): void
  timer(state: RuleState, due: number, context: RuleContext, name: string, data: unknown): void
}

/** Makes what expressions evaluate, of an event. */
export type ViewOf = (event: RuleInput) => EventView

/** The work that an entry means for one key: a matched event, a gap of its source or evidence for a rule, or counts. */
interface Work {
  readonly prepared: PreparedRule
  readonly keyed?: KeyedMatch
  readonly isGap?: true
  readonly counts?: Counts
  /** Why the rule could not be evaluated, which is a bug. */
  readonly failure?: { readonly error: unknown }
}

const evidenceTypes: ReadonlySet<string> = new Set(EVIDENCE)

/**
 * Rules as the functions of a process. Throws an ArgumentError for a rule that exceeds a limit.
 *
 * @param viewOf Makes the view of an event that expressions evaluate. Called once for each event that a rule reads.
 */
export function ruleProgram(rules: readonly CompiledRule[], viewOf: ViewOf): RuleProgram {
  return new Program(rules, viewOf)
}

/**
 * The keys of states that no longer have a rule: of rules that were removed, disabled or edited so that their state begins anew.
 * Give them to `event` of the program, with any entry.
 */
export function staleKeys(stateKeys: Iterable<string>, rules: readonly CompiledRule[]): readonly string[] {
  const names = new Set(rules.map(({ name }) => name))
  const prefixes = new Set(rules.map(keyPrefix))
  return Array.from(stateKeys).filter((key) => {
    const { name, prefix } = ruleOfKey(key)
    return prefix === undefined ? !names.has(name) : !prefixes.has(prefix)
  })
}

class Program implements RuleProgram {
  readonly types: readonly ResearchEventType[] | undefined
  readonly #viewOf: ViewOf
  readonly #rules: readonly PreparedRule[]
  readonly #byPrefix: ReadonlyMap<string, PreparedRule>
  readonly #byType = new Map<string, readonly PreparedRule[]>()
  readonly #work = new WeakMap<RuleInput, ReadonlyMap<string, Work>>()
  #gap = -Infinity

  constructor(rules: readonly CompiledRule[], viewOf: ViewOf) {
    this.#viewOf = viewOf
    this.#rules = rules.map(prepareRule)
    this.#byPrefix = new Map(this.#rules.map((prepared) => [prepared.prefix, prepared]))
    this.types = typesOf(this.#rules)
  }

  resume({ lastGap = -Infinity }: RuleState): void {
    this.#gap = Math.max(this.#gap, lastGap)
  }

  keys(entry: RuleInput): readonly string[] | undefined {
    if (entry.type === 'log.gap') this.#gap = Math.max(this.#gap, arrivedAt(entry))
    const work = this.#workOf(entry)
    if (work === undefined) return undefined
    this.#work.set(entry, work)
    return [...work.keys()]
  }

  init(): RuleState {
    return {}
  }

  event(state: RuleState, entry: RuleInput, context: RuleContext): void {
    const work = (this.#work.get(entry) ?? this.#workOf(entry))?.get(context.key)
    if (work === undefined) return this.#gone(state, context)
    const { prepared, keyed, isGap, failure } = work
    if (failure !== undefined) throw failure.error
    if (context.key === prepared.rule.name) return this.#ofRule(state, entry, work, context)
    if (keyed !== undefined) state.key ??= displayKey(keyed.key)
    if (prepared.absence === undefined) {
      if (isGap) {
        state.key ??= displayKey(prepared.rule.key.map(({ name }) => [name, entry.source]))
        new Timeline(prepared, state, context).gap(context.now())
      }
      if (keyed !== undefined) new Timeline(prepared, state, context).event(keyed.event, entry)
      return
    }
    state.key ??= { source: entry.source }
    const watch = this.#watch(prepared, prepared.absence.within, state, context)
    if (isEvidence(entry.type)) watch.evidence(entry.type)
    else if (keyed !== undefined) watch.report(keyed.event)
  }

  timer(state: RuleState, due: number, context: RuleContext, name: string, data: unknown): void {
    const prepared = this.#byPrefix.get(ruleOfKey(context.key).prefix ?? '')
    const held = heldEvent(data)
    if (held !== undefined) {
      // The events of a rule that was removed end with it.
      if (prepared === undefined) return
      state.key ??= held.key
      return new Timeline(prepared, state, context).timer(due, held.event)
    }
    if (name === LATE_TIMER && prepared !== undefined)
      return new Timeline(prepared, state, context).reportLate()
    if (name !== TIMER) return
    if (prepared === undefined) {
      if (this.#rules.some(({ rule }) => rule.name === context.key)) this.#known(state, context)
      else this.#gone(state, context)
    } else if (prepared.absence === undefined) new Timeline(prepared, state, context).timer(due)
    else this.#watch(prepared, prepared.absence.within, state, context).timer(due)
  }

  #watch(prepared: PreparedRule, within: number, state: RuleState, context: RuleContext): AbsenceWatch {
    return new AbsenceWatch(prepared, { within, gap: this.#gap }, state, context)
  }

  /** Updates the state of a rule as a whole. */
  #ofRule(state: RuleState, entry: RuleInput, { prepared, counts }: Work, context: RuleContext): void {
    if (counts !== undefined) state.counts = sum(state.counts, counts)
    if (entry.type === 'log.gap' && prepared.absence !== undefined) {
      const { rule, absence } = prepared
      const alert = new KeyAlert(rule.name, state, context)
      state.lastGap = this.#gap
      // Each gap is an event.
      delete state.unknown
      alert.unknown(rule, 'gap', this.#gap)
      // What the deleted entries would have reported is decided by then.
      context.timer(TIMER, this.#gap + absence.within + rule.lateness, { clock: 'event' })
    }
    context.set(state)
  }

  /** The work that an entry means for each key; undefined if the entry changes nothing. */
  #workOf(entry: RuleInput): ReadonlyMap<string, Work> | undefined {
    let work: Map<string, Work> | undefined
    let view: EventView | undefined
    const counts: ProblemCounts = { missing: 0, errors: 0 }
    const rules = this.#rulesOf(entry.type)
    let left = EVENT_WORK
    for (const [index, prepared] of rules.entries()) {
      view ??= this.#viewOf(entry)
      // The work that a rule leaves is shared by the rules after it, so that each has at least an equal part.
      const share = Math.floor(left / (rules.length - index))
      view.work.left = share
      const wasCut = view.isCut
      if (prepared.absence !== undefined && !isWatched(prepared, entry.source, true)) continue
      let keyed: KeyedMatch | undefined
      try {
        keyed = matchEvent(prepared, entry, view, counts)
      } catch (error) {
        // It fails for this rule alone, when its turn comes.
        work ??= new Map()
        work.set(prepared.rule.name, { prepared, failure: { error } })
        continue
      } finally {
        left -= share - Math.max(0, view.work.left)
      }
      if (keyed !== undefined) {
        const { key } = keyed
        const values = key.map(([, value]) => value)
        work ??= new Map()
        work.set(stateKey(prepared.prefix, values), { prepared, keyed })
      }
      if (counts.missing > 0 || counts.errors > 0 || view.isCut !== wasCut) {
        work ??= new Map()
        work.set(prepared.rule.name, { prepared, counts: { ...counts, cut: Number(view.isCut !== wasCut) } })
        counts.missing = 0
        counts.errors = 0
      }
    }
    return this.#withEvidence(entry, work)
  }

  #withEvidence(
    { type, source }: RuleInput,
    work: Map<string, Work> | undefined,
  ): ReadonlyMap<string, Work> | undefined {
    const isLogGap = type === 'log.gap'
    if (!isLogGap && !isEvidence(type)) return work
    const all = work ?? new Map<string, Work>()
    for (const prepared of this.#rules) {
      const key = stateKey(prepared.prefix, [source])
      if (type === 'stream.gap' && prepared.readsGaps)
        all.set(key, { ...all.get(key), prepared, isGap: true })
      if (prepared.absence === undefined) continue
      if (isLogGap) all.set(prepared.rule.name, { ...all.get(prepared.rule.name), prepared })
      else if (isWatched(prepared, source, type !== 'source.live')) all.set(key, { prepared })
    }
    return all.size === 0 ? undefined : all
  }

  /** The rules that read a type. */
  #rulesOf(type: string): readonly PreparedRule[] {
    let rules = this.#byType.get(type)
    if (rules === undefined) {
      rules = this.#rules.filter(({ rule, absence }) => {
        if (absence !== undefined && isEvidence(type)) return false
        return readsType(rule, type)
      })
      this.#byType.set(type, rules)
    }
    return rules
  }

  /** A rule as a whole no longer misses entries. */
  #known(state: RuleState, context: RuleContext): void {
    const alert = new KeyAlert(context.key, state, context)
    alert.known()
    alert.flush()
    context.set(state)
  }

  /** Ends the alert of a state whose rule was removed, and removes the state. */
  #gone(state: RuleState, context: RuleContext): void {
    new KeyAlert(ruleOfKey(context.key).name, state, context).remove()
    context.cancel(TIMER)
    context.cancel(LATE_TIMER)
    context.set(null)
  }
}

function typesOf(rules: readonly PreparedRule[]): readonly ResearchEventType[] | undefined {
  const types = new Set<string>(['log.gap'])
  for (const { rule, absence, readsGaps } of rules) {
    if (rule.types === undefined) return undefined
    for (const type of rule.types) types.add(type)
    if (absence !== undefined) for (const type of EVIDENCE) types.add(type)
    if (readsGaps) types.add('stream.gap')
  }
  return [...types] as readonly ResearchEventType[]
}

function isEvidence(type: string): type is Evidence {
  return evidenceTypes.has(type)
}

function sum(before: Counts | undefined, { missing, errors, cut }: Counts): Counts {
  return {
    missing: (before?.missing ?? 0) + missing,
    errors: (before?.errors ?? 0) + errors,
    cut: (before?.cut ?? 0) + cut,
  }
}
