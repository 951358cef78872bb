import { isAlias, isMap, isNode, isScalar, isSeq, Lexer, LineCounter, parseDocument } from 'yaml'
import type { Alias, Document, Node, Scalar, YAMLMap } from 'yaml'
import type { RuleProblem } from './problem.ts'
import { displayValue } from './display-value.ts'
import { positionInScalar } from './scalar-offset.ts'
import { pathText } from './source.ts'
import type { Path, Place, Source, Within } from './source.ts'

/** The largest rule file, in bytes of UTF-8. */
export const MAX_FILE_BYTES = 1_048_576
/** The deepest nesting. A rule needs 7 levels. */
const MAX_DEPTH = 16
/** How many values aliases may repeat, so that a short file cannot become a large one. */
const MAX_ALIASED_VALUES = 20_000
/** The most problems of syntax that are reported, since the first ones often cause the others. */
const MAX_SYNTAX_PROBLEMS = 20
const TOO_DEEP = 'This is nested too deeply: a rule needs 7 levels.'
/** The most properties of one object. */
const MAX_PROPERTIES = 200

/** Reads a YAML text. It adds to `problems`, and returns undefined if there is nothing to check. */
export function yamlSource(given: string, file: string | null, problems: RuleProblem[]): Source | undefined {
  const text = given.startsWith('\uFEFF') ? given.slice(1) : given
  const atLine = (line: number, column: number, message: string, path = '') =>
    problems.push({ file, line, column, path, rule: null, message })
  if (Buffer.byteLength(text) > MAX_FILE_BYTES) {
    atLine(1, 1, `The file has more than ${MAX_FILE_BYTES} bytes: split it into several files.`)
    return undefined
  }

  const lines = new LineCounter()
  const positionOf = (offset: number): { readonly line: number; readonly column: number } => {
    const { line, col } = lines.linePos(offset)
    // The counter returns line 0 for an empty text.
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const complain = (offset: number, message: string, path: Path = []) => {
    const { line, column } = positionOf(offset)
    atLine(line, column, message, pathText(path))
  }
  // oxlint-disable-next-line no-control-regex
  const control = text.search(/[\u0000-\u0008\u000B\u000C\u000E-\u001F]/)
  if (control !== -1) {
    addLines(text, lines)
    complain(control, 'The file has a control character and is no text: write YAML in UTF-8.')
    return undefined
  }
  const deep = tooDeepAt(text)
  if (deep !== undefined) {
    addLines(text, lines)
    complain(deep, TOO_DEEP)
    return undefined
  }
  const document = parsed(text, lines)
  if (document === undefined) {
    atLine(1, 1, TOO_DEEP)
    return undefined
  }
  let last = 0
  for (const { pos, message } of [...document.errors, ...document.warnings].slice(0, MAX_SYNTAX_PROBLEMS)) {
    const { line } = positionOf(pos[0])
    // The first one of a line causes the others.
    if (line !== last)
      complain(pos[0], `This is not valid YAML: ${message.replace(/\.$/, '')}${hintFor(message)}.`)
    last = line
  }
  if (document.errors.length > 0) return undefined
  if (document.contents === null || (isScalar(document.contents) && document.contents.value === null)) {
    complain(0, 'The file is empty: write version: 1, and rules.')
    return undefined
  }

  const reader = new PlainReader(complain)
  const content = reader.read(document.contents, [], 0)
  const place = (path: Path, at?: Within): Place =>
    positionOf(offsetOf({ text, contents: document.contents, targets: reader.targets }, path, at))
  return { file, content, needsUnits: true, place }
}

/** A hint at the most frequent cause of this syntax problem. */
function hintFor(message: string): string {
  if (/at node end|[Ff]low/.test(message)) return '; text that has [ ] { } , # or : needs quotes around it'
  return /Nested mappings|Implicit keys/.test(message)
    ? '; check the indentation, and put text that has a colon into quotes'
    : ''
}

/** Undefined if it is nested too deeply: the parser calls itself for each level. */
function parsed(text: string, lineCounter: LineCounter): Document.Parsed | undefined {
  try {
    // `schema` and `merge` are set, since a `%YAML 1.1` directive would change them. Repeated keys are found by `PlainReader`,
    // since the parser compares each key with each other one.
    const document = parseDocument(text, {
      lineCounter,
      prettyErrors: false,
      schema: 'core',
      merge: false,
      uniqueKeys: false,
      logLevel: 'error',
    })
    // It reports some of these errors as problems of the text.
    return document.errors.some(({ message }) => /call stack|stack overflow/i.test(message))
      ? undefined
      : document
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** The lexer marks parts with control characters, which the text does not have. */
const LEXER_MARKS: ReadonlySet<string> = new Set(['\u0002', '\u0018', '\u001F', '\uFEFF'])

/** The position at which brackets, or the dashes of a line, are too deep. */
function tooDeepAt(text: string): number | undefined {
  let offset = 0
  let brackets = 0
  let dashes = 0
  for (const token of new Lexer().lex(text)) {
    if (token === '[' || token === '{') brackets++
    else if (token === ']' || token === '}') brackets--
    else if (token === '-' || token === '?') dashes++
    else if (token.startsWith('\n') || token.startsWith('\r')) dashes = 0
    if (brackets > MAX_DEPTH || dashes > MAX_DEPTH) return offset
    if (!LEXER_MARKS.has(token)) offset += token.length
  }
  return undefined
}

function addLines(text: string, lines: LineCounter): void {
  lines.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1)
}

/** Turns the nodes of a document into plain values. It bounds them before they are created. */
class PlainReader {
  readonly #complain: (offset: number, message: string, path: Path) => void
  /** The nodes of aliases. The package's own look-up walks through the whole document for each alias. */
  readonly targets = new Map<Alias, Node>()
  readonly #anchors = new Map<string, Node>()
  /** How many values came from aliases. */
  #aliased = 0

  constructor(complain: (offset: number, message: string, path: Path) => void) {
    this.#complain = complain
  }

  /** @param aliases How many aliases lead to this node. */
  read(node: unknown, path: Path, aliases: number): unknown {
    if (isAlias(node)) {
      if (aliases === 0) this.#resolve(node)
      const target = this.targets.get(node)
      if (target === undefined)
        return this.#refuse(
          node,
          `There is no anchor &${node.source} before this alias: write the value.`,
          path,
        )
      // An alias of a node that contains it ends here, too.
      if (aliases > MAX_DEPTH)
        return this.#refuse(node, 'This alias repeats too much: write the values.', path)
      return this.read(target, path, aliases + 1)
    }
    if (aliases === 0 && isNode(node) && node.anchor !== undefined) this.#anchors.set(node.anchor, node)
    if (aliases > 0 && ++this.#aliased > MAX_ALIASED_VALUES) {
      // One problem is enough.
      if (this.#aliased > MAX_ALIASED_VALUES + 1) return null
      return this.#refuse(
        node,
        `Aliases repeat more than ${MAX_ALIASED_VALUES} values: use fewer of them.`,
        path,
      )
    }
    if (isScalar(node)) return this.#scalar(node, path)
    if (path.length > MAX_DEPTH) return this.#refuse(node, TOO_DEEP, path)
    if (isSeq(node)) return node.items.map((item, index) => this.read(item, [...path, index], aliases))
    return isMap(node) ? this.#map(node, path, aliases) : null
  }

  /** An alias means the last anchor before it, even if another alias repeats it. */
  #resolve(alias: Alias): void {
    const target = this.#anchors.get(alias.source)
    if (target !== undefined) this.targets.set(alias, target)
  }

  #map(node: YAMLMap, path: Path, aliases: number): unknown {
    if (node.items.length > MAX_PROPERTIES)
      return this.#refuse(
        node,
        `This has ${node.items.length} properties: use at most ${MAX_PROPERTIES}.`,
        path,
      )
    const plain: Record<string, unknown> = {}
    for (const { key, value } of node.items) {
      const name = isScalar(key) ? key.value : undefined
      if (typeof name !== 'string')
        this.#refuse(key ?? value, 'The name of a property must be text: put it into quotes.', path)
      else if (name === '__proto__') this.#refuse(key, '__proto__ cannot be a name: use another one.', path)
      else if (Object.hasOwn(plain, name))
        this.#refuse(key, `${displayValue(name)} stands here twice: remove one of the two.`, [...path, name])
      else plain[name] = this.read(value, [...path, name], aliases)
    }
    return plain
  }

  #scalar(node: Scalar, path: Path): unknown {
    const { value } = node
    if (
      value === null ||
      typeof value === 'string' ||
      typeof value === 'number' ||
      typeof value === 'boolean'
    )
      return value
    return this.#refuse(
      node,
      'This kind of value has no use in a rule: write text, a number, true or false.',
      path,
    )
  }

  #refuse(node: unknown, message: string, path: Path): null {
    this.#complain(startOf(node) ?? 0, message, path)
    return null
  }
}

type Targets = ReadonlyMap<unknown, Node>

interface ReadDocument {
  readonly text: string
  readonly contents: Node | null
  readonly targets: Targets
}

/** The start of a value: an offset in the text. For a value that does not exist, the position of the nearest value around it. */
function offsetOf({ text, contents, targets }: ReadDocument, path: Path, at: Within | undefined): number {
  let node: unknown = resolved(contents, targets)
  let start = startOf(node) ?? 0
  for (const part of path) {
    const found = entryOf(node, part)
    if (found === undefined) return start
    node = resolved(found.value, targets)
    start = startOf(node) ?? startOf(found.key) ?? start
  }
  if (at === undefined) return start
  if ('name' in at) return startOf(entryOf(node, at.name)?.key) ?? start
  return isScalar(node) ? positionInScalar(text, node, at.offset) : start
}

interface Entry {
  readonly key: unknown
  readonly value: unknown
}

function entryOf(node: unknown, part: string | number): Entry | undefined {
  if (isSeq(node) && typeof part === 'number') return { key: undefined, value: node.items[part] }
  if (!isMap(node)) return undefined
  return node.items.find(({ key }) => isScalar(key) && key.value === part)
}

function resolved(node: unknown, targets: Targets): unknown {
  let target: unknown = node
  for (let depth = 0; isAlias(target) && depth <= MAX_DEPTH; depth++) target = targets.get(target)
  return target
}

function startOf(node: unknown): number | undefined {
  return isNode(node) ? node.range?.[0] : undefined
}
