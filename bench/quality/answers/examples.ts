import type { Corpus } from 'rivulet/service'
import { takeAnswer, type Taking } from '../../../src/service/processor/answer/answer.ts'
import {
  findEvidence,
  type EvidenceSearch,
  type Inquiry,
  type ComparedStatements,
} from '../../../src/service/processor/evidence/evidence.ts'
import { inquiryOf } from '../../../src/service/processor/answer/fields.ts'
import type { PatternMatcher } from '../../../src/service/processor/schema/pattern.ts'
import { corpusPlace } from '../../../src/service/processor/passages/place.ts'
import { chosenQuotes, quoteOf } from '../../../src/service/processor/answer/prose.ts'
import { readSchema } from '../../../src/service/processor/schema/schema.ts'
import type { FieldSpec } from '../../../src/service/processor/schema/schema.ts'
import type { Statement } from '../../../src/service/processor/evidence/statements.ts'
import { readSubject } from '../../../src/service/processor/question/subject.ts'
import { splitName } from '../../../src/service/processor/words/vocabulary.ts'
import { type Outcome, scoreField, scoreText } from './compare.ts'
import type { Question } from './question.ts'
import { expectedFields } from './score.ts'

/** A statement that was compared for a question, and whether it answers it. */
export interface Candidate {
  readonly statement: Statement
  /** Whether the service is right if it answers with this statement. */
  readonly isRight: boolean
  /** Whether the answer is in it. A field may take another value of it. */
  readonly isRelevant: boolean
  /** Whether the answer is never called `high`, however likely: it lacks the form that was asked for, or is one of several values. */
  readonly isDoubtful: boolean
}

/** A question or a field that no attribute answers, with the statements that were compared for it. */
export interface Example {
  readonly id: string
  readonly subject: string
  readonly isAnswerable: boolean
  readonly candidates: readonly Candidate[]
  /** How the answer is if these statements are accepted, best first. */
  outcomeOf(accepted: readonly Candidate[]): Outcome
}

/** Number of sentences and passages of the processor `base`. */
const SENTENCES = 2
const DEPTH = 32

/** What the statements of the documents say to each question. Questions that are answered by attributes are left out. */
export async function examplesOf(
  corpus: Corpus,
  items: readonly Question[],
  patterns: PatternMatcher,
): Promise<readonly Example[]> {
  const examples: Example[] = []
  for (const item of items) {
    const place = corpusPlace(corpus, undefined)
    const subject = readSubject(place, item.question)
    const search = (inquiry: Inquiry): ComparedStatements | undefined => {
      const searched: ComparedStatements[] = []
      const observed: EvidenceSearch = { place, subject, depth: DEPTH, observe: (one) => searched.push(one) }
      const { by } = findEvidence(observed, inquiry)
      return by === 'words' ? searched[0] : undefined
    }
    if (item.form === 'json') {
      for (const field of fieldsOf(item)) {
        const name = splitName(field.name)
        const searched = search({ name, isOnly: field.isOnly, ...inquiryOf(name, field.spec) })
        const words = {
          name,
          description: field.spec.description,
          input: subject.text,
          subject: subject.names,
        }
        if (searched !== undefined)
          examples.push(await fieldExample(item, field, searched, { field: words, patterns }))
      }
    } else {
      const searched = search({ name: '', text: subject.text.trim(), isOnly: false })
      if (searched !== undefined) examples.push(proseExample(item, searched))
    }
  }
  return examples
}

function proseExample(
  { id, subject, expect, form }: Exclude<Question, { readonly form: 'json' }>,
  { statements }: ComparedStatements,
): Example {
  const scoreOf = (quotes: readonly Statement[]) => scoreText(quotes.map(quoteOf).join('\n\n'), expect, form)
  const candidates = statements.map((statement) => {
    const isRight = expect !== 'unknown' && scoreOf([statement]) === 'right'
    return { statement, isRight, isRelevant: isRight, isDoubtful: statement.features.notOfForm === 1 }
  })
  return {
    id,
    subject,
    isAnswerable: expect !== 'unknown',
    candidates,
    outcomeOf: (accepted) =>
      scoreOf(
        chosenQuotes(
          accepted.map(({ statement }) => statement),
          SENTENCES,
        ),
      ),
  }
}

/** A scored field of a question. */
interface ScoredField {
  readonly name: string
  readonly spec: FieldSpec
  /** Whether the schema has no other field. */
  readonly isOnly: boolean
}

function fieldsOf(item: Extract<Question, { readonly form: 'json' }>): ScoredField[] {
  const { properties } = readSchema(item.schema).content
  const scored = new Set(Object.keys(expectedFields(item)))
  return properties
    .filter(({ name, kind }) => scored.has(name) && kind !== 'object')
    .map((spec) => ({ name: spec.name, spec, isOnly: properties.length === 1 }))
}

async function fieldExample(
  item: Extract<Question, { readonly form: 'json' }>,
  { name, spec }: ScoredField,
  { asked, statements }: ComparedStatements,
  taking: Pick<Taking, 'field' | 'patterns'>,
): Promise<Example> {
  const expected = expectedFields(item)[name] ?? 'unknown'
  const values = new Map<Statement['unit'], unknown>()
  const candidates: Candidate[] = []
  for (const statement of statements) {
    const answer = await takeAnswer(spec, { ...taking, found: { asked, by: 'words', evidence: [statement] } })
    if (answer !== undefined) values.set(statement.unit, answer.value)
    const isAnswerable = expected !== 'unknown'
    const isRight = isAnswerable && answer !== undefined && scoreField(answer.value, expected) === 'right'
    const isRelevant = isRight || (isAnswerable && isQuoted(statement.unit.text, expected, item.note ?? ''))
    const lacksForm = statement.features.notOfForm === 1 && answer?.isOfShape !== true
    candidates.push({ statement, isRight, isRelevant, isDoubtful: lacksForm || answer?.hasRivals === true })
  }
  return {
    id: `${item.id} ${name}`,
    subject: item.subject,
    isAnswerable: expected !== 'unknown',
    candidates,
    outcomeOf(accepted) {
      const first = accepted.find(({ statement }) => values.has(statement.unit))
      return scoreField(first && values.get(first.statement.unit), expected)
    },
  }
}

/** Whether a statement is in a quote of the item's note, and has an accepted value. */
function isQuoted(text: string, expected: readonly unknown[], note: string): boolean {
  const quotes = [...note.matchAll(/“([^”]+)”/g)].map(([, quote = '']) => plain(quote))
  const unit = plain(text)
  const isIn = quotes.some((quote) => unit.includes(quote) || (unit.length > 12 && quote.includes(unit)))
  return (
    isIn && expected.flat().some((value) => typeof value === 'boolean' || unit.includes(plain(String(value))))
  )
}

function plain(text: string): string {
  return text
    .replaceAll(/[\s|`*]+/g, ' ')
    .trim()
    .toLowerCase()
}
