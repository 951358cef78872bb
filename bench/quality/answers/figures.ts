import { type Figure, share } from '../report.ts'
import type { Scored } from './score.ts'

/** The answers of one question. */
export interface ScoredQuestion {
  readonly form: 'words' | 'text' | 'json'
  readonly answers: readonly Scored[]
  /** Cited excerpts, and how many of them are not word for word in their document. */
  readonly excerpts: number
  readonly misquoted: number
}

/**
 * The figures of a half. An answer is a question in prose or **a field of a JSON question**: the targets count these. Whole JSON
 * objects, right in each field, are a figure of their own without a target.
 *
 * Calibration counts the answers that give a value. An "unknown" is left out on both sides, so that it can neither improve nor
 * spoil the share of right ones called `high`.
 */
export function answerFigures(questions: readonly ScoredQuestion[]): readonly Figure[] {
  const answers = questions.flatMap((question) => question.answers)
  const answerable = answers.filter(({ isAnswerable }) => isAnswerable)
  const without = answers.filter(({ isAnswerable }) => !isAnswerable)
  const given = answers.filter(({ isGiven }) => isGiven)
  const high = given.filter(({ confidence }) => confidence === 'high')
  const rightGiven = given.filter(isRight)
  const excerpts = sum(questions, (question) => question.excerpts)
  const misquoted = sum(questions, (question) => question.misquoted)
  const whole = questions.filter(({ form }) => form === 'json')
  const rightOf = (form: ScoredQuestion['form']) => {
    const some = questions
      .filter((question) => question.form === form)
      .flatMap((question) => question.answers)
      .filter(({ isAnswerable }) => isAnswerable)
    return share(`right, ${form}`, some.filter(isRight).length, some.length)
  }
  const count = (list: readonly Scored[], outcome: Scored['outcome']) =>
    list.filter((answer) => answer.outcome === outcome).length
  return [
    share('right', count(answerable, 'right'), answerable.length, { atLeast: 0.85 }),
    share('wrong', count(answerable, 'wrong'), answerable.length, { atMost: 0.05 }),
    share('unknown', count(answerable, 'unknown'), answerable.length),
    rightOf('words'),
    rightOf('text'),
    rightOf('json'),
    share(
      'whole JSON right',
      whole.filter((question) => question.answers.every(isRight)).length,
      whole.length,
    ),
    share('without an answer: unknown', count(without, 'right'), without.length, { atLeast: 0.9 }),
    share('right of those called high', high.filter(isRight).length, high.length, { atLeast: 0.97 }),
    share(
      'called high of the right ones',
      rightGiven.filter((one) => one.confidence === 'high').length,
      rightGiven.length,
      {
        atLeast: 0.4,
      },
    ),
    share('citations word for word', excerpts - misquoted, excerpts, { atLeast: 1 }),
    share(
      'given answers with a citation',
      given.filter(({ citations }) => citations > 0).length,
      given.length,
    ),
  ]
}

function isRight({ outcome }: Scored): boolean {
  return outcome === 'right'
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}
