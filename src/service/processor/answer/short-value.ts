import { stem } from '../../corpus/stems.ts'
import { isStopWord } from '../../corpus/terms.ts'
import { cellFor, cellsOf } from '../passages/cells.ts'
import type { Evidence } from '../evidence/judge.ts'
import { literal } from '../words/literal.ts'
import { type Shape } from './shapes.ts'
import { bareText, headingName, headOf, markedSpans, type MarkedSpan } from '../passages/spans.ts'
import { stemsOf } from '../words/vocabulary.ts'

/** The words of a field, for the choice of a short value. */
export interface FieldWords {
  /** Name of the field, in words. */
  readonly name: string
  readonly description: string
  /** The rest of the input. */
  readonly input: string
  /** The names of the subject. */
  readonly subject: readonly string[]
}

/** The short values of a shape in a statement and in the texts above it, best first. */
export function shortValuesOf(shape: Shape, evidence: Evidence, field: FieldWords): string[] {
  const { unit } = evidence
  const isKnown = knownText(field)
  // A name that contains the subject's name is the subject, unless it is a part of it such as an import.
  const isOwn = (text: string) =>
    shape.name === 'phrase' && field.subject.some((name) => text.toLowerCase().includes(name.toLowerCase()))
  const fits = (span: MarkedSpan) =>
    shape.fits(span.text, span.mark) && !isKnown(span.text) && !isOwn(span.text)
  const wanted = stemsOf(`${field.name} ${field.description}`)
  const cell = cellFor(unit, wanted)
  if (cell !== undefined) {
    const values = spansIn(shape, cell).filter(fits)
    const bare = bareText(cell)
    return [...(shape.fits(bare, 'code') ? [bare] : []), ...values.map(({ text }) => text)]
  }
  const head = headFor(shape, evidence, fits)
  const spans = spansIn(shape, unit.text).filter(fits)
  const near = byDistance(unit.text, onSide(unit.text, spans, field), wanted).map(({ text }) => text)
  const related = shape.isThing || shape.name === 'person' ? relatedNames(unit.text, wanted).filter(fits) : []
  const announced = announcedValue(shape, evidence, fits)
  const others = [...near, ...related.map(({ text }) => text), ...announced]
  return describesHead(unit.text) ? [...head, ...others] : [...others, ...head]
}

function spansIn(shape: Shape, text: string): MarkedSpan[] {
  const plain = shape.plain?.(text) ?? []
  const marked = markedSpans(text)
  const isOwn = ({ start, end }: MarkedSpan) =>
    !plain.some(
      (span) => start >= span.start && end <= span.end && span.text.length > 0 && start !== span.start,
    )
  return [
    ...marked.filter(isOwn),
    ...plain.filter(
      ({ start, end }) =>
        !marked.some((span) => shape.fits(span.text, span.mark) && start >= span.start && end <= span.end),
    ),
  ]
}

/** Maximum length of a question that is read, in characters. */
const MAX_QUESTION = 4_000

/** Tests whether a text stands in the question already, so that it is no answer. */
export function knownText({ input, description, subject }: FieldWords): (text: string) => boolean {
  const question = `${description} ${input}`.slice(0, MAX_QUESTION)
  const names = new Set(subject.map((name) => name.toLowerCase()))
  return (text) => {
    const bare = text.replace(/\([^'"]*\)$/s, '').replace(/^process\.env\./, '')
    if (bare === '' || names.has(bare.toLowerCase())) return true
    return new RegExp(String.raw`(?<![\w@/.-])${literal(bare)}(?![\w/-])`).test(question)
  }
}

/** Beginnings of a statement that has its value in itself. */
const IMPERATIVE = /^(?:use|set|pass|call|see|with|to|if|for|when|by|in|consider|run|import|require|add)\b/i

function describesHead(text: string): boolean {
  return headOf(text) !== undefined || text.startsWith('|') || !IMPERATIVE.test(text)
}

/** Shapes of things that a heading names. */
const UNDER_HEADINGS = new Set(['function', 'option', 'symbol', 'file', 'flag', 'command', 'variable'])

/** The name that the statement describes: the first cell of its row, the beginning of its line, or the heading above it. */
function headFor(shape: Shape, { unit }: Evidence, fits: (span: MarkedSpan) => boolean): string[] {
  if (!shape.isThing) return []
  const isRow = (unit.columns ?? []).length > 0
  const [first] = isRow ? cellsOf(unit.text) : []
  const head = isRow
    ? bareText(first ?? '')
    : (headOf(unit.text) ?? (UNDER_HEADINGS.has(shape.name) ? headingName(unit.heading) : undefined))
  if (head === undefined || head === '') return []
  // `--config, -c` are two flags.
  return head.split(/,\s*(?=--?\w)/).filter((text) => fits({ text, mark: 'code', start: 0, end: 0 }))
}

/** The first line of code after a statement that announces it. */
function announcedValue(
  shape: Shape,
  { unit, continuation }: Evidence,
  fits: (span: MarkedSpan) => boolean,
): string[] {
  if (
    shape.name === 'phrase' ||
    !unit.text.endsWith(':') ||
    continuation === undefined ||
    /^usage:/i.test(continuation)
  )
    return []
  const text = bareText(
    continuation
      .split('\n', 1)
      .join('')
      .replace(/^\$\s+/, ''),
  )
  return fits({ text, mark: 'code', start: 0, end: 0 }) ? [text] : []
}

const BEFORE_OLD =
  /\b(?:instead of|rather than|previously|formerly|used to be|was|were|from|replac(?:es|ed|ing)|no longer)\s+(?:an?\s+|the\s+)?[`"'*[]*$/i
const AFTER_OLD =
  /^[`"'*\])]*\s*(?:is (?:now|replaced)|was (?:renamed|replaced|removed)|has been (?:renamed|replaced|removed)|→|->|=>)/i

/** The spans of the old or the new value, as the field asks, if a text states how a value has changed; else all spans. */
function onSide(
  text: string,
  spans: readonly MarkedSpan[],
  { name, description }: FieldWords,
): readonly MarkedSpan[] {
  const question = `${name} ${description}`
  const asksOld = /\b(?:old|former|formerly|previous|previously|before|earlier|replaced|was)\b/i.test(
    question,
  )
  const asksNew = /\b(?:new|now|current|currently|after|replacement|instead|nowadays)\b/i.test(question)
  if (asksOld === asksNew) return spans
  const isOld = ({ start, end }: MarkedSpan) =>
    BEFORE_OLD.test(text.slice(Math.max(0, start - 30), start)) || AFTER_OLD.test(text.slice(end, end + 30))
  const old = spans.filter(isOld)
  const fresh = spans.filter((span) => !old.includes(span))
  if (old.length === 0 || fresh.length === 0) return spans
  return asksOld ? old : fresh
}

/** The nearest to the words of the question first. */
function byDistance(text: string, spans: readonly MarkedSpan[], wanted: ReadonlySet<string>): MarkedSpan[] {
  const positions = [...text.matchAll(/[\p{L}\p{N}]+/gu)]
    .filter(({ 0: word, index }) => {
      // A word of another value is no reason to choose this one.
      const isOfValue = spans.some(({ start, end }) => index >= start && index < end)
      return !isOfValue && !isStopWord(word.toLowerCase()) && wanted.has(stem(word.toLowerCase()))
    })
    .map(({ 0: word, index }) => ({ start: index, end: index + word.length }))
  const distance = ({ start, end }: MarkedSpan) =>
    positions.reduce((nearest, at) => {
      return Math.min(nearest, at.start >= end ? at.start - end : Math.max(0, start - at.end))
    }, 4_000)
  return spans
    .map((span) => ({ span, far: distance(span) }))
    .toSorted((a, b) => a.far - b.far)
    .map(({ span }) => span)
}

/** Names without marks, after a word of the question: `tests are written with mocha`, `the main user is Vitest`. */
function relatedNames(text: string, wanted: ReadonlySet<string>): MarkedSpan[] {
  const found: MarkedSpan[] = []
  for (const { groups = {}, index, 0: whole } of text
    .slice(0, MAX_QUESTION)
    .matchAll(
      /(?<word>\p{L}+)\s+(?:is|are|was|were|will be|in|with|by|on|for|from|to|at|under|called|named)\s+(?:the\s+|an?\s+)?(?<value>\p{Lu}[\p{L}\d.+#@/-]*[\p{L}\d+#](?:\s+\p{Lu}[\p{L}\d.+#-]*[\p{L}\d+#]){0,3}|[a-z@][\w@/-]*(?=[.,;)]\s|[.,;)]?$))/gu,
    )) {
    const { word = '', value = '' } = groups
    if (!wanted.has(stem(word.toLowerCase())) || isStopWord(value.toLowerCase())) continue
    found.push({
      text: value,
      mark: 'plain',
      start: index + whole.length - value.length,
      end: index + whole.length,
    })
  }
  return found
}
