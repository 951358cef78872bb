import { mapFour, type MeasuredService } from '../service.ts'
import type { Measured, Miss } from '../report.ts'
import { ask, type CitedExcerpt, type Given } from './ask.ts'
import { answerFigures, type ScoredQuestion } from './figures.ts'
import type { Question } from './question.ts'
import { scoreAnswer, type Scored } from './score.ts'

/** Asks each question and scores the answers. */
export async function measureAnswers(
  service: MeasuredService,
  items: readonly Question[],
): Promise<Measured> {
  const asked = await mapFour(items, async (item) => {
    const given = await ask(service, item)
    const misquoted = await misquotedOf(service, given.excerpts)
    const answers = scoreAnswer(item, given)
    const scored: ScoredQuestion = {
      form: item.form,
      answers,
      excerpts: given.excerpts.length,
      misquoted: misquoted.length,
    }
    return { scored, misses: missesOf(item, given, answers, misquoted) }
  })
  return {
    figures: answerFigures(asked.map(({ scored }) => scored)),
    misses: asked.flatMap(({ misses }) => misses),
  }
}

/** The excerpts that are not in the text of the document at their URL. */
async function misquotedOf(
  service: MeasuredService,
  excerpts: readonly CitedExcerpt[],
): Promise<readonly CitedExcerpt[]> {
  const found = await Promise.all(excerpts.map(({ url }) => service.text(url)))
  return excerpts.filter(({ excerpt }, index) => excerpt === '' || found[index]?.includes(excerpt) !== true)
}

function missesOf(
  item: Question,
  given: Given,
  answers: readonly Scored[],
  misquoted: readonly CitedExcerpt[],
): Miss[] {
  const question = typeof item.question === 'string' ? item.question : JSON.stringify(item.question)
  const valueOf = (field: string) => {
    if (given.failure !== undefined) return `failed: ${given.failure}`
    return JSON.stringify(item.form === 'json' ? Object(given.content)[field] : given.content)
  }
  const isMiss = ({ outcome, confidence, isGiven }: Scored) =>
    outcome !== 'right' || (isGiven && confidence === 'low')
  return [
    ...answers.filter(isMiss).map((answer) => ({
      id: item.id,
      detail: `${answer.outcome}, ${answer.confidence ?? 'no confidence'}: ${question} [${answer.field}] → ${valueOf(answer.field)}`,
    })),
    ...misquoted.map(({ url, excerpt }) => ({
      id: item.id,
      detail: `misquoted: ${url}: ${JSON.stringify(excerpt)}`,
    })),
  ]
}
