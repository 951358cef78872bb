import { stemsOf } from '../words/vocabulary.ts'

const NEGATION = /\b(?:no|not|never|none|neither|nor|without|cannot|lacks?|lacking|unsupported)\b|n['’]t\b/i
/** The words at which a statement turns to another subject. */
const TURN =
  /[,;:()]|\s[–—-]\s|\b(?:but|while|whereas|although|though|however|instead|because|since|so that|in the sense that)\b/i

/** Whether a statement affirms the question: its clause with the words of the question is negated if the question is. */
export function affirms(statement: string, question: string): boolean {
  const asked = stemsOf(question)
  return NEGATION.test(clauseOf(statement, asked)) === NEGATION.test(question)
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

/** The truth value that a statement names, as in "if the return value is true"; undefined if it names none or both. */
export function namedTruth(statement: string): boolean | undefined {
  const isTrue = /\btrue\b/i.test(statement)
  const isFalse = /\bfalse\b/i.test(statement)
  return isTrue === isFalse ? undefined : isTrue
}
