import { HIGH, MEDIUM } from '../evidence/statement-weights.ts'

/** The features of an answer that decide its confidence. */
export interface AnswerFeatures {
  /** How likely a statement is the answer, 0 to 1; undefined for an attribute or the changes of a version. */
  readonly likelihood: number | undefined
  /** Whether it has the form that was asked for; undefined if the question asks for no known form. */
  readonly form: boolean | undefined
  /** Whether its statement has other values that the field allows. */
  readonly hasRivals: boolean
  /** Number of documents with the same answer. */
  readonly agreeing: number
  /** Number of documents with another answer. */
  readonly disagreeing: number
  /** The share of the question that stands with the answer, 0 to 1. */
  readonly nearness: number
  /** Whether the question's words stand in the same sentence or line. */
  readonly direct: boolean
  /** Whether it is in a document of the subject's own. */
  readonly own: boolean
  /** Whether a manifest states it, or it stands under a heading with the question's words. */
  readonly stated: boolean
  /** Whether it is an author, and the question asks for a maintainer: that may be another person. */
  readonly isAuthorOnly: boolean
  /** The words of the question that stand nowhere near it. */
  readonly missing: readonly string[]
}

/** A level of confidence. */
export type Confidence = 'low' | 'medium' | 'high'

/** How sure an answer is, by its features. */
export function confidenceOf(features: AnswerFeatures): Confidence {
  const { likelihood, own, form, hasRivals } = features
  if (likelihood === undefined) return confidenceOfFact(features)
  if (likelihood >= HIGH && own && form !== false && !hasRivals) return 'high'
  return likelihood >= MEDIUM ? 'medium' : 'low'
}

/** The confidence in an attribute, or in the changes of a version: stated in a field of its own, and not contradicted by another document. */
function confidenceOfFact({ own, stated, agreeing, disagreeing, isAuthorOnly }: AnswerFeatures): Confidence {
  if (own && !isAuthorOnly && (stated ? disagreeing <= agreeing : agreeing > 1 && disagreeing === 0))
    return 'high'
  return own && disagreeing <= agreeing ? 'medium' : 'low'
}

/** The features in words. */
export function explain(features: AnswerFeatures): string {
  const { likelihood, form, agreeing, disagreeing, nearness, direct, own, stated, missing, hasRivals } =
    features
  const parts = [
    own ? "the subject's own document" : 'a document about something else',
    ...(stated ? ['stated as a field of its own'] : []),
    ...(features.isAuthorOnly ? ['the author, who need not be the maintainer'] : []),
    ...(form === undefined
      ? []
      : [form ? 'has the form that was asked for' : 'lacks the form that was asked for']),
    `${Math.round(nearness * 100)} % of the question ${direct ? 'in the same statement' : 'around it'}`,
    ...(missing.length > 0 ? [`without ${missing.map((word) => `“${word}”`).join(', ')}`] : []),
    ...(hasRivals ? ['the nearest of several values in the statement'] : []),
    ...(agreeing > 1 ? [`${agreeing} documents agree`] : []),
    ...(disagreeing > 0
      ? [`${disagreeing} ${disagreeing === 1 ? 'document says' : 'documents say'} otherwise`]
      : []),
    ...(likelihood === undefined ? [] : [`right with a likelihood of ${Math.round(likelihood * 100)} %`]),
  ]
  return parts.join('; ')
}
