import { parse, unparse } from '@bufbuild/cel'
import type { Expr } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js'
import { ExpressionError, type ExpressionProblem } from './expression-error.ts'
import { MACROS, METHODS } from './signatures.ts'
import { textLiteralAt, tokenAt } from './tokens.ts'

/** Maximum length of an expression, in characters. */
const MAX_LENGTH = 4_000

/** Maximum depth of brackets, and of the syntax tree's calls within calls. */
const MAX_DEPTH = 32

/** A syntax tree. */
export interface Syntax {
  readonly text: string
  readonly root: Expr
  /** The position of a node in the text, in characters. */
  at(node: Expr): number
  /** The call of a macro that this comprehension was made from. */
  macro(node: Expr): Expr | undefined
  /** The text of a part, written anew. */
  readonly textOf: (node: Expr) => string
}

/**
 * The syntax tree of an expression.
 *
 * @throws {ExpressionError} It is empty, too long, too deep, or no CEL.
 */
export function parseExpression(text: string): Syntax {
  if (text.trim() === '') throw problem('Write an expression here.', 0, text.length)
  if (text.length > MAX_LENGTH) {
    throw problem(`An expression has at most ${MAX_LENGTH} characters.`, MAX_LENGTH, text.length - MAX_LENGTH)
  }
  checkBrackets(text)
  const parsed = parsedOf(text)
  const { expr: root, sourceInfo } = parsed
  if (root === undefined) throw problem('Write an expression here.', 0, text.length)
  return {
    text,
    root,
    at: (node) => sourceInfo?.positions[String(node.id)] ?? 0,
    macro: (node) => sourceInfo?.macroCalls[String(node.id)],
    textOf: (node) => unparse({ ...parsed, expr: node }),
  }
}

function parsedOf(text: string): ReturnType<typeof parse> {
  try {
    return parse(text)
  } catch (error) {
    // The parser calls itself for each prefix operator and each branch.
    if (error instanceof RangeError) throw problem('The expression is too deep.', 0, text.length)
    throw syntaxProblem(text, error)
  }
}

/** The parser reports what it found and not the cause: the message names the token instead. */
function syntaxProblem(text: string, error: unknown): ExpressionError {
  const offset = offsetOf(error) ?? 0
  const token = tokenAt(text, offset)
  if (token === '') return problem('The expression is not complete.', text.length, 0)
  const after = text.slice(offset + token.length).trim()
  const hint =
    hintBefore(after, token) ??
    (after === '' && /^\W/.test(token) ? 'write what it applies to after it' : undefined)
  const message = `\`${token}\` is not expected here${hint === undefined ? '' : `: ${hint}`}.`
  return problem(message, offset, token.length)
}

const HINTS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '=': 'to compare, write `==`',
    '==': 'CEL compares with `==` alone',
    not: 'write `!`',
    '&': 'for "and", write `&&`',
    '|': 'for "or", write `||`',
    and: 'write `&&`',
    or: 'write `||`',
    '?': 'CEL has no `?.`; use `has(…)`, or `condition ? a : b`',
  }),
)

/** @param after The text behind the token. */
function hintBefore(after: string, token: string): string | undefined {
  if (token === '=' && after.startsWith('~')) return "for a regular expression, write `….matches('…')`"
  if (METHODS.has(token) || MACROS.has(token)) return `write \`….${token}(…)\``
  return token === '==' && after === '' ? undefined : HINTS.get(token)
}

function offsetOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('location' in error)) return undefined
  const { location } = error
  if (typeof location !== 'object' || location === null || !('start' in location)) return undefined
  const { start } = location
  if (typeof start !== 'object' || start === null || !('offset' in start)) return undefined
  return typeof start.offset === 'number' ? start.offset : undefined
}

const CLOSING: Readonly<Record<string, string | undefined>> = { '(': ')', '[': ']', '{': '}' }

/** Finds problems that the parser reports without a position, and bounds the depth before the parser calls itself for each bracket. */
function checkBrackets(text: string): void {
  const open: { readonly bracket: string; readonly at: number }[] = []
  for (let at = 0; at < text.length;) {
    const literal = textLiteralAt(text, at)
    if (literal !== undefined) {
      if (literal < 0) throw problem('The text that begins here is not closed.', at, 1)
      at += literal
      continue
    }
    if (text.startsWith('//', at)) {
      const end = text.indexOf('\n', at)
      at = end === -1 ? text.length : end
      continue
    }
    const word = /^[\p{L}\p{N}_]+/u.exec(text.slice(at))
    if (word !== null) {
      at += word[0].length
      continue
    }
    const sign = text.charAt(at)
    if (CLOSING[sign] !== undefined) {
      open.push({ bracket: sign, at })
      if (open.length > MAX_DEPTH) throw problem(`Brackets are at most ${MAX_DEPTH} deep.`, at, 1)
    } else if (sign === ')' || sign === ']' || sign === '}') {
      const last = open.pop()
      if (last === undefined) throw problem(`\`${sign}\` closes nothing.`, at, 1)
      if (CLOSING[last.bracket] !== sign) throw problem(`\`${last.bracket}\` is not closed.`, last.at, 1)
    }
    at++
  }
  const last = open.pop()
  if (last !== undefined) throw problem(`\`${last.bracket}\` is not closed.`, last.at, 1)
}

function problem(message: string, offset: number, length: number): ExpressionError {
  const found: ExpressionProblem = { message, offset, length }
  return new ExpressionError([found])
}

/** The names that a tree reads, except those that its macros bind, each with the node of its first use. */
export function namesOf(root: Expr): ReadonlyMap<string, Expr> {
  const names = new Map<string, Expr>()
  collect(root, new Set(), names)
  return names
}

function collect(node: Expr, bound: ReadonlySet<string>, names: Map<string, Expr>): void {
  const { exprKind: kind } = node
  if (kind.case === 'identExpr') {
    if (!bound.has(kind.value.name) && !names.has(kind.value.name)) names.set(kind.value.name, node)
  } else if (kind.case === 'comprehensionExpr') {
    const { iterRange, accuInit, iterVar, accuVar } = kind.value
    const within = new Set([...bound, iterVar, accuVar])
    for (const child of childrenOf(node)) {
      collect(child, child === iterRange || child === accuInit ? bound : within, names)
    }
  } else for (const child of childrenOf(node)) collect(child, bound, names)
}

/** How many nodes the tree has. */
export function sizeOf(root: Expr | undefined): number {
  if (root === undefined) return 0
  let size = 1
  for (const child of childrenOf(root)) size += sizeOf(child)
  return size
}

/** The nodes directly below a node, in the order of the text; of a macro, those that it was expanded to. */
export function childrenOf(node: Expr): readonly Expr[] {
  const { exprKind: kind } = node
  const present = (nodes: readonly (Expr | undefined)[]): readonly Expr[] =>
    nodes.filter((child) => child !== undefined)
  switch (kind.case) {
    case 'selectExpr':
      return present([kind.value.operand])
    case 'callExpr':
      return present([kind.value.target, ...kind.value.args])
    case 'listExpr':
      return kind.value.elements
    case 'structExpr':
      return present(
        kind.value.entries.flatMap(({ keyKind, value }) => [
          keyKind.case === 'mapKey' ? keyKind.value : undefined,
          value,
        ]),
      )
    case 'comprehensionExpr': {
      const { iterRange, accuInit, loopCondition, loopStep, result } = kind.value
      return present([iterRange, accuInit, loopCondition, loopStep, result])
    }
    default:
      return []
  }
}
