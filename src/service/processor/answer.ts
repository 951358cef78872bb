import { bounded } from './bounded.ts'
import { isFormat } from './format.ts'
import type { Evidence } from './judge.ts'
import { literal } from './literal.ts'
import type { FieldSpec } from './schema.ts'
import { stem } from '../corpus/stems.ts'
import { words } from '../corpus/terms.ts'
import { isAddress, type Unit } from './units.ts'
import type { Question } from './vocabulary.ts'

/** A value and its evidence. */
export interface Answer {
  readonly value: unknown
  readonly evidence: readonly Evidence[]
}

/** Maximum number of items of a list, unless the schema has a lower limit. */
const MAX_ITEMS = 10
/** Items of a list score at least this fraction of the best one. */
const COMPARABLE = 0.75
/** Maximum time for a regular expression of the request to search the evidence of a field, in ms of real time. */
const MAX_PATTERN_TIME = 250
/** Minimum coverage of a statement that answers a boolean field. */
const STATEMENT_COVERAGE = 0.75

/** Takes the value of a field from the best suitable evidence; undefined if there is none. */
export function takeAnswer(
  spec: FieldSpec,
  evidence: readonly Evidence[],
  question: Question,
): Answer | undefined {
  const found = takeFirst(spec, evidence, question)
  if (found !== undefined) return found
  for (const alternative of spec.alternatives) {
    const other = takeFirst(alternative, evidence, question)
    if (other !== undefined) return other
  }
  return undefined
}

function takeFirst(spec: FieldSpec, evidence: readonly Evidence[], question: Question): Answer | undefined {
  if (spec.kind === 'array') return takeList(spec, evidence, question)
  if (spec.kind === 'null' || spec.kind === 'object') return undefined
  if (spec.allowed !== undefined) return takeAllowed(choicesOf(spec.allowed), evidence)
  if (spec.kind === 'boolean') return takeStatement(evidence)
  const take = () => takeText(spec, evidence, question)
  if (spec.pattern === undefined) return take()
  try {
    return bounded(MAX_PATTERN_TIME, take)
  } catch {
    // The pattern backtracks without end, or is no regular expression.
    return undefined
  }
}

function takeText(spec: FieldSpec, evidence: readonly Evidence[], question: Question): Answer | undefined {
  for (const candidate of evidence) {
    const value = takeValue(spec, candidate, question)
    if (value !== undefined) return { value, evidence: [candidate] }
  }
  return undefined
}

/** The value of a field without an answer; undefined if it is omitted, or if its schema allows no empty value. */
export function emptyAnswer(spec: FieldSpec): unknown {
  if (spec.nullable || spec.kind === 'null') return null
  for (const one of [spec, ...spec.alternatives]) {
    // The schema leaves no choice, so nothing is invented.
    if (one.required && one.sole !== undefined) return one.sole.value
    if (one.kind === 'array' && one.minItems === 0 && one.allowed === undefined) return []
    const isFree = one.allowed === undefined && one.format === undefined && one.pattern === undefined
    if (one.kind === 'string' && isFree && one.minLength === 0) return ''
  }
  return undefined
}

const NUMBER = /(?<![\p{L}\p{N}.,-])[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\p{L}\p{N}.,])[-−]?\d+(?:\.\d+)?/gu
/** Patterns of string formats (`format`). */
const FORMS: Readonly<Record<string, RegExp>> = {
  date: /\b\d{4}-\d{2}-\d{2}\b/g,
  'date-time': /\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})/g,
  email: /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g,
  uri: /\bhttps?:\/\/[^\s<>()[\]"'`]+/g,
}

function takeValue(spec: FieldSpec, { unit }: Evidence, question: Question): string | number | undefined {
  if (spec.kind === 'number' || spec.kind === 'integer') {
    return nearest(unit.text, NUMBER, question)
      .map((text) => Number(text.replaceAll(',', '').replace('−', '-')))
      .find((value) => fitsNumber(spec, value))
  }
  const texts = textsFor(spec, unit, question)
  const pattern = spec.pattern === undefined ? undefined : new RegExp(spec.pattern, 'u')
  return texts.find((text) => {
    // JSON Schema counts code points.
    const length =
      text.length <= spec.minLength || text.length >= spec.maxLength ? [...text].length : text.length
    if (length < spec.minLength || length > spec.maxLength) return false
    if (spec.format !== undefined && !isFormat(spec.format, text)) return false
    return pattern?.test(text) ?? true
  })
}

function fitsNumber(spec: FieldSpec, value: number): boolean {
  if (spec.kind === 'integer' && !Number.isSafeInteger(value)) return false
  if (spec.multipleOf !== undefined && !Number.isInteger(value / spec.multipleOf)) return false
  const isInside = value >= spec.minimum && value <= spec.maximum
  return isInside && value > spec.exclusiveMinimum && value < spec.exclusiveMaximum
}

/** The texts of a unit that may be the value of a string field, best first. */
function textsFor(spec: FieldSpec, unit: Unit, question: Question): readonly string[] {
  const { format, pattern } = spec
  const form = FORMS[format ?? '']
  if (form !== undefined) return nearest(unit.text, form, question)
  if (isMereAddress(unit, question)) return []
  if (format === undefined && pattern === undefined) return [unit.text]
  if (format !== undefined)
    return [unit.text, ...nearest(unit.text, /[^\s"'`()<>]+[^\s"'`()<>.,;:]/gu, question)]
  // What the pattern matches within the text, since an anchored pattern is for the value alone.
  const inner = (pattern ?? '').replace(/^\^/, '').replace(/\$$/, '')
  return [unit.text, ...nearest(unit.text, new RegExp(inner, 'gu'), question)]
}

/** Whether a unit is only a URL, and the question does not ask for one. */
export function isMereAddress(unit: Unit, { terms }: Question): boolean {
  return isAddress(unit) && !terms.some(({ answer }) => answer?.test(unit.text))
}

/** The matches of the pattern, nearest to the question's terms first. */
function nearest(text: string, pattern: RegExp, question: Question): string[] {
  const positions = [...text.matchAll(/[\p{L}\p{N}]+/gu)]
    .filter(([word]) => question.terms.some((term) => term.stems.has(stem(word.toLowerCase()))))
    .map(({ index }) => index)
  // Computed once per match instead of at each comparison of the sort.
  const distance = (index: number) =>
    positions.reduce((min, position) => Math.min(min, Math.abs(position - index)), Number.MAX_SAFE_INTEGER)
  return [...text.matchAll(pattern)]
    .map(({ 0: match, index }) => ({ match, distance: distance(index) }))
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ match }) => match)
}

/** An allowed value, and how it is searched for. */
interface Choice {
  readonly value: string | number | boolean
  readonly lower: string
  /** Matches the value as a whole word. Created lazily, since most values do not occur. */
  readonly expression: () => RegExp
}

/** The longest first, since a text with `Apache-2.0` contains `Apache` too. */
function choicesOf(allowed: readonly (string | number | boolean)[]): readonly Choice[] {
  return allowed
    .filter((value) => String(value).trim() !== '')
    .toSorted((a, b) => String(b).length - String(a).length)
    .map((value) => {
      const text = String(value)
      let expression: RegExp | undefined
      return {
        value,
        lower: text.toLowerCase(),
        expression: () =>
          (expression ??= new RegExp(String.raw`(?<![\p{L}\p{N}])${literal(text)}(?![\p{L}\p{N}])`, 'iu')),
      }
    })
}

/** The allowed value that occurs verbatim in the best evidence. */
function takeAllowed(choices: readonly Choice[], evidence: readonly Evidence[]): Answer | undefined {
  for (const candidate of evidence) {
    const [value] = allowedIn(choices, candidate)
    if (value !== undefined) return { value, evidence: [candidate] }
  }
  return undefined
}

function allowedIn(choices: readonly Choice[], { unit }: Evidence): (string | number | boolean)[] {
  const lower = unit.text.toLowerCase()
  return (
    choices
      // The substring search is faster than the expression, and usually sufficient.
      .filter((choice) => lower.includes(choice.lower) && choice.expression().test(unit.text))
      .map(({ value }) => value)
  )
}

const NEGATION = /\b(?:no|not|never|none|neither|nor|without|cannot|lacks?|unsupported)\b|n['’]t\b/i

/** True if a statement matches the question, false if it negates it. */
function takeStatement(evidence: readonly Evidence[]): Answer | undefined {
  const statement = evidence.find(
    ({ unit, direct, coverage }) =>
      direct && coverage >= STATEMENT_COVERAGE && unit.kind !== 'code' && words(unit.text).length >= 3,
  )
  if (statement === undefined) return undefined
  return { value: !NEGATION.test(statement.unit.text), evidence: [statement] }
}

function takeList(spec: FieldSpec, evidence: readonly Evidence[], question: Question): Answer | undefined {
  const { items } = spec
  const [best] = evidence
  if (best === undefined || items === undefined || spec.allowed !== undefined) return undefined
  const maxItems = Math.min(spec.maxItems, MAX_ITEMS)
  const choices = items.allowed === undefined ? undefined : choicesOf(items.allowed)
  // By the JSON of the value, so that no value is in the list twice.
  const values = new Map<string, { readonly value: unknown; readonly evidence: Evidence }>()
  for (const candidate of related(best, evidence)) {
    const found = choices === undefined ? takeItem(items, candidate, question) : allowedIn(choices, candidate)
    for (const value of found) {
      const key = JSON.stringify(value)
      if (values.size < maxItems && !values.has(key)) values.set(key, { value, evidence: candidate })
    }
  }
  if (values.size < Math.max(1, spec.minItems)) return undefined
  const all = [...values.values()]
  return { value: all.map(({ value }) => value), evidence: all.map((item) => item.evidence) }
}

/** The item that a unit is, as a list of at most one. */
function takeItem(items: FieldSpec, candidate: Evidence, question: Question): readonly unknown[] {
  if (items.kind === 'object') return takeObject(items, candidate, question)
  const value = items.kind === 'array' ? undefined : takeAnswer(items, [candidate], question)?.value
  return value === undefined ? [] : [value]
}

/** An object whose properties are all taken from one unit. Its text is the value of one property only. */
function takeObject(spec: FieldSpec, candidate: Evidence, question: Question): readonly unknown[] {
  const entries: [string, unknown][] = []
  let isTextTaken = false
  let isAnswered = false
  for (const property of spec.properties) {
    const isSpent: boolean = isTextTaken && isWholeText(property)
    const answer: Answer | undefined = isSpent ? undefined : takeAnswer(property, [candidate], question)
    isTextTaken ||= answer?.value === candidate.unit.text
    isAnswered ||= answer !== undefined
    const value = answer === undefined ? emptyAnswer(property) : answer.value
    if (value !== undefined) entries.push([property.name, value])
    else if (property.required) return []
  }
  return isAnswered ? [Object.fromEntries(entries)] : []
}

/** Whether the value of a field is a whole sentence or line. */
function isWholeText({ kind, allowed, format, pattern }: FieldSpec): boolean {
  return kind === 'string' && allowed === undefined && format === undefined && pattern === undefined
}

/** The items of the list that contains the best evidence; else all evidence that is nearly as good. */
function related(best: Evidence, evidence: readonly Evidence[]): readonly Evidence[] {
  if (best.unit.kind === 'item') {
    const siblings = evidence.filter(
      ({ unit, passage }) =>
        passage.url === best.passage.url &&
        passage.text === best.passage.text &&
        unit.kind === 'item' &&
        unit.heading === best.unit.heading,
    )
    if (siblings.length > 1) {
      // In the order of the document instead of the scores.
      return siblings.toSorted(
        (a, b) => a.passage.text.indexOf(a.unit.text) - b.passage.text.indexOf(b.unit.text),
      )
    }
  }
  return evidence.filter(({ score }) => score >= best.score * COMPARABLE)
}
