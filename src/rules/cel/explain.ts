import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js'
import type { Json } from '../../protocol/json.ts'
import { evaluated, planOf } from './compile.ts'
import type { EventView, Expression, Problem } from './expression.ts'
import { pathOf, rewrite } from './rewrite.ts'
import { childrenOf, parseExpression, type Syntax } from './syntax.ts'
import { VARIABLES, View, withView } from './view.ts'

/** A part of an expression, and its value for an event. */
export interface Explanation {
  /** The part, written anew. */
  readonly text: string
  /** The value of {@link Expression.evaluate}. */
  readonly value: Json | Problem
  /**
   * The parts that it consists of, in order; none for a field, and for constants. The expression that a macro evaluates for each member is
   * not among them.
   */
  readonly parts: readonly Explanation[]
}

/**
 * The value of each part of an expression for an event.
 *
 * @param changed As for {@link Expression.evaluate}.
 */
export function explain(
  expression: Expression,
  view: EventView,
  changed: readonly boolean[] = [],
): Explanation {
  if (!(view instanceof View)) throw new TypeError('an expression is explained for a view of viewOf()')
  const syntax = parseExpression(expression.text)
  const left = [...changed]
  return explainNode(syntax.root, syntax, view, left)
}

/** `changed` has the values of the calls of `changed()` that are still to come. */
function explainNode(node: Expr, syntax: Syntax, view: View, changed: boolean[]): Explanation {
  const { root, watched } = rewrite(node)
  const planned = planOf(root)
  view.changed = changed
  const value = withView(view, () => evaluated(planned, VARIABLES))
  const inner = [...changed]
  changed.splice(0, watched.length)
  const parts = partsOf(node).map((part) => explainNode(part, syntax, view, inner))
  return { text: syntax.textOf(node), value, parts }
}

function partsOf(node: Expr): readonly Expr[] {
  const { exprKind: kind } = node
  if (pathOf(node, new Set()) !== undefined) return []
  if (kind.case === 'comprehensionExpr') {
    return kind.value.iterRange === undefined ? [] : withoutConstants([kind.value.iterRange])
  }
  if (kind.case === 'callExpr' && kind.value.target === undefined) {
    const { function: name, args } = kind.value
    // The last value of `changed(…)` is not known here, and `age(event)` has no part.
    if (name === 'changed' || name === 'age') return []
    return withoutConstants(args)
  }
  return withoutConstants(childrenOf(node))
}

function withoutConstants(nodes: readonly Expr[]): readonly Expr[] {
  return nodes.filter(({ exprKind: kind }) => kind.case !== 'constExpr')
}
