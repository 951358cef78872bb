import { describe, expect, it } from 'vitest'
import { expectedFields } from '../../bench/quality/answers/score.ts'
import type { Question } from '../../bench/quality/answers/question.ts'
import { HALVES, halfOf } from '../../bench/quality/half.ts'
import { readItems } from '../../bench/quality/items.ts'
import type { Query } from '../../bench/quality/search/query.ts'

const queries = HALVES.flatMap((half) => readItems<Query>('search', half))
const questions = HALVES.flatMap((half) => readItems<Question>('questions', half))

describe('the sets', () => {
  it.each(['search', 'questions', 'monitors'])('%s has halves without a common subject', (set) => {
    const [tuning = new Set(), held = new Set()] = HALVES.map(
      (half) => new Set(readItems(set, half).map(({ subject }) => subject)),
    )
    expect(tuning.size).toBeGreaterThan(0)
    expect(held.size).toBeGreaterThan(0)
    expect([...tuning].filter((subject) => held.has(subject))).toEqual([])
  })

  it('divides subjects by the first byte of SHA-256', () => {
    // f2… and bf…
    expect([halfOf('harbour-auth'), halfOf('tidewatch')]).toEqual(['tuning', 'held'])
  })

  it('has at least 200 descriptions and 100 paraphrases, each once', () => {
    const count = (kind: Query['kind']) => queries.filter((query) => query.kind === kind).length
    expect(count('description')).toBeGreaterThanOrEqual(200)
    expect(count('paraphrase')).toBeGreaterThanOrEqual(100)
    expect(new Set(queries.map(({ query }) => query.toLowerCase())).size).toBe(queries.length)
  })

  it('has no name of a package in its queries', () => {
    const named = queries.filter(({ subject, query }) =>
      ` ${query.toLowerCase().replaceAll(/[,.]?\s/g, ' ')} `.includes(` ${subject} `),
    )
    expect(named).toEqual([])
  })

  it('has at least 120 questions with an answer and 40 without one', () => {
    const isAnswerable = (question: Question) =>
      question.form === 'json'
        ? Object.values(expectedFields(question)).some((expected) => expected !== 'unknown')
        : question.expect !== 'unknown'
    const answerable = questions.filter(isAnswerable).length
    expect(answerable).toBeGreaterThanOrEqual(120)
    expect(questions.length - answerable).toBeGreaterThanOrEqual(40)
    expect(new Set(questions.map(({ id }) => id)).size).toBe(questions.length)
  })
})
