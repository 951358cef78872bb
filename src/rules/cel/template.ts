import type { CelInput } from '@bufbuild/cel'
import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js'
import type { ResearchEventType } from '../../protocol/event.ts'
import type { Json } from '../../protocol/json.ts'
import { checkExpression, eventNames, type CheckedScope } from './check.ts'
import { evaluated, planned, planOf, type Plan } from './compile.ts'
import type { Shape } from './event-shape.ts'
import { ExpressionError, type ExpressionProblem } from './expression-error.ts'
import { Problem, type AlertScope, type EventView, type Expression, type Template } from './expression.ts'
import { toCelValue } from './json-value.ts'
import { isEventField } from './rewrite.ts'
import { namesOf, parseExpression, type Syntax } from './syntax.ts'
import { textLiteralAt } from './tokens.ts'
import { withView } from './view.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** The names that a template may use. */
export interface TemplateScope {
  /** `label`: values of `key` alone. `annotation`: fields of an event as well, or `key`, `labels` and `value`. */
  readonly of: 'label' | 'annotation'
  /** The event types that the rule reads. Default: all but `unknown`. */
  readonly types?: ReadonlySet<ResearchEventType> | undefined
  /** The names that the rule's `key` has. Default: any. */
  readonly keys?: readonly string[]
  /** The names that the rule's labels have. Default: any. */
  readonly labels?: readonly string[]
}

/** Maximum length of a template, in characters. */
const MAX_LENGTH = 10_000

/** Maximum length of a text that a template makes, in characters. */
const MAX_RENDERED = 64 * 1024

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'event'; readonly index: number; readonly value: Expression }
  | { readonly kind: 'alert'; readonly evaluate: Plan }

/**
 * A text with `${…}`. Each one has fields of the event, or `key`, `labels` and `value`, and not both. `$${` stands for `${`.
 *
 * @throws {ExpressionError} An interpolation is not closed, is no CEL, or uses an unknown name.
 */
export function compileTemplate(text: string, scope: TemplateScope): Template {
  if (text.length > MAX_LENGTH) {
    const message = `A template has at most ${MAX_LENGTH} characters.`
    throw new ExpressionError([{ message, offset: MAX_LENGTH, length: text.length - MAX_LENGTH }])
  }
  const parts: Part[] = []
  const problems: ExpressionProblem[] = []
  const foreign = /\{\{[^{}]*\$[^{}]*\}\}/.exec(text)
  if (foreign !== null) {
    const message = `\`${cutText(foreign[0], 60)}\` is a template of Prometheus: write \`\${…}\`, such as \`\${value}\`.`
    problems.push({ message, offset: foreign.index, length: foreign[0].length })
  }
  let index = 0
  for (const piece of pieces(text)) {
    if (typeof piece === 'string') {
      parts.push({ kind: 'text', text: piece })
      continue
    }
    try {
      const part = interpolation(piece.text, scope, index)
      if (part.kind === 'event') index++
      parts.push(part)
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      for (const found of error.problems) problems.push({ ...found, offset: found.offset + piece.offset })
    }
  }
  if (problems.length > 0) throw new ExpressionError(problems)
  return new CompiledTemplate(text, parts)
}

interface Interpolation {
  readonly text: string
  readonly offset: number
}

/** The parts of a template: texts, and the contents of `${` and `}`. */
function pieces(text: string): readonly (string | Interpolation)[] {
  const found: (string | Interpolation)[] = []
  let plain = ''
  for (let at = 0; at < text.length;) {
    if (text.startsWith('$${', at)) {
      plain += '${'
      at += 3
    } else if (text.startsWith('${', at)) {
      const end = closingBrace(text, at + 2)
      if (end === undefined) {
        throw new ExpressionError([
          { message: '`${` is not closed: write `}` after the expression.', offset: at, length: 2 },
        ])
      }
      if (plain !== '') found.push(plain)
      plain = ''
      found.push({ text: text.slice(at + 2, end), offset: at + 2 })
      at = end + 1
    } else {
      plain += text.charAt(at)
      at++
    }
  }
  if (plain !== '') found.push(plain)
  return found
}

/** The position of the brace that closes an interpolation. */
function closingBrace(text: string, from: number): number | undefined {
  let open = 0
  for (let at = from; at < text.length;) {
    const literal = isWordBefore(text, at) ? undefined : textLiteralAt(text, at)
    if (literal !== undefined) {
      if (literal < 0) return undefined
      at += literal
      continue
    }
    const sign = text.charAt(at)
    if (sign === '{') open++
    else if (sign === '}' && open-- === 0) return at
    at++
  }
  return undefined
}

/** Whether a letter at this position continues a word: `r'` begins a text, and the `r` of `for'` does not. */
function isWordBefore(text: string, at: number): boolean {
  return /[\p{L}\p{N}_]/u.test(text.charAt(at)) && /[\p{L}\p{N}_]/u.test(text.charAt(at - 1))
}

const ALERT_NAMES = ['key', 'labels', 'value']

function interpolation(text: string, scope: TemplateScope, index: number): Part {
  const syntax = parseExpression(text)
  const names = namesOf(syntax.root)
  const ofAlert = ALERT_NAMES.find((name) => names.has(name))
  const ofEvent = [...names.keys()].find(isEventField)
  if (ofAlert !== undefined && ofEvent !== undefined) {
    const message = `\`${ofAlert}\` and \`${ofEvent}\` cannot be used together: write a \`\${…}\` for each.`
    throw new ExpressionError([{ message, ...placeOf(syntax, names, ofEvent) }])
  }
  if (scope.of === 'label' || ofAlert !== undefined) {
    check(syntax, { ...alertScope(scope), allowChanged: false, result: 'value' })
    return { kind: 'alert', evaluate: planOf(syntax.root) }
  }
  const { types } = scope
  check(syntax, { types, names: eventNames(types), hasEvent: true, allowChanged: false, result: 'value' })
  return { kind: 'event', index, value: planned(syntax.root, text, syntax.textOf) }
}

function placeOf(
  syntax: Syntax,
  names: ReadonlyMap<string, Expr>,
  name: string,
): { readonly offset: number; readonly length: number } {
  const node = names.get(name)
  return { offset: node === undefined ? 0 : syntax.at(node), length: name.length }
}

function alertScope({ of, keys, labels }: TemplateScope): Pick<CheckedScope, 'names' | 'hasEvent'> {
  const names = new Map<string, readonly Shape[]>([['key', [recordOf(keys)]]])
  if (of === 'annotation') {
    names.set('labels', [recordOf(labels)])
    names.set('value', ['value'])
  }
  return { names, hasEvent: false }
}

function recordOf(names: readonly string[] | undefined): Shape {
  return names === undefined ? 'any' : Object.fromEntries(names.map((name) => [name, 'value' as const]))
}

function check(syntax: Syntax, scope: CheckedScope): void {
  const problems = checkExpression(syntax, scope)
  if (problems.length > 0) throw new ExpressionError(problems)
}

class CompiledTemplate implements Template {
  readonly text: string
  readonly #parts: readonly Part[]

  constructor(text: string, parts: readonly Part[]) {
    this.text = text
    this.#parts = parts
  }

  fromEvent(view: EventView): readonly string[] {
    const values: string[] = []
    for (const part of this.#parts) if (part.kind === 'event') values.push(written(part.value.evaluate(view)))
    return values
  }

  render(parts: readonly string[], alert: AlertScope): string {
    let variables: Record<string, CelInput> | undefined
    let text = ''
    for (const part of this.#parts) {
      if (part.kind === 'text') text += part.text
      else if (part.kind === 'event') text += parts[part.index] ?? ''
      else {
        variables ??= {
          key: toCelValue(alert.key),
          labels: toCelValue(alert.labels),
          value: toCelValue(alert.value),
        }
        const known = variables
        text += written(withView(undefined, () => evaluated(part.evaluate, known)))
      }
    }
    return cutText(text, MAX_RENDERED)
  }
}

/** A value as a text has it: nothing for null and for a problem, JSON for lists and maps. At most 64 kB. */
function written(value: Json | Problem): string {
  if (value instanceof Problem || value === null) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return cutText(text, MAX_RENDERED)
}
