import { stem } from '../corpus/stems.ts'
import { stemsOf } from './vocabulary.ts'

const NEGATION = /\b(?:no|not|never|none|neither|nor|without|cannot|lacks?|lacking|unsupported)\b|n['’]t\b/i
/** Words of opposite meaning. */
const OPPOSITES: readonly (readonly [string, string])[] = [
  ['enabled', 'disabled'],
  ['required mandatory necessary', 'optional'],
  [
    'supported supports maintained available',
    'unsupported dropped removed unmaintained unavailable discontinued',
  ],
  ['allowed permitted accepted', 'forbidden prohibited disallowed refused rejected'],
  ['included', 'excluded omitted'],
  ['synchronous sync', 'asynchronous async'],
  ['mutable', 'immutable'],
  ['stable', 'experimental unstable'],
  ['sensitive', 'insensitive'],
  ['safe', 'unsafe'],
  ['on', 'off'],
]

const sides = OPPOSITES.map((pair) => pair.map((side) => new Set(side.split(' ').map(stem))))
/** Where a statement turns to something else. */
const TURN = /[,;:()]|\s[–—-]\s|\b(?:but|while|whereas|although|though|however|instead)\b/i

/**
 * Whether a statement says yes to what is asked: it negates neither more nor less than the question, and has no word of the opposite
 * meaning. Only the clause with the words of the question counts.
 */
export function affirms(statement: string, question: string): boolean {
  const asked = stemsOf(question)
  const clause = clauseOf(statement, asked)
  const isNegated = NEGATION.test(clause)
  const isQuestionNegated = NEGATION.test(question)
  return (isNegated !== isQuestionNegated) === isOpposite(stemsOf(clause), asked)
}

/** The clause that has the most words of a question, the longest of equal ones. */
function clauseOf(statement: string, asked: ReadonlySet<string>): string {
  const clauses = statement.split(TURN).filter((clause) => clause.trim() !== '')
  let best = statement
  let most = 0
  for (const clause of clauses) {
    const shared = [...stemsOf(clause)].filter((one) => asked.has(one)).length
    if (shared > most || (shared === most && clause.length > best.length && most > 0)) {
      most = shared
      best = clause
    }
  }
  return best
}

/** Whether a clause has the opposite of a word of the question, and not that word. */
function isOpposite(clause: ReadonlySet<string>, asked: ReadonlySet<string>): boolean {
  const has = (stems: ReadonlySet<string>, side: ReadonlySet<string>) =>
    [...side].some((one) => stems.has(one))
  return sides.some((pair) =>
    pair.some((side, index) => {
      const other = pair[1 - index]
      return (
        other !== undefined &&
        has(asked, side) &&
        has(clause, other) &&
        !has(clause, side) &&
        !has(asked, other)
      )
    }),
  )
}

/** The truth value that a statement names, as in "if the return value is true"; undefined if it names none or both. */
export function namedTruth(statement: string): boolean | undefined {
  const isTrue = /\btrue\b/i.test(statement)
  const isFalse = /\bfalse\b/i.test(statement)
  return isTrue === isFalse ? undefined : isTrue
}
