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
/** Minimum coverage of a statement that answers a boolean field. */
const STATEMENT_COVERAGE = 0.75

/** Takes the value of a field from the best suitable evidence; undefined if there is none. */
export function takeAnswer(
  spec: FieldSpec,
  evidence: readonly Evidence[],
  question: Question,
): Answer | undefined {
  if (spec.kind === 'array') return takeList(spec, evidence, question)
  if (spec.allowed !== undefined) return takeAllowed(choicesOf(spec.allowed), evidence)
  if (spec.kind === 'boolean') return takeStatement(evidence)
  for (const candidate of evidence) {
    const value = takeValue(spec, candidate, question)
    if (value !== undefined) return { value, evidence: [candidate] }
  }
  return undefined
}

/** The value of a field without an answer; undefined to omit it. */
export function emptyAnswer(spec: FieldSpec): unknown {
  if (spec.nullable) return null
  if (spec.kind === 'array') return []
  if (spec.kind === 'string' && spec.allowed === undefined) return ''
  return spec.required ? null : undefined
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
    const numbers = nearest(unit.text, NUMBER, question)
      .map((text) => Number(text.replaceAll(',', '').replace('−', '-')))
      .filter((value) => spec.kind === 'number' || Number.isSafeInteger(value))
    return numbers.find((value) => value >= spec.minimum && value <= spec.maximum)
  }
  const form = FORMS[spec.format ?? '']
  if (form === undefined && isMereAddress(unit, question)) return undefined
  const texts = form === undefined ? [unit.text] : nearest(unit.text, form, question)
  return texts.find((text) => text.length >= spec.minLength && text.length <= spec.maxLength)
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
  if (best === undefined || items === undefined || items.kind === 'object' || items.kind === 'array') {
    return undefined
  }
  const maxItems = Math.min(spec.maxItems, MAX_ITEMS)
  const choices = items.allowed === undefined ? undefined : choicesOf(items.allowed)
  const values = new Map<unknown, Evidence>()
  for (const candidate of related(best, evidence)) {
    const found =
      choices === undefined ? [takeValue(items, candidate, question)] : allowedIn(choices, candidate)
    for (const value of found) {
      if (value !== undefined && values.size < maxItems && !values.has(value)) values.set(value, candidate)
    }
  }
  return values.size === 0 ? undefined : { value: [...values.keys()], evidence: [...values.values()] }
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
