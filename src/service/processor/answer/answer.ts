import { cellFor } from '../passages/cells.ts'
import type { Findings } from '../evidence/evidence.ts'
import { isFormat } from '../schema/format.ts'
import { dates, licenceId } from '../passages/forms.ts'
import type { Evidence } from '../evidence/judge.ts'
import { listedIn, headOfItem } from './listed.ts'
import { literal } from '../words/literal.ts'
import type { PatternMatcher } from '../schema/pattern.ts'
import { affirms, namedTruth } from './polarity.ts'
import { quantitiesIn, wantedUnit } from './quantities.ts'
import type { FieldSpec } from '../schema/schema.ts'
import { type Shape, type Wanted, wantedOf } from './shapes.ts'
import { type FieldWords, knownText, shortValuesOf } from './short-value.ts'
import { bareText } from '../passages/spans.ts'
import type { TextPart } from '../../isolated/match-pattern.ts'
import { stem } from '../../corpus/stems.ts'
import { words } from '../../corpus/terms.ts'
import { isAddress, type Unit } from '../passages/units.ts'
import { type ParsedQuestion, splitName, stemsOf } from '../words/vocabulary.ts'

/** A value and its evidence. */
export interface Answer {
  readonly value: unknown
  readonly evidence: readonly Evidence[]
  /** Whether it has the shape that the field asks for, such as the name of a function. Default false. */
  readonly isOfShape?: boolean
  /** Whether its statement has other values that the field allows, of which this is the nearest one. Default false. */
  readonly hasRivals?: boolean
}

/** Maximum number of items of a list, unless the schema has a lower limit. */
const MAX_ITEMS = 10
/** Maximum number of short values of a list, unless the schema has a lower limit. */
const MAX_LISTED = 50
/** Items of a list score at least this fraction of the best one. */
const COMPARABLE = 0.75
/** Minimum coverage of a statement that answers a boolean field. */
const STATEMENT_COVERAGE = 0.75
/** A short value is taken from statements that score at least this fraction of the best one. */
const NEARLY = 0.8
/** Maximum number of statements in which a short value is searched. */
const MAX_STATEMENTS = 8

/** The context in which a value is taken from statements. */
export interface Taking {
  readonly found: Pick<Findings, 'asked' | 'by' | 'evidence'>
  readonly field: FieldWords
  readonly patterns: PatternMatcher
}

/** Takes the value of a field from the best suitable evidence; undefined if there is none. */
export async function takeAnswer(spec: FieldSpec, taking: Taking): Promise<Answer | undefined> {
  const answer = await takeFirst(spec, taking)
  if (answer !== undefined) return answer
  for (const alternative of spec.alternatives) {
    const other = await takeFirst(alternative, taking)
    if (other !== undefined) return other
  }
  return undefined
}

async function takeFirst(spec: FieldSpec, taking: Taking): Promise<Answer | undefined> {
  const { evidence } = taking.found
  if (spec.kind === 'array') return await takeList(spec, taking)
  if (spec.kind === 'null' || spec.kind === 'object') return undefined
  if (spec.allowed !== undefined) return takeAllowed(allowedValuesOf(spec.allowed), taking)
  if (spec.kind === 'boolean') return takeTruth(taking)
  if (spec.kind === 'string' && spec.pattern !== undefined) {
    return await takeMatch(spec, spec.pattern, taking)
  }
  if (spec.kind === 'string' && spec.format === undefined) {
    const wanted = wantedOf(taking.field.name, spec.description)
    if (isShape(wanted)) return takeShort(spec, wanted, taking)
  }
  for (const candidate of evidence) {
    const [value, ...others] = valuesOf(spec, candidate, taking)
    const hasRivals = others.some((one) => one !== value)
    if (value !== undefined) return { value, evidence: [candidate], hasRivals }
  }
  return undefined
}

function isShape(wanted: Wanted): wanted is Shape {
  return typeof wanted === 'object'
}

/** A short value from the statements that are nearly as good as the best one. A sentence is no short value. */
function takeShort(spec: FieldSpec, shape: Shape, { found, field }: Taking): Answer | undefined {
  const { evidence, asked, by } = found
  const least = (evidence[0]?.score ?? 0) * NEARLY
  const isKnown = knownText(field)
  for (const candidate of evidence.slice(0, MAX_STATEMENTS)) {
    if (candidate.score < least) break
    const { value } = candidate
    const isStated = by === 'attribute' || asked.form === 'default' || asked.form === 'command'
    const isOfRelease =
      candidate.passage.kind === 'changelog' && asked.form === shape.name && !isKnown(value ?? '')
    const values = [
      ...(value !== undefined && (isStated || isOfRelease) ? [value] : []),
      ...(asksForDefault({ found, field })
        ? defaultCells(candidate)
        : shortValuesOf(shape, candidate, field)),
    ]
    const [text, ...others] = values.filter((one) => one !== '' && fitsText(spec, one))
    if (text === undefined) continue
    const hasRivals = text !== value && others.some((one) => one !== text)
    return { value: text, evidence: [candidate], isOfShape: true, hasRivals }
  }
  return undefined
}

/** Whether a field asks for a default, and not only the rest of the input. */
function asksForDefault({ found, field }: Pick<Taking, 'found' | 'field'>): boolean {
  if (found.asked.form !== 'default') return false
  return (
    field.description === '' ||
    /\b(?:default|initial|otherwise|unless)/i.test(`${field.name} ${field.description}`)
  )
}

const DEFAULT_COLUMN = stemsOf('default defaults')

/** The cell of a row that states the default. */
function defaultCells({ unit }: Pick<Evidence, 'unit'>): string[] {
  const cell = cellFor(unit, DEFAULT_COLUMN)
  return cell === undefined ? [] : [bareText(cell)]
}

/** The first text that satisfies the pattern of a field. */
async function takeMatch(
  spec: FieldSpec,
  pattern: string,
  { found: { evidence, asked }, patterns }: Taking,
): Promise<Answer | undefined> {
  const { question } = asked
  const texts = evidence.flatMap((candidate) =>
    [
      ...(candidate.value === undefined ? [] : [candidate.value]),
      ...textsFor(spec, candidate.unit, question),
    ].map((text) => ({ text, candidate })),
  )
  const matches = await patterns.match(
    pattern,
    texts.map(({ text }) => text),
  )
  for (const [index, { text, candidate }] of texts.entries()) {
    const { isMatch = false, parts = [] } = matches?.[index] ?? {}
    const values = isMatch ? [text] : []
    if (spec.format === undefined) values.push(...nearest(text, parts, question))
    const value = values.find((one) => fitsText(spec, one))
    if (value !== undefined) return { value, evidence: [candidate] }
  }
  return undefined
}

/** The value of a field without an answer; undefined if it is omitted, or if its schema requires one. An empty text is no value. */
export function emptyAnswer(spec: FieldSpec): unknown {
  if (spec.nullable || spec.kind === 'null') return null
  for (const one of [spec, ...spec.alternatives]) {
    // The schema leaves no choice, so nothing is invented.
    if (one.required && one.sole !== undefined) return one.sole.value
    if (one.kind === 'array' && one.minItems === 0 && one.allowed === undefined) return []
    const isFree = one.allowed === undefined && one.format === undefined && one.pattern === undefined
    if (!one.required && one.kind === 'string' && isFree && one.minLength === 0) return ''
  }
  return undefined
}

const NUMBER =
  /(?<![\p{L}\p{N}.,#/-])[-−]?\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\p{L}\p{N}.,#/])[-−]?\d+(?:\.\d+)?/gu
/** Patterns of string formats (`format`). */
const FORMS: Readonly<Record<string, RegExp>> = {
  'date-time': /\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})/g,
  email: /[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g,
  uri: /\bhttps?:\/\/[^\s<>()[\]"'`]+/g,
}

/** The values that a statement has for a field, best first. Values after a stated one are left out. */
function valuesOf(spec: FieldSpec, evidence: Evidence, taking: Taking): readonly (string | number)[] {
  const { unit, value, key } = evidence
  if (spec.kind === 'number' || spec.kind === 'integer') return numbersOf(spec, evidence, taking)
  const { found, field } = taking
  const cell = cellFor(unit, stemsOf(`${field.name} ${field.description}`))
  const texts = [
    ...(cell === undefined ? [] : textsFor(spec, { ...unit, text: bareText(cell) }, found.asked.question)),
    ...textsFor(spec, unit, found.asked.question),
  ]
  // The key of a date such as `July 5, 2023` is its ISO form.
  const stated = [value, spec.format === 'date' ? key : undefined].find(
    (one) => one !== undefined && fitsText(spec, one),
  )
  return stated === undefined ? texts.filter((text) => fitsText(spec, text)) : [stated]
}

/** The numbers that a statement gives, in the unit that the field names, best first. */
function numbersOf(spec: FieldSpec, { unit, value, number }: Evidence, taking: Taking): readonly number[] {
  const { found, field } = taking
  const { question } = found.asked
  const [stated] = asksForDefault(taking) ? defaultCells({ unit }) : []
  const text = stated ?? cellFor(unit, stemsOf(`${field.name} ${field.description}`)) ?? unit.text
  const measure = wantedUnit(field.name, spec.description)
  if (measure !== undefined) {
    for (const one of [value, text].filter((part) => part !== undefined)) {
      const quantities = quantitiesIn(one, measure)
      // A quantity of the right kind that the field does not allow is no other number.
      if (quantities.length === 0) continue
      return nearestOf(one, quantities, question)
        .map((quantity) => quantity.value)
        .filter((quantity) => fitsNumber(spec, quantity))
    }
  }
  if (number !== undefined && fitsNumber(spec, number)) return [number]
  const counted = countIn(text, question)
  if (counted !== undefined && fitsNumber(spec, counted)) return [counted]
  const parts = /\bversions?\b|\bmajor\b/i.test(`${field.name} ${field.description}`)
    ? [...matchesOf(text, NUMBER), ...matchesOf(text, MAJOR)]
    : matchesOf(text, NUMBER)
  return nearest(text, parts, question)
    .map((part) => Number(part.replaceAll(/[,v]/g, '').replace('−', '-')))
    .filter((one) => fitsNumber(spec, one))
}

/** The major number of a version with a `v`. */
const MAJOR = /(?<![\p{L}\p{N}.-])v\d+/gu

const COUNTS = 'no|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve'.split('|')
const COUNT = new RegExp(
  String.raw`\b(?<count>${COUNTS.join('|')})[\s-]+(?:\w+[\s-]+)??(?<noun>\p{L}+)`,
  'giu',
)

/** The number that a text states in words before a word of the question: `no dependencies` is 0. */
function countIn(text: string, { terms }: ParsedQuestion): number | undefined {
  for (const { groups } of text.matchAll(COUNT)) {
    const noun = stem(groups?.['noun']?.toLowerCase() ?? '')
    if (!terms.some((term) => term.stems.has(noun))) continue
    const index = COUNTS.indexOf(groups?.['count']?.toLowerCase() ?? '')
    return Math.max(0, index - 1)
  }
  return undefined
}

/** Whether a text has the length and the format of a field. */
function fitsText(spec: FieldSpec, text: string): boolean {
  // JSON Schema counts code points.
  const length =
    text.length <= spec.minLength || text.length >= spec.maxLength ? [...text].length : text.length
  if (length < spec.minLength || length > spec.maxLength) return false
  return spec.format === undefined || isFormat(spec.format, text)
}

function fitsNumber(spec: FieldSpec, value: number): boolean {
  if (spec.kind === 'integer' && !Number.isSafeInteger(value)) return false
  if (spec.multipleOf !== undefined && !Number.isInteger(value / spec.multipleOf)) return false
  const isInside = value >= spec.minimum && value <= spec.maximum
  return isInside && value > spec.exclusiveMinimum && value < spec.exclusiveMaximum
}

/** The texts of a unit that may be the value of a string field, best first. */
function textsFor({ format }: FieldSpec, unit: Unit, question: ParsedQuestion): readonly string[] {
  if (format === 'date') return nearestOf(unit.text, dates(unit.text), question).map(({ key }) => key)
  const form = FORMS[format ?? '']
  if (form !== undefined) return nearest(unit.text, matchesOf(unit.text, form), question)
  if (isMereAddress(unit, question)) return []
  if (format === undefined) return [unit.text]
  const tokens = matchesOf(unit.text, /[^\s"'`()<>]+[^\s"'`()<>.,;:]/gu)
  return [unit.text, ...nearest(unit.text, tokens, question)]
}

/** Whether a unit is only a URL, and the question does not ask for one. */
function isMereAddress(unit: Unit, { terms }: ParsedQuestion): boolean {
  return isAddress(unit) && !terms.some(({ answer }) => answer?.test(unit.text))
}

function matchesOf(text: string, pattern: RegExp): TextPart[] {
  return [...text.matchAll(pattern)].map(({ 0: part, index }) => ({ text: part, index }))
}

/** The parts of a text, nearest to the question's terms first. */
function nearest(text: string, parts: readonly TextPart[], question: ParsedQuestion): string[] {
  return nearestOf(text, parts, question).map((part) => part.text)
}

function nearestOf<Part extends { readonly index: number }>(
  text: string,
  parts: readonly Part[],
  question: ParsedQuestion,
): Part[] {
  const positions = [...text.matchAll(/[\p{L}\p{N}]+/gu)]
    .filter(([word]) => question.terms.some((term) => term.stems.has(stem(word.toLowerCase()))))
    .map(({ index }) => index)
  // Computed once per part instead of at each comparison of the sort.
  const distance = (index: number) =>
    positions.reduce((min, position) => Math.min(min, Math.abs(position - index)), Number.MAX_SAFE_INTEGER)
  return parts
    .map((part) => ({ part, distance: distance(part.index) }))
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ part }) => part)
}

/** An allowed value, and how it is searched for. */
interface AllowedValue {
  readonly value: string | number | boolean
  readonly lower: string
  /** Matches the value as a whole word. Created lazily, since most values do not occur. */
  readonly expression: () => RegExp
}

/** The longest first, since a text with `Apache-2.0` contains `Apache` too. */
function allowedValuesOf(allowed: readonly (string | number | boolean)[]): readonly AllowedValue[] {
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
          (expression ??= new RegExp(String.raw`(?<![\p{L}\p{N}])${literal(text)}(?![\p{L}\p{N}])`, 'giu')),
      }
    })
}

/** The allowed value that occurs verbatim in the best evidence: of a default in its cell, else the nearest to the question. */
function takeAllowed(choices: readonly AllowedValue[], taking: Taking): Answer | undefined {
  const { evidence, asked } = taking.found
  for (const candidate of evidence) {
    const [cell] = asksForDefault(taking) ? defaultCells(candidate) : []
    const one = cell === undefined ? candidate : { ...candidate, value: cell }
    const [value, ...others] = allowedIn(choices, one, asked.question)
    if (value !== undefined) return { value, evidence: [candidate], hasRivals: others.length > 0 }
  }
  return undefined
}

/** The allowed values in a statement, nearest to the question first. */
function allowedIn(
  choices: readonly AllowedValue[],
  { unit, value }: Pick<Evidence, 'unit' | 'value'>,
  question: ParsedQuestion,
): (string | number | boolean)[] {
  // A licence has several names.
  const id = value === undefined ? undefined : licenceId(value)
  const same = id === undefined ? undefined : choices.find((choice) => licenceId(String(choice.value)) === id)
  if (same !== undefined) return [same.value]
  const text = value ?? unit.text
  const lower = text.toLowerCase()
  const found: { readonly value: AllowedValue['value']; readonly index: number; readonly end: number }[] = []
  // The substring search is faster than the expression, and usually sufficient.
  for (const choice of choices.filter((one) => lower.includes(one.lower))) {
    for (const { 0: part, index } of text.matchAll(choice.expression())) {
      const end = index + part.length
      // `Apache` in `Apache-2.0` is no separate value.
      const isPart = found.some((longer) => index >= longer.index && end <= longer.end)
      if (!isPart) found.push({ value: choice.value, index, end })
    }
  }
  return [...new Set(nearestOf(text, found, question).map((one) => one.value))]
}

/** True if a statement affirms the question, false if it denies it. */
function takeTruth({ found, field }: Taking): Answer | undefined {
  const { evidence, asked } = found
  const [first] = evidence
  if (first?.value === 'true' || first?.value === 'false') {
    return { value: first.value === 'true', evidence: [first] }
  }
  const question = `${field.name} ${field.description}`
  const isWhether = /^\s*(?:whether|if|is|are|does|do|has|have|can)\b/i.test(field.description)
  if (asksForDefault({ found, field }) && !isWhether) {
    const least = (first?.score ?? 0) * NEARLY
    for (const candidate of evidence.filter(({ score }) => score >= least)) {
      const truth = namedTruth([...defaultCells(candidate), candidate.value ?? ''].join(' '))
      if (truth !== undefined) return { value: truth, evidence: [candidate] }
    }
    return undefined
  }
  const statement = evidence.find(
    ({ unit, direct, coverage }) =>
      (direct || (isWhether && asked.form === 'default')) &&
      coverage >= STATEMENT_COVERAGE &&
      unit.kind !== 'code' &&
      words(unit.text).length >= 3,
  )
  if (statement === undefined) return undefined
  const { text } = statement.unit
  const named = isWhether ? undefined : namedTruth(text)
  return { value: named ?? affirms(text, question), evidence: [statement] }
}

async function takeList(spec: FieldSpec, taking: Taking): Promise<Answer | undefined> {
  const { items } = spec
  const { evidence, asked } = taking.found
  const [best] = evidence
  if (best === undefined || items === undefined || spec.allowed !== undefined) return undefined
  const maxItems = Math.min(spec.maxItems, MAX_ITEMS)
  const choices = items.allowed === undefined ? undefined : allowedValuesOf(items.allowed)
  const isText = items.kind === 'string' && items.pattern === undefined && choices === undefined
  if (isText && items.format === undefined) {
    const wanted = wantedOf(taking.field.name, `${spec.description} ${items.description}`.trim())
    const listed = wanted === 'statement' ? undefined : takeListed(wanted, taking)
    if (listed !== undefined) {
      const values = listed.values
        .filter((value) => fitsText(items, value))
        .slice(0, Math.min(spec.maxItems, MAX_LISTED))
      if (values.length >= Math.max(1, spec.minItems)) {
        return { value: values, evidence: values.map(() => listed.from) }
      }
    }
    if (isShape(wanted)) return undefined
  }
  // By the JSON of the value, so that no value is in the list twice.
  const values = new Map<string, { readonly value: unknown; readonly evidence: Evidence }>()
  for (const candidate of related(best, evidence)) {
    const found =
      choices === undefined
        ? await takeItem(items, candidate, taking)
        : allowedIn(choices, candidate, asked.question)
    for (const value of found) {
      const key = JSON.stringify(value)
      if (values.size < maxItems && !values.has(key)) values.set(key, { value, evidence: candidate })
    }
  }
  if (values.size < Math.max(1, spec.minItems)) return undefined
  const all = [...values.values()]
  return { value: all.map(({ value }) => value), evidence: all.map((item) => item.evidence) }
}

/** The short values that a statement lists, or the items of a list are about. */
function takeListed(
  wanted: Wanted,
  { found, field }: Taking,
): { readonly values: readonly string[]; readonly from: Evidence } | undefined {
  const { evidence } = found
  const [best] = evidence
  const least = (best?.score ?? 0) * NEARLY
  const near = evidence.slice(0, MAX_STATEMENTS).filter(({ score }) => score >= least)
  for (const candidate of near) {
    const { unit, continuation } = candidate
    const own = listedIn(candidate)
    // The next sentence may list what this one names.
    const next = continuation === undefined ? [] : listedIn({ unit: { ...unit, text: continuation } })
    const values = [...new Set(own.length > 1 ? own : next)]
    if (values.length > 1) return { values, from: candidate }
    if (!isShape(wanted)) break
  }
  if (best === undefined || !isShape(wanted)) return undefined
  if (best.unit.kind === 'item') {
    const heads = related(best, evidence).map(({ unit }) => headOfItem(unit.text))
    const items = heads.filter((head) => head !== undefined)
    if (items.length > 1 && items.length === heads.length) return { values: [...new Set(items)], from: best }
  }
  const values = shortValuesOf(wanted, best, field)
  return values.length === 0 ? undefined : { values: [...new Set(values)], from: best }
}

/** The item that a unit is, as a list of at most one. */
async function takeItem(items: FieldSpec, candidate: Evidence, taking: Taking): Promise<readonly unknown[]> {
  if (items.kind === 'object') return await takeObject(items, candidate, taking)
  if (items.kind === 'array') return []
  const answer = await takeAnswer(
    items,
    within(taking, candidate, { ...taking.field, name: '', description: items.description }),
  )
  return answer === undefined ? [] : [answer.value]
}

/** An object whose properties are all taken from one unit. Its text is the value of one property only. */
async function takeObject(spec: FieldSpec, candidate: Evidence, taking: Taking): Promise<readonly unknown[]> {
  const entries: [string, unknown][] = []
  let isTextTaken = false
  let isAnswered = false
  for (const property of spec.properties) {
    const isSpent: boolean = isTextTaken && isWholeText(property)
    const answer: Answer | undefined = isSpent
      ? undefined
      : await takeAnswer(property, within(taking, candidate, wordsOf(property, taking.field)))
    isTextTaken ||= answer?.value === candidate.unit.text
    isAnswered ||= answer !== undefined
    const value = answer === undefined ? emptyAnswer(property) : answer.value
    if (value !== undefined) entries.push([property.name, value])
    else if (property.required) return []
  }
  return isAnswered ? [Object.fromEntries(entries)] : []
}

/** The same with one statement only. */
function within({ found, patterns }: Taking, candidate: Evidence, field: FieldWords): Taking {
  return { found: { ...found, evidence: [candidate] }, field, patterns }
}

function wordsOf({ name, description }: FieldSpec, { input, subject }: FieldWords): FieldWords {
  return { name: splitName(name), description, input, subject }
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
