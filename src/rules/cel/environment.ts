import {
  celEnv,
  celFunc,
  celList,
  celMethod,
  CelScalar,
  celUint,
  isCelList,
  isCelMap,
  listType,
  type CelEnv,
  type CelFunc,
  type CelInput,
  type CelList,
  type CelValue,
} from '@bufbuild/cel'
import { isObject } from '../../protocol/json.ts'
import { fieldOf, namesOf, originOf, sourceOf } from './json-value.ts'
import { basesOf, confidenceOf, cut, domainsOf, isQuoted, outputOf, contentText, urlsOf } from './output.ts'
import { counted } from './costs.ts'
import { patternOf } from './pattern.ts'
import { currentView, MISSING, type View } from './view.ts'
import { spend, STEP, VALUE } from './work.ts'

const { BOOL, DOUBLE, DYN, INT, STRING, UINT } = CelScalar
const LIST = listType(DYN)

/** Maximum length of a text that an expression makes, in characters. */
const MAX_MADE = 1024 * 1024

/** Maximum number of members that one evaluation visits, in all its macros together. */
const MAX_MEMBERS = 1_000

/** Maximum number of parts that `split` makes. */
const MAX_SPLIT = 10_000

/** The work of a regular expression for one character. */
const PATTERN_CHARACTER = 12

/** Functions that only rewritten expressions call. No name of a user can begin with `@`. */
export const BOUNDED = '@bounded'
export const NEW_LIST = '@list'
export const APPEND = '@append'

/** How many members the macros of this evaluation have visited. */
let visited = 0

/** Called before an evaluation. */
export function resetMembers(): void {
  visited = 0
}

/** An error takes some microseconds. */
const THROWN = 15_000

function missing(what: string): Error {
  spend(THROWN)
  return new Error(MISSING + what)
}

function event(): View {
  const view = currentView()
  if (view === undefined) throw missing('event')
  return view
}

function defaultOutput(): unknown {
  const output = outputOf(event())
  if (output == null) throw missing('data.output')
  return output
}

const textIn = (json: unknown): string => once(contentText, json)
const domainsIn = (json: unknown): readonly string[] => once(domainsOf, json)

/** Computes a value once for an event. */
function once<Out>(compute: (json: unknown, view: View | undefined) => Out, json: unknown): Out {
  const view = currentView()
  if (view === undefined) return compute(json, undefined)
  view.share(outputOf(view))
  return view.once(compute, json)
}

function confidence(output: unknown, field: string): string {
  const level = confidenceOf(basesOf(output, field))
  if (level === undefined) throw missing(`the confidence of ${field}`)
  return level
}

function quoted(output: unknown, field: string): boolean {
  const content = isObject(output) ? output['content'] : undefined
  const value = isObject(content) ? (Object.hasOwn(content, field) ? content[field] : undefined) : content
  if (value == null) throw missing(`data.output.content.${field}`)
  const bases = basesOf(output, field)
  const members = Array.isArray(value) ? value.slice(0, 100) : [value]
  return members.length > 0 && members.every((member) => isQuoted(bases, contentText(member, undefined)))
}

function age(): number {
  const { time, received } = event().event
  const seconds = time === null ? Number.NaN : (Date.parse(received) - Date.parse(time)) / 1_000
  if (Number.isNaN(seconds)) throw missing('time')
  return seconds
}

/** The functions of this field. */
const OWN: readonly CelFunc[] = [
  celFunc('text', [], STRING, () => textIn(defaultOutput())),
  celFunc('text', [DYN], STRING, (value) => textIn(sourceOf(value))),
  celFunc('domains', [], LIST, () => domainsIn(defaultOutput())),
  celFunc('domains', [DYN], LIST, (value) => domainsIn(sourceOf(value))),
  celFunc('hosts', [], INT, () => BigInt(domainsIn(defaultOutput()).length)),
  celFunc('hosts', [DYN], INT, (value) => BigInt(domainsIn(sourceOf(value)).length)),
  celFunc('confidence', [STRING], STRING, (field) => confidence(defaultOutput(), field)),
  celFunc('confidence', [DYN, STRING], STRING, (output, field) => confidence(sourceOf(output), field)),
  celFunc('citations', [STRING], LIST, (field) => urlsOf(basesOf(defaultOutput(), field))),
  celFunc('citations', [DYN, STRING], LIST, (output, field) => urlsOf(basesOf(sourceOf(output), field))),
  celFunc('quoted', [STRING], BOOL, (field) => quoted(defaultOutput(), field)),
  celFunc('quoted', [DYN, STRING], BOOL, (output, field) => quoted(sourceOf(output), field)),
  celFunc('age', [], DOUBLE, age),
  celFunc(BOUNDED, [DYN, INT], DYN, bounded),
  celFunc(NEW_LIST, [], LIST, () => {
    const members: CelInput[] = []
    const list = celList(members)
    GROWING.set(list, members)
    return list
  }),
  celFunc(APPEND, [LIST, DYN], LIST, (growing, member) => {
    GROWING.get(growing)?.push(member)
    return growing
  }),
]

/**
 * The members of lists that `map` and `filter` make. The library joins a list and a list of one member for each member, which is then read
 * recursively, once for each member. Only the macro has such a list before it is complete, so that it can grow in place.
 */
const GROWING = new WeakMap<CelList, CelInput[]>()

/** The range of a macro, after its members were counted. `steps` is the size of the expression that the macro evaluates for each member. */
function bounded(range: CelValue, steps: bigint): CelValue {
  if (!isCelList(range) && !isCelMap(range)) return range
  visited += range.size
  if (visited > MAX_MEMBERS) throw new Error(`more than ${MAX_MEMBERS} members are visited`)
  spend(STEP * range.size * Number(steps))
  return range
}

/** The library's own comparison, for everything but lists and maps. */
const LIBRARY_EQUALS = celEnv().funcs.find('_==_')

/** Equality as CEL has it, with a bound. JSON is compared as it is, however deep. */
function equals(left: CelValue, right: CelValue): boolean {
  spend(VALUE + comparedCharacters(left, right))
  const leftJson = originOf(left)
  const rightJson = originOf(right)
  if (leftJson !== undefined && rightJson !== undefined) return equalJson(leftJson, rightJson)
  if (isCelList(left) && isCelList(right)) {
    if (left.size !== right.size) return false
    for (let index = 0; index < left.size; index++) {
      const [a, b] = [left.get(index), right.get(index)]
      if (a === undefined || b === undefined || !equals(a, b)) return false
    }
    return true
  }
  if (isCelMap(left) && isCelMap(right)) {
    if (left.size !== right.size) return false
    for (const [name, value] of left) {
      const other = right.get(name)
      if (other === undefined || !equals(value, other)) return false
    }
    return true
  }
  return LIBRARY_EQUALS?.call(0, undefined, [left, right]) === true
}

function equalJson(left: unknown, right: unknown): boolean {
  const waiting: unknown[] = [left, right]
  while (waiting.length > 0) {
    const b = waiting.pop()
    const a = waiting.pop()
    spend(VALUE + comparedCharacters(a, b))
    if (a === b) continue
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
    if (Array.isArray(a) !== Array.isArray(b)) return false
    if (Array.isArray(a) && Array.isArray(b)) {
      if (a.length !== b.length) return false
      spend(VALUE * a.length)
      for (let index = 0; index < a.length; index++) waiting.push(a[index], b[index])
      continue
    }
    const names = namesOf(a)
    spend(3 * VALUE * names.length)
    if (names.length !== namesOf(b).length) return false
    for (const name of names) {
      const other = fieldOf(b, name)
      if (other === undefined) return false
      waiting.push(fieldOf(a, name), other)
    }
  }
  return true
}

/** How many characters are compared: texts of different lengths differ at once. */
function comparedCharacters(left: unknown, right: unknown): number {
  return typeof left === 'string' && typeof right === 'string' && left.length === right.length
    ? left.length
    : 0
}

function isIn(value: CelValue, members: CelList): boolean {
  const json = originOf(members)
  const plain = typeof value === 'bigint' ? Number(value) : value
  spend(members.size * (VALUE + (typeof plain === 'string' ? plain.length : 0)))
  if (Array.isArray(json) && (typeof plain !== 'object' || plain === null) && !Number.isNaN(plain)) {
    return json.includes(plain)
  }
  for (const member of members) if (equals(member, value)) return true
  return false
}

/** The functions of CEL that need a bound. */
const BOUND: readonly CelFunc[] = [
  celFunc('_==_', [DYN, DYN], BOOL, equals),
  celFunc('_!=_', [DYN, DYN], BOOL, (left, right) => !equals(left, right)),
  celFunc('@in', [DYN, LIST], BOOL, isIn),
  celFunc('int', [STRING], INT, (value) => whole(value, 'int', -(2n ** 63n), 2n ** 63n - 1n)),
  celFunc('uint', [STRING], UINT, (value) => celUint(whole(value, 'uint', 0n, 2n ** 64n - 1n))),
]

/** The number that the text is. A long text would take long. */
function whole(value: string, type: string, least: bigint, most: bigint): bigint {
  if (!/^[+-]?\d{1,20}$/.test(value)) throw new Error(`the text is no ${type}`)
  const number = BigInt(value.replace('+', ''))
  if (number < least || number > most) throw new Error(`the number is too large for ${type}`)
  return number
}

/**
 * Arithmetic between an integer and a double. Numbers of JSON are doubles and numbers in an expression are integers: CEL has no
 * value for `data.count + 1`, and here it is a double. Operations that have a value in CEL keep it.
 */
const MIXED: readonly CelFunc[] = [
  mixed('_+_', (a, b) => a + b),
  mixed('_-_', (a, b) => a - b),
  mixed('_*_', (a, b) => a * b),
  mixed('_/_', (a, b) => a / b),
  mixed('_%_', remainder),
  [celFunc('_%_', [DOUBLE, DOUBLE], DOUBLE, remainder)],
].flat()

function mixed(name: string, compute: (a: number, b: number) => number): readonly CelFunc[] {
  return [
    celFunc(name, [DOUBLE, INT], DOUBLE, (a, b) => compute(a, Number(b))),
    celFunc(name, [INT, DOUBLE], DOUBLE, (a, b) => compute(Number(a), b)),
  ]
}

function remainder(a: number, b: number): number {
  if (!Number.isInteger(a) || !Number.isInteger(b)) throw new Error('% takes whole numbers')
  if (b === 0) throw new Error('modulus by zero')
  return a % b
}

/** Maximum number of replacements of `replace`. */
const MAX_PARTS = 10_000

/** Functions of texts from CEL and from its extension for texts, with bounds. */
const TEXTS: readonly CelFunc[] = [
  celFunc('_+_', [STRING, STRING], STRING, (a, b) => made(a.length + b.length, () => a + b)),
  celFunc('size', [STRING], INT, characters),
  celMethod('size', STRING, [], INT, function () {
    return characters(this)
  }),
  celMethod('lowerAscii', STRING, [], STRING, function () {
    return once(lower, this)
  }),
  celMethod('upperAscii', STRING, [], STRING, function () {
    return once(upper, this)
  }),
  celMethod('trim', STRING, [], STRING, function () {
    return this.trim()
  }),
  celMethod('indexOf', STRING, [STRING], INT, function (part) {
    return BigInt(this.indexOf(part))
  }),
  celMethod('lastIndexOf', STRING, [STRING], INT, function (part) {
    return BigInt(this.lastIndexOf(part))
  }),
  celMethod('substring', STRING, [INT], STRING, function (start) {
    return slice(this, start, BigInt(this.length))
  }),
  celMethod('substring', STRING, [INT, INT], STRING, function (start, end) {
    return slice(this, start, end)
  }),
  celMethod('replace', STRING, [STRING, STRING], STRING, function (from, to) {
    const parts = this.split(from, MAX_PARTS + 1)
    if (parts.length > MAX_PARTS) throw new Error(`replace finds more than ${MAX_PARTS} places`)
    return made(this.length + (parts.length - 1) * (to.length - from.length), () => parts.join(to))
  }),
  celMethod('split', STRING, [STRING], LIST, function (separator) {
    const parts = this.split(separator, MAX_SPLIT + 1)
    if (parts.length > MAX_SPLIT) throw new Error(`split makes more than ${MAX_SPLIT} parts`)
    return parts
  }),
  celMethod('join', LIST, [], STRING, function () {
    return join(this, '')
  }),
  celMethod('join', LIST, [STRING], STRING, function (separator) {
    return join(this, separator)
  }),
]

const lower = (value: unknown): string => inCase(String(value), 'A', 'Z')
const upper = (value: unknown): string => inCase(String(value), 'a', 'z')

/** The text with these letters of ASCII in the other case. At most 256 kB of it. */
function inCase(value: string, first: string, last: string): string {
  const given = cut(value, currentView())
  spend(4 * given.length)
  const units = Buffer.from(given, 'utf16le')
  const [least, most] = [first.charCodeAt(0), last.charCodeAt(0)]
  for (let at = 0; at < units.length; at += 2) {
    const low = units[at] ?? 0
    if (low >= least && low <= most && units[at + 1] === 0) units[at] = low ^ 0x20
  }
  return units.toString('utf16le')
}

/** How many characters the text has, as Unicode code points. */
function characters(value: string): bigint {
  let pairs = 0
  for (let index = 0; index < value.length; index++) {
    const unit = value.charCodeAt(index)
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = value.charCodeAt(index + 1)
    if (next >= 0xdc00 && next <= 0xdfff) pairs++
  }
  return BigInt(value.length - pairs)
}

function slice(value: string, start: bigint, end: bigint): string {
  if (start < 0n || end < start || end > BigInt(value.length)) throw new Error('substring is out of the text')
  return value.slice(Number(start), Number(end))
}

function join(list: CelList, separator: string): string {
  const parts: string[] = []
  let length = 0
  for (const member of list) {
    if (typeof member !== 'string') throw new Error('join takes a list of texts')
    length += member.length + separator.length
    parts.push(made(length, () => member))
  }
  return parts.join(separator)
}

/** The text, if it is not longer than an expression may make one. */
function made(length: number, make: () => string): string {
  if (length > MAX_MADE) throw new Error(`a text of more than ${MAX_MADE} characters is made`)
  return make()
}

/** Regular expressions: compiled once; over 256 kB of a text. */
const RE2 = {
  compile: (text: string) => ({
    test: (value: string): boolean => {
      const searched = cut(value, currentView())
      const pattern = patternOf(text)
      spend(PATTERN_CHARACTER * searched.length * pattern.cost)
      return pattern.test(searched)
    },
  }),
}

/** The environment in which expressions are planned. */
export const ENVIRONMENT: CelEnv = counted(
  celEnv({ funcs: [...OWN, ...MIXED, ...TEXTS, ...BOUND], re2: RE2 }),
)
