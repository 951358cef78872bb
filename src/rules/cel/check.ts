import type { Expr, Expr_Call, Expr_Comprehension } from '@bufbuild/cel-spec/cel/expr/syntax_pb.js'
import { nearestName } from '../../protocol/check.ts'
import { EVENT_TYPES, isOwnEventType } from '../../protocol/event-types.ts'
import { dataShapes, ENVELOPE_FIELDS, type Shape } from './event-shape.ts'
import type { ExpressionProblem } from './expression-error.ts'
import { patternOf } from './pattern.ts'
import { isEventField, pathOf, textConstant } from './rewrite.ts'
import { FUNCTIONS, MACROS, METHODS, OPERATORS, TYPE_NAMES, type Kind } from './signatures.ts'
import { childrenOf, type Syntax } from './syntax.ts'
import { textLiteralAt } from './tokens.ts'

/** The names that an expression may use. */
export interface CheckedScope {
  /** The event types that it reads; undefined for all but `unknown`. */
  readonly types?: ReadonlySet<string> | undefined
  /** Names and the shapes of their values: of the event, or of an alert. */
  readonly names: ReadonlyMap<string, readonly Shape[]>
  /** Whether the names belong to an event. */
  readonly hasEvent: boolean
  readonly allowChanged: boolean
  /** `bool`: a condition. `text`: anything but a list or a map. `number`: a number. `value`: anything. */
  readonly result: 'bool' | 'text' | 'number' | 'value'
}

/** The names of an event of these types. */
export function eventNames(types: ReadonlySet<string> | undefined): ReadonlyMap<string, readonly Shape[]> {
  const names = new Map<string, readonly Shape[]>(
    Object.entries(ENVELOPE_FIELDS).map(([name, shape]) => [name, [shape]]),
  )
  names.set('data', dataShapes(types))
  return names
}

/** Maximum depth of the syntax tree. */
const MAX_TREE_DEPTH = 100

/** Maximum depth of macros within macros. */
const MAX_MACROS = 2

/** Maximum number of calls of `changed()`. */
const MAX_CHANGED = 3

const ANY: readonly Shape[] = ['any']

/** Problems of the expression, in the order of the text. */
export function checkExpression(syntax: Syntax, scope: CheckedScope): readonly ExpressionProblem[] {
  const checker = new Checker(syntax, scope)
  checker.visit(syntax.root, { bound: new Map(), macros: 0, depth: 0, isWatched: false })
  if (checker.problems.length === 0) checker.checkResult(syntax.root)
  return checker.problems.toSorted((a, b) => a.offset - b.offset)
}

interface Nesting {
  /** The variables of macros. */
  readonly bound: ReadonlyMap<string, readonly Shape[]>
  readonly macros: number
  readonly depth: number
  /** Whether it is within the argument of `changed()`. */
  readonly isWatched: boolean
}

class Checker {
  readonly problems: ExpressionProblem[] = []
  readonly #syntax: Syntax
  readonly #scope: CheckedScope
  #changed = 0
  #isTooDeep = false

  constructor(syntax: Syntax, scope: CheckedScope) {
    this.#syntax = syntax
    this.#scope = scope
  }

  /** Checks the node, and gives the shapes that its value can have. */
  visit(node: Expr, outer: Nesting): readonly Shape[] {
    const nesting = { ...outer, depth: outer.depth + 1 }
    if (nesting.depth > MAX_TREE_DEPTH) {
      if (!this.#isTooDeep) this.#report('The expression is too deep.', this.#at(node), 1)
      this.#isTooDeep = true
      return ANY
    }
    const { exprKind: kind } = node
    switch (kind.case) {
      case 'identExpr':
        return this.#identifier(node, kind.value.name, nesting)
      case 'selectExpr': {
        const { operand, field } = kind.value
        if (operand === undefined) return ANY
        const shapes = this.visit(operand, nesting)
        const offset = this.#skip(this.#at(node) + (kind.value.testOnly ? 0 : 1))
        const where = kind.value.testOnly ? this.#lastWord(node, field) : offset
        return this.#field(shapes, field, where, field.length)
      }
      case 'callExpr':
        return this.#call(node, kind.value, nesting)
      case 'listExpr': {
        for (const member of kind.value.elements) this.visit(member, nesting)
        return ANY
      }
      case 'structExpr': {
        if (kind.value.messageName !== '') {
          this.#report('Messages cannot be made here; a map is `{"name": value}`.', this.#at(node), 1)
        }
        for (const { keyKind, value } of kind.value.entries) {
          if (keyKind.case === 'mapKey') this.visit(keyKind.value, nesting)
          if (value !== undefined) this.visit(value, nesting)
        }
        return ANY
      }
      case 'comprehensionExpr':
        return this.#macro(node, kind.value, nesting)
      default:
        return ANY
    }
  }

  /** Whether the result can have the required type, as far as it is known. */
  checkResult(root: Expr): void {
    const kind = this.#kindOf(root)
    const { result } = this.#scope
    const { length } = this.#syntax.text
    if (result === 'bool' && kind !== 'bool' && kind !== 'any') {
      this.#report(
        `A condition is true or false, and this is ${KIND_NAMES[kind]}: compare it, as in \`… == …\`.`,
        0,
        length,
      )
    }
    if (result === 'number' && kind !== 'number' && kind !== 'any') {
      this.#report(`A number is needed, and this is ${KIND_NAMES[kind]}.`, 0, length)
    }
    if (result === 'text' && (kind === 'list' || kind === 'map')) {
      this.#report(`A text, a number or a boolean is needed, and this is ${KIND_NAMES[kind]}.`, 0, length)
    }
  }

  #identifier(node: Expr, name: string, { bound }: Nesting): readonly Shape[] {
    const shapes = bound.get(name) ?? this.#scope.names.get(name)
    if (shapes !== undefined) return shapes
    if (TYPE_NAMES.has(name)) return ANY
    const at = this.#at(node)
    if (FUNCTIONS.has(name)) {
      this.#report(`\`${name}\` is a function: write \`${name}(…)\`.`, at, name.length)
      return ANY
    }
    const names = [...this.#scope.names.keys(), ...[...bound.keys()].filter((key) => !key.startsWith('@'))]
    this.#report(`There is no name \`${name}\`: ${this.#hintForName(name, names)}`, at, name.length)
    return ANY
  }

  #hintForName(name: string, names: readonly string[]): string {
    const { hasEvent } = this.#scope
    if (hasEvent && this.#dataFields().has(name)) return `write \`data.${name}\`.`
    const elsewhere = CONSTANTS_ELSEWHERE.get(name.toLowerCase())
    if (elsewhere !== undefined) return `write \`${elsewhere}\`.`
    const known = nearestName(name, names)
    if (known !== undefined) return `did you mean \`${known}\`?`
    if (!hasEvent && isEventField(name)) return `only ${list(names)} can be used here, not the event.`
    return `known are ${list(names)}; a text needs quotes: '${name}'.`
  }

  #dataFields(): ReadonlySet<string> {
    return new Set(fieldsOf(this.#scope.names.get('data') ?? []))
  }

  #field(shapes: readonly Shape[], field: string, offset: number, length: number): readonly Shape[] {
    const found: Shape[] = []
    for (const shape of shapes) {
      if (shape === 'any') found.push('any')
      else if (isRecord(shape) && Object.hasOwn(shape, field)) {
        const inner = shape[field]
        if (inner !== undefined) found.push(inner)
      }
    }
    if (found.length > 0) return found
    const fields = fieldsOf(shapes)
    const known = nearestName(field, fields)
    const hint =
      known !== undefined
        ? `did you mean \`${known}\`?`
        : fields.length > 0
          ? `known are ${list(fields)}.`
          : shapes.some((shape) => Array.isArray(shape))
            ? 'it is a field of a list; write `[0]` before it, or use `.exists(x, …)`.'
            : 'what is before it has no fields.'
    const types = this.#scope.types
    const where = types === undefined ? '' : ` in ${list([...types])}`
    this.#report(`There is no field \`${field}\`${fields.length > 0 ? where : ''}: ${hint}`, offset, length)
    return ANY
  }

  #call(node: Expr, call: Expr_Call, nesting: Nesting): readonly Shape[] {
    const { function: name, target, args } = call
    if (target === undefined && OPERATORS.has(name)) return this.#operator(call, nesting)
    const at = this.#callAt(node, name, target !== undefined)
    const known = target === undefined ? FUNCTIONS : METHODS
    const signature = known.get(name)
    if (signature === undefined) {
      this.#unknownFunction(name, target !== undefined, at)
      // Its arguments may name a variable of a macro that was misspelled.
      if (target !== undefined) this.visit(target, nesting)
      return ANY
    }
    if (!signature.counts.includes(args.length)) {
      const counts = signature.counts.join(' or ')
      const noun = counts === '1' ? 'argument' : 'arguments'
      this.#report(`\`${name}\` takes ${counts} ${noun}, and here it has ${args.length}.`, at, name.length)
      return ANY
    }
    if (!this.#scope.hasEvent && signature.readsEvent?.(args.length) === true) {
      this.#report(
        `\`${name}\` reads the event, which cannot be used together with \`key\`, \`labels\` and \`value\`.`,
        at,
        name.length,
      )
    }
    if (name === 'age' && target === undefined && args[0] !== undefined) {
      if (args[0].exprKind.case !== 'identExpr' || args[0].exprKind.value.name !== 'event') {
        this.#report('`age` is that of the event: write `age(event)`.', at, name.length)
      }
      return ANY
    }
    if (name === 'changed' && target === undefined) return this.#watch(args, nesting, at)
    if (name === 'matches') this.#pattern(args[0])
    if (target !== undefined) this.visit(target, nesting)
    for (const arg of args) this.visit(arg, nesting)
    return ANY
  }

  #unknownFunction(name: string, isMethod: boolean, at: number): void {
    if (MACROS.has(name)) {
      this.#report(
        `\`${name}\` takes a name and an expression, as in \`list.${name}(x, …)\`.`,
        at,
        name.length,
      )
      return
    }
    const same = isMethod ? METHODS : FUNCTIONS
    const other = isMethod ? FUNCTIONS : METHODS
    const names = isMethod ? [...same.keys(), ...MACROS.keys()] : [...same.keys()]
    const elsewhere = FUNCTIONS_ELSEWHERE.get(name.toLowerCase())
    const known = elsewhere === undefined ? nearestName(name, names) : undefined
    const hint = other.has(name)
      ? isMethod
        ? `write \`${name}(…)\` around it.`
        : `write \`….${name}(…)\` after a value.`
      : elsewhere !== undefined
        ? `write \`${elsewhere}\`.`
        : known === undefined
          ? `known are ${list(names)}.`
          : `did you mean \`${known}\`?`
    this.#report(`There is no ${isMethod ? 'method' : 'function'} \`${name}\`: ${hint}`, at, name.length)
  }

  #watch(args: readonly Expr[], nesting: Nesting, at: number): readonly Shape[] {
    this.#changed++
    const length = 'changed'.length
    if (!this.#scope.allowChanged) this.#report('`changed` can be used in conditions only.', at, length)
    else if (nesting.isWatched) this.#report('`changed` cannot be used within `changed`.', at, length)
    else if (nesting.macros > 0) this.#report('`changed` cannot be used within a macro.', at, length)
    else if (this.#changed > MAX_CHANGED) {
      this.#report(`\`changed\` is used at most ${MAX_CHANGED} times in one expression.`, at, length)
    }
    for (const arg of args) this.visit(arg, { ...nesting, isWatched: true })
    return ANY
  }

  #operator({ function: name, args }: Expr_Call, nesting: Nesting): readonly Shape[] {
    const [first, second] = args
    if (name === '_[_]' && first !== undefined && second !== undefined) {
      const shapes = this.visit(first, nesting)
      const field = textConstant(second)
      if (field !== undefined) {
        const at = this.#at(second)
        return this.#field(shapes, field, at, Math.abs(textLiteralAt(this.#syntax.text, at) ?? 1))
      }
      this.visit(second, nesting)
      return members(shapes)
    }
    if (first !== undefined && second !== undefined && ['_==_', '_!=_', '@in'].includes(name)) {
      this.#typeComparison(first, second, nesting)
      if (name !== '@in') this.#typeComparison(second, first, nesting)
    }
    if (first !== undefined && second !== undefined && COMPARISONS.has(name)) this.#times(first, second)
    const shapes = args.map((arg) => this.visit(arg, nesting))
    if (name === '_?_:_') return [...(shapes[1] ?? []), ...(shapes[2] ?? [])]
    return ANY
  }

  /** `time > timestamp('…')` never has a value: the times of an event are texts. */
  #times(first: Expr, second: Expr): void {
    const kinds = [this.#kindOf(first), this.#kindOf(second)]
    if (!kinds.includes('time') || !kinds.includes('text')) return
    const text = kinds[0] === 'text' ? first : second
    const message = 'A text cannot be compared with a time: write `timestamp(…)` around the text.'
    this.#report(message, this.#start(text), 1)
  }

  /** The start of a node's text. The parser gives the position of an operator's sign and of a field's dot. */
  #start(node: Expr): number {
    const within = childrenOf(node).map((child) => this.#start(child))
    return Math.min(this.#at(node), ...within)
  }

  /** `type == 'monitor.eror'` never holds. */
  #typeComparison(left: Expr, right: Expr, { bound }: Nesting): void {
    const path = pathOf(left, new Set(bound.keys()))
    if (path?.length !== 1 || path[0] !== 'type' || !this.#scope.hasEvent) return
    const texts = right.exprKind.case === 'listExpr' ? right.exprKind.value.elements : [right]
    for (const node of texts) {
      const value = textConstant(node)
      if (value === undefined) continue
      const types = this.#scope.types
      const at = this.#at(node)
      const length = Math.abs(textLiteralAt(this.#syntax.text, at) ?? 1)
      // An application may have its own types: only a name that is nearly a known one is a mistake.
      const known = isOwnEventType(value) ? undefined : nearestName(value, EVENT_TYPES)
      if (known !== undefined && types?.has(value) !== true) {
        this.#report(`There is no event type '${value}': did you mean '${known}'?`, at, length)
      } else if (types !== undefined && !types.has(value)) {
        this.#report(
          `Only events of ${list([...types])} are read here, and '${value}' is none of them: add it to \`on\`.`,
          at,
          length,
        )
      }
    }
  }

  #pattern(node: Expr | undefined): void {
    if (node === undefined) return
    const at = this.#at(node)
    const pattern = textConstant(node)
    if (pattern === undefined) {
      this.#report('`matches` takes a regular expression that is written as a text, in quotes.', at, 1)
      return
    }
    try {
      patternOf(pattern)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const length = Math.abs(textLiteralAt(this.#syntax.text, at) ?? 1)
      this.#report(`This is no regular expression in RE2 syntax: ${message}.`, at, length)
    }
  }

  #macro(node: Expr, fold: Expr_Comprehension, nesting: Nesting): readonly Shape[] {
    const { iterRange: range, iterVar, accuVar, loopStep, result } = fold
    if (nesting.macros >= MAX_MACROS) {
      this.#report(`Macros such as \`exists\` are at most ${MAX_MACROS} deep.`, this.#at(node), 1)
      return ANY
    }
    const shapes = range === undefined ? ANY : this.visit(range, nesting)
    const bound = new Map([...nesting.bound, [iterVar, members(shapes)], [accuVar, ANY]])
    const inner: Nesting = { ...nesting, bound, macros: nesting.macros + 1 }
    if (loopStep !== undefined) this.visit(loopStep, inner)
    if (result !== undefined) this.visit(result, inner)
    return this.#macroName(node) === 'filter' ? shapes : ANY
  }

  #macroName(node: Expr): string | undefined {
    const call = this.#syntax.macro(node)
    return call?.exprKind.case === 'callExpr' ? call.exprKind.value.function : undefined
  }

  #kindOf(node: Expr): Kind {
    const { exprKind: kind } = node
    switch (kind.case) {
      case 'identExpr':
        return this.#scope.hasEvent ? (FIELD_KINDS.get(kind.value.name) ?? 'any') : 'any'
      case 'constExpr':
        return CONSTANT_KINDS[kind.value.constantKind.case ?? 'nullValue'] ?? 'any'
      case 'selectExpr':
        return kind.value.testOnly ? 'bool' : 'any'
      case 'listExpr':
        return 'list'
      case 'structExpr':
        return 'map'
      case 'comprehensionExpr':
        return MACROS.get(this.#macroName(node) ?? '') ?? 'any'
      case 'callExpr': {
        const { function: name, target, args } = kind.value
        if (target !== undefined) return METHODS.get(name)?.result ?? 'any'
        if (name === '_?_:_') {
          const [, yes, no] = args
          const kinds = new Set([yes, no].map((arg) => (arg === undefined ? 'any' : this.#kindOf(arg))))
          return kinds.size === 1 ? ([...kinds][0] ?? 'any') : 'any'
        }
        return OPERATORS.get(name) ?? FUNCTIONS.get(name)?.result ?? 'any'
      }
      default:
        return 'any'
    }
  }

  #at(node: Expr): number {
    return this.#syntax.at(node)
  }

  #skip(offset: number): number {
    const { text } = this.#syntax
    let at = offset
    while (at < text.length && /\s/.test(text.charAt(at))) at++
    return at
  }

  /** The start of a call's name. The parser gives the position of a method's dot or bracket. */
  #callAt(node: Expr, name: string, isMethod: boolean): number {
    const { text } = this.#syntax
    const at = this.#at(node)
    if (text.startsWith(name, at)) return at
    const found = isMethod && text.charAt(at) === '(' ? text.lastIndexOf(name, at) : text.indexOf(name, at)
    return found === -1 ? at : found
  }

  /** The start of the last name within `has(…)`. The parser gives the position of `has`. */
  #lastWord(node: Expr, field: string): number {
    const kind = node.exprKind
    const operand = kind.case === 'selectExpr' ? kind.value.operand : undefined
    const from = operand === undefined ? this.#at(node) : this.#at(operand) + 1
    const found = this.#syntax.text.indexOf(field, from)
    return found === -1 ? this.#at(node) : found
  }

  #report(message: string, offset: number, length: number): void {
    this.problems.push({ message, offset, length })
  }
}

const CONSTANT_KINDS: Readonly<Record<string, Kind | undefined>> = {
  boolValue: 'bool',
  stringValue: 'text',
  int64Value: 'number',
  uint64Value: 'number',
  doubleValue: 'number',
  nullValue: 'null',
}

const COMPARISONS: ReadonlySet<string> = new Set(['_==_', '_!=_', '_<_', '_<=_', '_>_', '_>=_'])

/** Fields of each event that are of one kind. */
const FIELD_KINDS: ReadonlyMap<string, Kind> = new Map<string, Kind>([
  ['id', 'text'],
  ['source', 'text'],
  ['type', 'text'],
  ['time', 'text'],
  ['received', 'text'],
  ['via', 'text'],
  ['revision', 'number'],
  ['backfill', 'bool'],
])

/** Constants of other languages, in small letters. */
const CONSTANTS_ELSEWHERE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    undefined: 'null',
    nil: 'null',
    none: 'null',
    null: 'null',
    true: 'true',
    false: 'false',
  }),
)

/** Functions and methods of other languages, in small letters. */
const FUNCTIONS_ELSEWHERE: ReadonlyMap<string, string> = new Map(
  Object.entries({
    lower: '….lowerAscii()',
    tolower: '….lowerAscii()',
    tolowercase: '….lowerAscii()',
    upper: '….upperAscii()',
    toupper: '….upperAscii()',
    touppercase: '….upperAscii()',
    len: 'size(…)',
    length: 'size(…)',
    count: 'size(…)',
    includes: '….contains(…)',
    match: "….matches('…')",
    regex: "….matches('…')",
    search: "….matches('…')",
    test: "….matches('…')",
    any: '….exists(x, …)',
    some: '….exists(x, …)',
    every: '….all(x, …)',
    now: 'age(event)',
    date: 'timestamp(…)',
    number: 'double(…)',
    float: 'double(…)',
    str: 'string(…)',
    tostring: 'string(…)',
  }),
)

const KIND_NAMES: Readonly<Record<Kind, string>> = {
  bool: 'a boolean',
  text: 'a text',
  number: 'a number',
  list: 'a list',
  map: 'a map',
  null: 'null',
  time: 'a time',
  any: 'a value',
}

function isRecord(shape: Shape): shape is { readonly [field: string]: Shape } {
  return typeof shape === 'object' && !Array.isArray(shape)
}

function fieldsOf(shapes: readonly Shape[]): readonly string[] {
  return [...new Set(shapes.filter(isRecord).flatMap((shape) => Object.keys(shape)))].toSorted()
}

/** The shapes of the members of a list, or of the keys of a map. */
function members(shapes: readonly Shape[]): readonly Shape[] {
  const found = shapes.flatMap((shape): readonly Shape[] =>
    Array.isArray(shape) ? shape : shape === 'value' ? [] : ['any'],
  )
  return found.length > 0 ? found : ANY
}

/** Names for a message, at most 12 of them. */
function list(names: readonly string[]): string {
  const shown = names.slice(0, 12).map((name) => `\`${name}\``)
  const more = names.length - shown.length
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ')
}
