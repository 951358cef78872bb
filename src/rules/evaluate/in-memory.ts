import type { EventOf, ResearchEvent } from '../../protocol/event.ts'
import { MemoryProcess } from '../../streams/memory-process.ts'
import { FUNCTION_DEFAULTS } from '../../streams/process-functions.ts'
import { asGiven } from '../../streams/representation.ts'
import type { CompiledRule } from '../compiled-rule.ts'
import { unknownOutput } from './alert-data.ts'
import type { AlertOutputType } from './context.ts'
import type { RuleInput } from './event-time.ts'
import { ruleOfKey } from './key.ts'
import { ruleProgram } from './program.ts'
import type { ViewOf } from './program.ts'
import type { RuleState } from './state.ts'

/** An event that rules emit. */
export type AlertEvent = { [Type in AlertOutputType]: EventOf<Type> }[AlertOutputType]

/** Evaluates rules in memory, synchronously: with the same alerts, ids and order as the process `rules` over a log with the same entries. */
export class InMemoryRules extends MemoryProcess<RuleState, RuleInput, RuleState, AlertEvent> {
  /**
   * @param maxKeys Maximum number of keys of all rules together, and of events that wait. With so many, events of further keys are not
   *   evaluated, which each rule reports once. Default 100,000.
   */
  constructor(rules: readonly CompiledRule[], viewOf: ViewOf, maxKeys = 100_000) {
    const program = ruleProgram(rules, viewOf)
    const crowded = new Set<string>()
    super({
      name: 'rules',
      functions: {
        ...FUNCTION_DEFAULTS,
        key: (entry) => program.keys(entry),
        init: (key) => program.init(key),
        event: (state, entry, context) => program.event(state, entry, context),
        timer: (state, due, context, name, data) => program.timer(state, due, context, name, data),
      },
      representation: asGiven(isAlert),
      maxKeys,
      full: (_state, _entry, context) => {
        const { name } = ruleOfKey(context.key)
        const rule = rules.find((each) => each.name === name)
        if (rule === undefined || crowded.has(name)) return
        crowded.add(name)
        context.append(unknownOutput(rule, 'keys', {}, context.now()))
      },
      failed: (error) => {
        throw error
      },
    })
  }
}

function isAlert(event: ResearchEvent): event is AlertEvent {
  return event.type.startsWith('alert.')
}
