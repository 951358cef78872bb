import {
  celEnv,
  celFunc,
  celMethod,
  CelScalar,
  isCelList,
  isCelMap,
  listType,
  type CelEnv,
  type CelFunc,
  type CelList,
  type CelValue,
} from '@bufbuild/cel'
import { isObject } from '../../protocol/event.ts'
import { sourceOf } from './json-value.ts'
import {
  basesOf,
  confidenceOf,
  cut,
  domainsOf,
  isQuoted,
  MAX_TEXT,
  outputOf,
  textOf,
  urlsOf,
} from './output.ts'
import { patternOf } from './pattern.ts'
import { currentView, MISSING, type View } from './view.ts'

const { BOOL, DOUBLE, DYN, INT, STRING } = CelScalar
const LIST = listType(DYN)

/** Maximum length of a text that an expression makes, in characters. */
const MAX_MADE = 1024 * 1024

/** Maximum number of members that one evaluation visits, in all its macros together. */
export const MAX_MEMBERS = 10_000

/** The name of the function around what a macro goes through. No name of a user can begin with `@`. */
export const BOUNDED = '@bounded'

/** What one evaluation has used of its bounds. Begins anew with each. */
const used = { members: 0, text: 0 }

/** Begins the bounds anew, before an evaluation. */
export function resetBounds(): void {
  used.members = 0
  used.text = 0
}

function event(): View {
  const view = currentView()
  if (view === undefined) throw new Error(`${MISSING}event`)
  return view
}

function defaultOutput(): unknown {
  const output = outputOf(event())
  if (output == null) throw new Error(`${MISSING}data.output`)
  return output
}

const text = (json: unknown): string => currentView()?.once(textOf, json) ?? textOf(json, undefined)
const domains = (json: unknown): readonly string[] => currentView()?.once(domainsOf, json) ?? domainsOf(json)

function confidence(output: unknown, field: string): string {
  const level = confidenceOf(basesOf(output, field))
  if (level === undefined) throw new Error(`${MISSING}the confidence of ${field}`)
  return level
}

function quoted(output: unknown, field: string): boolean {
  const content = isObject(output) ? output['content'] : undefined
  const value = isObject(content) ? (Object.hasOwn(content, field) ? content[field] : undefined) : content
  if (value == null) throw new Error(`${MISSING}data.output.content.${field}`)
  const bases = basesOf(output, field)
  const members = Array.isArray(value) ? value.slice(0, 100) : [value]
  return members.length > 0 && members.every((member) => isQuoted(bases, textOf(member, undefined)))
}

function age(): number {
  const { time, received } = event().event
  const seconds = time === null ? Number.NaN : (Date.parse(received) - Date.parse(time)) / 1_000
  if (Number.isNaN(seconds)) throw new Error(`${MISSING}time`)
  return seconds
}

/** The functions of this field. */
const OWN: readonly CelFunc[] = [
  celFunc('text', [], STRING, () => text(defaultOutput())),
  celFunc('text', [DYN], STRING, (value) => text(sourceOf(value))),
  celFunc('domains', [], LIST, () => domains(defaultOutput())),
  celFunc('domains', [DYN], LIST, (value) => domains(sourceOf(value))),
  celFunc('hosts', [], INT, () => BigInt(domains(defaultOutput()).length)),
  celFunc('hosts', [DYN], INT, (value) => BigInt(domains(sourceOf(value)).length)),
  celFunc('confidence', [STRING], STRING, (field) => confidence(defaultOutput(), field)),
  celFunc('confidence', [DYN, STRING], STRING, (output, field) => confidence(sourceOf(output), field)),
  celFunc('citations', [STRING], LIST, (field) => urlsOf(basesOf(defaultOutput(), field))),
  celFunc('citations', [DYN, STRING], LIST, (output, field) => urlsOf(basesOf(sourceOf(output), field))),
  celFunc('quoted', [STRING], BOOL, (field) => quoted(defaultOutput(), field)),
  celFunc('quoted', [DYN, STRING], BOOL, (output, field) => quoted(sourceOf(output), field)),
  celFunc('age', [], DOUBLE, age),
  celFunc(BOUNDED, [DYN], DYN, bounded),
]

function bounded(range: CelValue): CelValue {
  if (isCelList(range) || isCelMap(range)) used.members += range.size
  if (used.members > MAX_MEMBERS) throw new Error(`more than ${MAX_MEMBERS} members are visited`)
  return range
}

/**
 * Arithmetic between an integer and a double. Numbers of JSON are doubles and numbers in an expression are integers: CEL has no
 * value for `data.count + 1`, and here it is a double. What CEL gives a value to keeps that value.
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

/** Functions of texts, those of CEL and of its extension for texts, with bounds. */
const TEXTS: readonly CelFunc[] = [
  celFunc('_+_', [STRING, STRING], STRING, (a, b) => made(a.length + b.length, () => a + b)),
  celFunc('size', [STRING], INT, characters),
  celMethod('size', STRING, [], INT, function () {
    return characters(this)
  }),
  celMethod('lowerAscii', STRING, [], STRING, function () {
    return this.replace(/[A-Z]+/g, (part) => part.toLowerCase())
  }),
  celMethod('upperAscii', STRING, [], STRING, function () {
    return this.replace(/[a-z]+/g, (part) => part.toUpperCase())
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
    const parts = this.split(from)
    return made(this.length + (parts.length - 1) * (to.length - from.length), () => parts.join(to))
  }),
  celMethod('split', STRING, [STRING], LIST, function (separator) {
    const parts = this.split(separator, MAX_MEMBERS + 1)
    if (parts.length > MAX_MEMBERS) throw new Error(`split makes more than ${MAX_MEMBERS} parts`)
    return parts
  }),
  celMethod('join', LIST, [], STRING, function () {
    return join(this, '')
  }),
  celMethod('join', LIST, [STRING], STRING, function (separator) {
    return join(this, separator)
  }),
]

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

/** Regular expressions: compiled once; over 256 kB of a text, and over 1 MB of texts in one evaluation. */
const RE2 = {
  compile: (pattern: string) => ({
    test: (value: string): boolean => {
      const searched = cut(value, currentView())
      used.text += searched.length
      if (used.text > 4 * MAX_TEXT) throw new Error('regular expressions read more than 1 MB')
      return patternOf(pattern).test(searched)
    },
  }),
}

/** What expressions are planned with. */
export const ENVIRONMENT: CelEnv = celEnv({ funcs: [...OWN, ...MIXED, ...TEXTS], re2: RE2 })
