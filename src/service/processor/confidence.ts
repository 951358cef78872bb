/** What is known of an answer, from which its confidence follows. */
export interface Features {
  /** Whether it has the form that was asked for; undefined if the question asks for no known form. */
  readonly form: boolean | undefined
  /** Number of documents with the same answer. */
  readonly agreeing: number
  /** Number of documents with another answer. */
  readonly disagreeing: number
  /** How much of what is asked stands with the answer, 0 to 1. */
  readonly nearness: number
  /** Whether what is asked stands in the same sentence or line. */
  readonly direct: boolean
  /** Whether it is in a document of the subject's own. */
  readonly own: boolean
  /** Whether it is what a manifest states, or stands under a heading of what is asked. */
  readonly stated: boolean
  /** How much the best other answer falls behind it, 0 to 1. */
  readonly lead: number
}

/** A level of confidence. */
export type Confidence = 'low' | 'medium' | 'high'

/** Minimum points of each level. */
const HIGH = 5
const MEDIUM = 2.5

/** How sure an answer is, by its features. */
export function confidenceOf(features: Features): Confidence {
  const points = pointsOf(features)
  if (points >= HIGH && features.own && features.form !== false) return 'high'
  return points >= MEDIUM ? 'medium' : 'low'
}

function pointsOf({ form, agreeing, disagreeing, nearness, direct, own, stated, lead }: Features): number {
  let points = 0
  if (own) points += 1
  if (stated) points += 3
  if (form === true) points += 1
  if (form === false) points -= 2
  points += Math.min(2, (agreeing - 1) * 1) - disagreeing * 1.5
  points += nearness >= 0.95 ? 2 : nearness >= 0.8 ? 1 : nearness < 0.6 ? -1 : 0
  if (direct) points += 0.5
  if (lead >= 0.15) points += 0.5
  return points
}

/** The features in words. */
export function explain({
  form,
  agreeing,
  disagreeing,
  nearness,
  direct,
  own,
  stated,
  lead,
}: Features): string {
  const parts = [
    own ? "the subject's own document" : 'a document about something else',
    ...(stated ? ['stated as a field of its own'] : []),
    ...(form === undefined
      ? []
      : [form ? 'has the form that was asked for' : 'lacks the form that was asked for']),
    `${Math.round(nearness * 100)} % of the question ${direct ? 'in the same statement' : 'around it'}`,
    ...(agreeing > 1 ? [`${agreeing} documents agree`] : []),
    ...(disagreeing > 0
      ? [`${disagreeing} ${disagreeing === 1 ? 'document says' : 'documents say'} otherwise`]
      : []),
    ...(lead >= 0.15 ? ['no other answer is near'] : []),
  ]
  return parts.join('; ')
}
