import { create } from '@bufbuild/protobuf'
import {
  ConstantSchema,
  Expr_CallSchema,
  Expr_IdentSchema,
  ExprSchema,
  type Expr,
  type Expr_Comprehension,
} from '@bufbuild/cel-spec/cel/expr/syntax_pb.js'
import { APPEND, BOUNDED, NEW_LIST } from './environment.ts'
import { ENVELOPE_FIELDS } from './event-shape.ts'
import { sizeOf } from './syntax.ts'
import { changedVariable, variableOf } from './view.ts'

/** Whether the name is a field of an event. */
export function isEventField(name: string): boolean {
  return name === 'data' || Object.hasOwn(ENVELOPE_FIELDS, name)
}

/**
 * The chain of fields that this node names, from a field of the event: `data.output.type` and `data["output"].type`.
 * Undefined for anything else, and for names that a macro has bound.
 */
export function pathOf(node: Expr, bound: ReadonlySet<string>): readonly string[] | undefined {
  const { exprKind: kind } = node
  switch (kind.case) {
    case 'identExpr':
      return isEventField(kind.value.name) && !bound.has(kind.value.name) ? [kind.value.name] : undefined
    case 'selectExpr': {
      if (kind.value.testOnly || kind.value.operand === undefined) return undefined
      const start = pathOf(kind.value.operand, bound)
      return start && [...start, kind.value.field]
    }
    case 'callExpr': {
      const [of, index] = kind.value.args
      if (kind.value.function !== '_[_]' || of === undefined || index === undefined) return undefined
      const name = textConstant(index)
      if (name === undefined) return undefined
      const start = pathOf(of, bound)
      return start && [...start, name]
    }
    default:
      return undefined
  }
}

/** The text of a node that is a text constant. */
export function textConstant(node: Expr): string | undefined {
  if (node.exprKind.case !== 'constExpr') return undefined
  const { constantKind: constant } = node.exprKind.value
  return constant.case === 'stringValue' ? constant.value : undefined
}

/** A rewritten tree, with the expressions that its evaluation needs besides it. */
export interface Rewritten {
  readonly root: Expr
  /** The arguments of the calls of `changed()`. */
  readonly watched: readonly Expr[]
}

/**
 * The tree as it is planned. The library tries several names for each step of `data.output.content.company`, and copies the
 * objects on the way. Here the whole chain is one variable, which the view of an event reads. `changed(…)` is a variable,
 * too, and macros go through no more members than the bound.
 */
export function rewrite(root: Expr): Rewritten {
  const watched: Expr[] = []
  return { root: rewriteNode(root, new Set(), watched), watched }
}

function rewriteNode(node: Expr, bound: ReadonlySet<string>, watched: Expr[]): Expr {
  const path = pathOf(node, bound)
  if (path !== undefined) return variable(node, variableOf(path))
  const again = (child: Expr): Expr => rewriteNode(child, bound, watched)
  const { exprKind: kind } = node
  switch (kind.case) {
    case 'selectExpr':
      return replaced(node, {
        case: 'selectExpr',
        value: { ...kind.value, ...(kind.value.operand && { operand: again(kind.value.operand) }) },
      })
    case 'callExpr': {
      const { function: name, target, args } = kind.value
      const [first] = args
      if (name === 'changed' && target === undefined && first !== undefined) {
        watched.push(first)
        return variable(node, changedVariable(watched.length - 1))
      }
      if (name === 'age' && target === undefined) return call(node, 'age', [])
      return replaced(node, {
        case: 'callExpr',
        value: { ...kind.value, args: args.map(again), ...(target && { target: again(target) }) },
      })
    }
    case 'listExpr':
      return replaced(node, {
        case: 'listExpr',
        value: { ...kind.value, elements: kind.value.elements.map(again) },
      })
    case 'structExpr':
      return replaced(node, {
        case: 'structExpr',
        value: {
          ...kind.value,
          entries: kind.value.entries.map((entry) => ({
            ...entry,
            ...(entry.keyKind.case === 'mapKey' && {
              keyKind: { case: 'mapKey' as const, value: again(entry.keyKind.value) },
            }),
            ...(entry.value && { value: again(entry.value) }),
          })),
        },
      })
    case 'comprehensionExpr':
      return replaced(node, { case: 'comprehensionExpr', value: rewriteFold(kind.value, bound, watched) })
    default:
      return node
  }
}

function rewriteFold(
  fold: Expr_Comprehension,
  bound: ReadonlySet<string>,
  watched: Expr[],
): Expr_Comprehension {
  const inner = new Set([...bound, fold.iterVar, fold.accuVar])
  const within = (child: Expr | undefined) => child && rewriteNode(child, inner, watched)
  const { iterRange: range, accuInit, loopCondition, loopStep, result } = fold
  const start = accuInit && rewriteNode(accuInit, bound, watched)
  const isList = start?.exprKind.case === 'listExpr'
  const step = within(loopStep)
  const parts = {
    iterRange:
      range && call(range, BOUNDED, [rewriteNode(range, bound, watched), integer(range, sizeOf(loopStep))]),
    accuInit: isList ? call(start, NEW_LIST, []) : start,
    loopCondition: within(loopCondition),
    loopStep: isList && step !== undefined ? growing(step, fold.accuVar) : step,
    result: within(result),
  }
  return Object.assign({ ...fold }, parts)
}

function replaced(node: Expr, exprKind: Expr['exprKind']): Expr {
  return { ...node, exprKind }
}

function variable(node: Expr, name: string): Expr {
  return create(ExprSchema, {
    id: node.id,
    exprKind: { case: 'identExpr', value: create(Expr_IdentSchema, { name }) },
  })
}

function call(node: Expr, name: string, args: Expr[]): Expr {
  return create(ExprSchema, {
    id: node.id,
    exprKind: { case: 'callExpr', value: create(Expr_CallSchema, { function: name, args }) },
  })
}

/** `map` and `filter` join their list and one more member, which may stand in a condition. Here the member is appended instead. */
function growing(step: Expr, accumulator: string): Expr {
  if (step.exprKind.case !== 'callExpr') return step
  const { function: name, args } = step.exprKind.value
  const [first, second] = args
  if (name === '_?_:_') {
    const value = { ...step.exprKind.value, args: args.map((arg) => growing(arg, accumulator)) }
    return replaced(step, { case: 'callExpr', value })
  }
  const isJoin =
    name === '_+_' && first?.exprKind.case === 'identExpr' && first.exprKind.value.name === accumulator
  const member = second?.exprKind.case === 'listExpr' ? second.exprKind.value.elements[0] : undefined
  return isJoin && member !== undefined ? call(step, APPEND, [first, member]) : step
}

function integer(node: Expr, value: number): Expr {
  const constant = create(ConstantSchema, { constantKind: { case: 'int64Value', value: BigInt(value) } })
  return create(ExprSchema, { id: node.id, exprKind: { case: 'constExpr', value: constant } })
}
