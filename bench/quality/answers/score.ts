import { isUnknownFailure, type Outcome, scoreField, scoreText } from './compare.ts'
import type { Given } from './ask.ts'
import type { Question } from './question.ts'

/** A scored answer: of a question in prose, or of a field of a JSON question. */
export interface Scored {
  /** `output` for prose. */
  readonly field: string
  /** Whether the documents have an answer. */
  readonly isAnswerable: boolean
  readonly outcome: Outcome
  /** Whether a value was given: true for each wrong answer, and for a right one that is not "unknown". */
  readonly isGiven: boolean
  readonly confidence: string | undefined
  readonly citations: number
}

/** Scores an answer: one entry for prose, one for each field of JSON. */
export function scoreAnswer(item: Question, given: Given): readonly Scored[] {
  const entry = (field: string, isAnswerable: boolean, outcome: Outcome): Scored => ({
    field,
    isAnswerable,
    outcome,
    isGiven: outcome === 'wrong' || (isAnswerable && outcome === 'right'),
    confidence: given.confidence(field),
    citations: given.citations(field),
  })
  const failed = given.failure === undefined ? undefined : isUnknownFailure(given.failure)
  const outcomeOf = (isAnswerable: boolean, outcome: () => Outcome): Outcome => {
    if (failed === undefined) return outcome()
    if (!failed) return 'wrong'
    return isAnswerable ? 'unknown' : 'right'
  }

  if (item.form !== 'json') {
    const { expect, form } = item
    const text = typeof given.content === 'string' ? given.content : ''
    const isAnswerable = expect !== 'unknown'
    return [
      entry(
        'output',
        isAnswerable,
        outcomeOf(isAnswerable, () => scoreText(text, expect, form)),
      ),
    ]
  }
  const content: Readonly<Record<string, unknown>> = Object(given.content)
  return Object.entries(expectedFields(item)).map(([field, expected]) => {
    const isAnswerable = expected !== 'unknown'
    return entry(
      field,
      isAnswerable,
      outcomeOf(isAnswerable, () => scoreField(content[field], expected)),
    )
  })
}

/** The expected values of the scored fields. */
export function expectedFields(item: Extract<Question, { readonly form: 'json' }>) {
  if (item.expect !== 'unknown') return item.expect
  const names = Object.keys(Object(item.schema['properties']))
  return Object.fromEntries(names.map((name) => [name, 'unknown' as const]))
}
