import { celError, isCelError, plan, type CelError, type CelInput, type CelResult } from '@bufbuild/cel'
import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { Json } from '../../protocol/json.ts'
import { checkExpression, eventNames } from './check.ts'
import { ENVIRONMENT, resetMembers } from './environment.ts'
import { ExpressionError } from './expression-error.ts'
import { Problem, type EventView, type Expression } from './expression.ts'
import { toJsonValue } from './json-value.ts'
import { rewrite } from './rewrite.ts'
import { parseExpression, sizeOf } from './syntax.ts'
import { MISSING, VARIABLES, View, withView } from './view.ts'
import { spend, STEP } from './work.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** The names that an expression may use, and the type that it must have. */
export interface ExpressionScope {
  /** The event types that it reads. Default: all but `unknown`. A field is known if one of them has it. */
  readonly types?: ReadonlySet<ResearchEventType> | undefined
  /** Whether `changed()` can be used, as in conditions. Default false. */
  readonly allowChanged?: boolean
  /** `bool`: a condition. `text`: no list and no map. `number`: a number. Default `value`: anything. Checked as far as the type is known. */
  readonly result?: 'bool' | 'text' | 'number' | 'value'
}

/**
 * A checked expression over the fields of an event: `id`, `source`, `type`, `time`, `received`, `via`, `revision`, `backfill`
 * and `data`.
 *
 * @throws {ExpressionError} It is no CEL, or uses a name that an event cannot have.
 */
export function compileExpression(text: string, scope: ExpressionScope = {}): Expression {
  const syntax = parseExpression(text)
  const { types, allowChanged = false, result = 'value' } = scope
  const problems = checkExpression(syntax, {
    types,
    names: eventNames(types),
    hasEvent: true,
    allowChanged,
    result,
  })
  if (problems.length > 0) throw new ExpressionError(problems)
  return planned(syntax.root, text, syntax.textOf)
}

/** The expression of a checked tree. */
export function planned(root: Expr, text: string, textOf: (node: Expr) => string): Expression {
  const { root: rewritten, watched } = rewrite(root)
  const evaluate = planOf(rewritten)
  return new PlannedExpression(
    text,
    evaluate,
    watched.map((node) => planned(node, textOf(node), textOf)),
  )
}

/** An expression as the library plans it. Its steps count as work. */
export type Plan = (variables: Record<string, CelInput>) => CelResult

export function planOf(root: Expr): Plan {
  const steps = STEP * sizeOf(root)
  const evaluate = plan(ENVIRONMENT, root)
  return (variables) => {
    try {
      spend(steps)
      return evaluate(variables)
    } catch (error) {
      return celError(error)
    }
  }
}

class PlannedExpression implements Expression {
  readonly text: string
  readonly watched: readonly Expression[]
  readonly #plan: Plan

  constructor(text: string, evaluate: Plan, watched: readonly Expression[]) {
    this.text = text
    this.#plan = evaluate
    this.watched = watched
  }

  evaluate(view: EventView, changed: readonly boolean[] = []): Json | Problem {
    if (!(view instanceof View)) throw new TypeError('an expression is evaluated for a view of viewOf()')
    if (this.watched.length > 0) return this.#evaluate(view, changed)
    const known = view.results.get(this.text)
    if (known !== undefined) return known
    const value = this.#evaluate(view, changed)
    // Not kept if the work ran out, since a rule with more work left may get a value. Nor if it is long, since each rule that gets it has
    // to pay for hashing it.
    if (view.work.left >= 0 && isShort(value)) view.results.set(this.text, value)
    return value
  }

  #evaluate(view: View, changed: readonly boolean[]): Json | Problem {
    view.changed = changed
    return withView(view, () => evaluated(this.#plan, VARIABLES))
  }
}

function isShort(value: Json | Problem): boolean {
  if (typeof value === 'string') return value.length <= 1_000
  return typeof value !== 'object' || value === null || value instanceof Problem
}

/** The value of a plan, as JSON. */
export function evaluated(evaluate: Plan, variables: Record<string, CelInput>): Json | Problem {
  resetMembers()
  const value = evaluate(variables)
  if (isCelError(value)) return problemOf(value)
  if (typeof value === 'boolean') return value
  try {
    return toJsonValue(value)
  } catch (error) {
    return new Problem('error', error instanceof Error ? error.message : String(error))
  }
}

/** Maximum length of the message of a problem, in characters. The library's messages have the value, which may be long. */
const MAX_MESSAGE = 300

/** The problem that an error of the library reports about the event. */
function problemOf(error: CelError): Problem {
  const message = cutText(error.message, MAX_MESSAGE)
  if (message.startsWith(MISSING)) return new Problem('missing', message.slice(MISSING.length))
  const index = /^index (-?\d+) out of bounds/.exec(message)
  if (index !== null) return new Problem('missing', `[${index[1]}]`)
  const overload = /^found no matching overload for '(.*?)' applied to '(.*)'$/.exec(message)
  if (overload !== null) {
    const name = overload[1]?.replace(/^@in$/, 'in').replaceAll('_', '') ?? ''
    return new Problem('error', `\`${name}\` cannot be applied to ${overload[2]}`)
  }
  return new Problem('error', message)
}
