import { describe, expect, it } from 'vitest'
import type { Given } from '../../bench/quality/answers/ask.ts'
import {
  isUnknownFailure,
  isUnknownText,
  scoreField,
  scoreText,
} from '../../bench/quality/answers/compare.ts'
import { answerFigures } from '../../bench/quality/answers/figures.ts'
import type { Question } from '../../bench/quality/answers/question.ts'
import { scoreAnswer, type Scored } from '../../bench/quality/answers/score.ts'
import type { Figure } from '../../bench/quality/report.ts'

describe('the score of an answer in prose', () => {
  const licence = { accept: ['MIT'], refuse: ['ISC'] }

  it('is right with an accepted text, and wrong with none', () => {
    expect(scoreText('It is under the **mit**  licence.', licence, 'words')).toBe('right')
    expect(scoreText('It is under the BSD licence.', licence, 'words')).toBe('wrong')
  })

  it('is wrong with an accepted and a refused text', () => {
    expect(scoreText('MIT or ISC', licence, 'words')).toBe('wrong')
  })

  it.each(['v15', '5.1', '1,500', '15', '2.5'])('does not find 5 in %s', (text) => {
    expect(scoreText(`It is ${text} now`, { accept: ['5'] }, 'text')).toBe('wrong')
  })

  it.each(['5', 'v5', '5.', '(5)', 'Node 5, or later'])('finds 5 in %s', (text) => {
    expect(scoreText(`It is ${text}`, { accept: ['5'] }, 'text')).toBe('right')
  })

  it('is wrong for a text that is so long that it has every answer', () => {
    expect(scoreText(`MIT ${'word '.repeat(250)}`, licence, 'words')).toBe('wrong')
  })

  it('applies regular expressions to the answer as it is', () => {
    expect(scoreText('MIT', { accept: ['/^mit$/'] }, 'words')).toBe('wrong')
    expect(scoreText('MIT', { accept: ['/^mit$/i'] }, 'words')).toBe('right')
  })

  it.each(['', 'No answer was found.', 'The documents do not say.'])('is unknown for "%s"', (text) => {
    expect(scoreText(text, licence, 'words')).toBe('unknown')
    expect(scoreText(text, 'unknown', 'words')).toBe('right')
  })

  it('is wrong where something is answered that the documents do not say', () => {
    expect(scoreText('It costs 5 euros', 'unknown', 'words')).toBe('wrong')
    expect(isUnknownText('He said that the documents do not say it')).toBe(false)
  })
})

describe('the score of a field', () => {
  it('compares the whole value and its type', () => {
    expect(scoreField('MIT', ['MIT'])).toBe('right')
    expect(scoreField('The MIT License', ['MIT'])).toBe('wrong')
    expect(scoreField(22, [22])).toBe('right')
    expect(scoreField('22', [22])).toBe('wrong')
    expect(scoreField(false, [true])).toBe('wrong')
  })

  it('compares lists in any order', () => {
    expect(scoreField(['b', 'A'], [['a', 'b']])).toBe('right')
    expect(scoreField(['a', 'a'], [['a', 'b']])).toBe('wrong')
    expect(scoreField(['a'], [['a', 'b']])).toBe('wrong')
  })

  it.each([undefined, null, '', []])('is unknown for %j', (value) => {
    expect(scoreField(value, ['MIT'])).toBe('unknown')
    expect(scoreField(value, 'unknown')).toBe('right')
  })

  it('is wrong for an invented value', () => {
    expect(scoreField(0, 'unknown')).toBe('wrong')
    expect(scoreField(false, 'unknown')).toBe('wrong')
  })
})

const json: Question = {
  id: 'a',
  subject: 'a',
  form: 'json',
  question: 'a',
  schema: { type: 'object', properties: { licence: {}, price: {} } },
  expect: { licence: ['MIT'], price: 'unknown' },
}

function given(answer: Partial<Given>): Given {
  return {
    content: undefined,
    confidence: () => 'high',
    citations: () => 1,
    excerpts: [],
    ...answer,
  }
}

describe('the score of a JSON answer', () => {
  it('is that of each field', () => {
    const outcomes = scoreAnswer(json, given({ content: { licence: 'MIT', price: 5 } }))
    expect(outcomes.map(({ field, outcome }) => [field, outcome])).toEqual([
      ['licence', 'right'],
      ['price', 'wrong'],
    ])
  })

  it('is unknown for each field of a run that failed since the documents do not say', () => {
    const failure = 'The documents do not say what the output schema requires. licence: it is required'
    expect(isUnknownFailure(failure)).toBe(true)
    const outcomes = scoreAnswer(json, given({ failure }))
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['unknown', 'right'])
  })

  it('is wrong for each field of a run that failed for another reason', () => {
    const outcomes = scoreAnswer(json, given({ failure: 'out of memory' }))
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['wrong', 'wrong'])
  })
})

describe('the figures of answers', () => {
  const answer = (outcome: Scored['outcome'], confidence: string, isAnswerable = true): Scored => ({
    field: 'output',
    isAnswerable,
    outcome,
    isGiven: outcome === 'wrong' || (isAnswerable && outcome === 'right'),
    confidence,
    citations: 1,
  })
  const value = (figures: readonly Figure[], name: string) =>
    figures.find((figure) => figure.name === name)?.value
  const figures = answerFigures([
    { form: 'words', answers: [answer('right', 'high')], excerpts: 3, misquoted: 1 },
    { form: 'words', answers: [answer('right', 'low')], excerpts: 1, misquoted: 0 },
    { form: 'text', answers: [answer('wrong', 'high')], excerpts: 0, misquoted: 0 },
    { form: 'text', answers: [answer('unknown', 'high')], excerpts: 0, misquoted: 0 },
    { form: 'text', answers: [answer('right', 'high', false)], excerpts: 0, misquoted: 0 },
    {
      form: 'json',
      answers: [answer('wrong', 'high', false), answer('right', 'low')],
      excerpts: 0,
      misquoted: 0,
    },
  ])

  it('separate questions with and without an answer', () => {
    expect(value(figures, 'right')).toBe(3 / 5)
    expect(value(figures, 'wrong')).toBe(1 / 5)
    expect(value(figures, 'without an answer: unknown')).toBe(1 / 2)
  })

  it('count an invented answer called high against the calibration, and no "unknown"', () => {
    expect(value(figures, 'right of those called high')).toBe(1 / 3)
    expect(value(figures, 'called high of the right ones')).toBe(1 / 3)
  })

  it('count a JSON object as right only where each field is', () => {
    expect(value(figures, 'whole JSON right')).toBe(0)
  })

  it('count a citation that is not word for word', () => {
    expect(value(figures, 'citations word for word')).toBe(3 / 4)
  })
})

it('does not take a whole passage in a field for the value that a pattern finds in it', () => {
  const passage = `${'The software is provided as is. '.repeat(12)}Copyright Eemeli Aro.`

  expect(scoreField('Eemeli Aro <eemeli@example.com>', ['/Eemeli Aro/'])).toBe('right')
  expect(scoreField(passage, ['/Eemeli Aro/'])).toBe('wrong')
})
