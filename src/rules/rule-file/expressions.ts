import { compileExpression, compileTemplate, ExpressionError } from '../cel/index.ts'
import type { Expression, ExpressionScope, Template } from '../cel/index.ts'
import type { RuleEventType } from '../rule.ts'
import { AGGREGATES } from './draft.ts'
import type { Draft } from './draft.ts'
import type { Path } from './source.ts'

/** The purpose of an expression: a condition is true or false, and a key is text. */
export type Purpose = 'condition' | 'end' | 'value' | 'number' | 'key'

const SCOPES: Readonly<Record<Purpose, ExpressionScope>> = {
  condition: { result: 'bool', allowChanged: true },
  end: { result: 'bool', allowChanged: true },
  value: {},
  number: { result: 'number' },
  key: { result: 'text' },
}

/** The most different `changed(…)` of a rule: a held event keeps a result for each combination of them. */
const MAX_WATCHED = 3

/** Compiles the expressions of one rule, and reports their problems. */
export class RuleExpressions {
  readonly #draft: Draft
  readonly #types: ReadonlySet<RuleEventType> | undefined
  readonly #keys: readonly string[]
  #hasFailed = false
  readonly #watched = new Set<string>()

  /** @param keys The names of the rule's key. */
  constructor(draft: Draft, types: ReadonlySet<RuleEventType> | undefined, keys: readonly string[]) {
    this.#draft = draft
    this.#types = types
    this.#keys = keys
  }

  /** Whether an expression has a problem. */
  get hasFailed(): boolean {
    return this.#hasFailed
  }

  /** Whether an expression compares an event with the one before. */
  get watchesChanges(): boolean {
    return this.#watched.size > 0
  }

  /** Undefined if there is none, or if it has a problem. */
  expression(text: string | undefined, path: Path, purpose: Purpose = 'condition'): Expression | undefined {
    if (text === undefined) return undefined
    return this.#compiled(path, () => {
      const expression = compileExpression(text, { ...SCOPES[purpose], types: this.#types })
      for (const { text: watched } of expression.watched) this.#watched.add(watched)
      if (expression.watched.length > 0 && this.#watched.size > MAX_WATCHED) {
        this.#hasFailed = true
        this.#draft.complain(path, `A rule has at most ${MAX_WATCHED} different changed(…): remove one.`)
      }
      return expression
    })
  }

  /** Reports the problems of expressions in properties that have another problem, too. */
  checkBroken(): void {
    for (const [property, content] of Object.entries(this.#draft.broken)) {
      if (property === 'when' || typeof content !== 'object') continue
      for (const [name, value] of Object.entries(Object(content))) {
        const isKey = property === 'key'
        if (name === 'steps' && Array.isArray(value)) {
          for (const [index, step] of value.entries())
            if (typeof step === 'string') this.expression(step, [property, name, index])
        } else if (typeof value === 'string' && (isKey || ['when', 'value', 'not_then'].includes(name))) {
          const isNumber = AGGREGATES.some((each) => each === property)
          const purpose = isKey ? 'key' : name !== 'value' ? 'condition' : isNumber ? 'number' : 'value'
          this.expression(value, [property, name], purpose)
        }
      }
    }
  }

  /** The texts of labels or annotations, by name. */
  templates(property: 'labels' | 'annotations'): ReadonlyMap<string, Template> {
    const templates = new Map<string, Template>()
    const { rule } = this.#draft
    const scope = {
      of: property === 'labels' ? 'label' : 'annotation',
      types: this.#types,
      keys: this.#keys,
      labels: ['alertname', ...this.#keys, ...Object.keys(rule.labels ?? {})],
    } as const
    // The order of names in a file has no meaning.
    const texts = Object.entries(rule[property] ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
    for (const [name, text] of texts) {
      const template = this.#compiled([property, name], () => compileTemplate(text, scope))
      if (template !== undefined) templates.set(name, template)
    }
    return templates
  }

  #compiled<Result>(path: Path, compile: () => Result): Result | undefined {
    try {
      return compile()
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      this.#hasFailed = true
      for (const { message, offset } of error.problems) this.#draft.complain(path, message, { offset })
      return undefined
    }
  }
}
