import { describe, expect, it } from 'vitest'
import {
  type StatementFeatures,
  RANKING_FEATURES,
  ACCEPTANCE_FEATURES,
} from '../../../../src/service/processor/evidence/features.ts'
import {
  ACCEPTANCE_INPUTS,
  compareStatements,
  likelihoodOf,
} from '../../../../src/service/processor/evidence/statement-model.ts'
import {
  ACCEPTANCE,
  ACCEPTED,
  HIGH,
  MEDIUM,
  RANKING,
} from '../../../../src/service/processor/evidence/statement-weights.ts'
import { minimise } from '../../../../bench/quality/answers/minimise.ts'
import { fitAcceptance } from '../../../../bench/quality/answers/model.ts'

const NONE: StatementFeatures = Object.assign(
  {},
  ...[...RANKING_FEATURES, ...ACCEPTANCE_FEATURES].map((name) => ({ [name]: 0 })),
)

const statement = (text: string, features: Partial<StatementFeatures>) => ({
  unit: { text },
  features: { ...NONE, ...features },
})

describe('the fitted weights', () => {
  it.each([
    ['words in the statement', RANKING.inUnit],
    ['words in its heading', RANKING.inHeading],
    ['a value of the asked form', RANKING.ofForm],
    ['how much of the question stands around it', ACCEPTANCE.weights.coverage],
    ['its lead', ACCEPTANCE.weights.lead],
  ])('speak for a statement by %s', (_, weight) => {
    expect(weight).toBeGreaterThan(0)
  })

  it.each([
    ['the most distinctive word is missing', RANKING.topMissing],
    ['a name of the question is missing', RANKING.namesMissing],
    ['it has no value of the asked form', RANKING.notOfForm],
    ['words are missing', ACCEPTANCE.weights.missingTerms],
    ['no passage has words of the question', ACCEPTANCE.weights.unknownWords],
    ['no passage has a name of the question', ACCEPTANCE.weights.unknownNames],
  ])('speak against a statement where %s', (_, weight) => {
    expect(weight).toBeLessThan(0)
  })

  it('call an answer high only above medium, and medium only where it is accepted', () => {
    expect(HIGH).toBeGreaterThan(MEDIUM)
    expect(MEDIUM).toBeGreaterThanOrEqual(ACCEPTED)
  })
})

describe('statements of a question', () => {
  it('are returned best first, each with its lead over the best other one', () => {
    const [first, second] = compareStatements([
      statement('around', { around: 0.5 }),
      statement('inside', { inUnit: 0.5 }),
    ])
    expect(first).toMatchObject({ unit: { text: 'inside' }, score: 1 })
    expect(first?.lead).toBeGreaterThan(0)
    expect(second?.lead).toBeLessThan(0)
    expect(second?.score).toBeLessThan(1)
  })

  it('are no rivals of the same text in another document', () => {
    const [first] = compareStatements([
      statement('same', { inUnit: 0.3 }),
      statement('same', { inUnit: 0.3 }),
    ])
    expect(first?.lead).toBeGreaterThan(0)
  })

  it('are less likely the answer when no passage has a word of the question', () => {
    const known = compareStatements([statement('one', { inUnit: 0.8, coverage: 0.8 })])
    const unknown = compareStatements([statement('one', { inUnit: 0.8, coverage: 0.8, unknownWords: 0.5 })])
    const [a, b] = [...known, ...unknown].map(likelihoodOf)
    expect(b).toBeLessThan(a ?? 0)
  })
})

describe('the fit', () => {
  it('finds the minimum of a function', () => {
    const [x, y] = minimise(
      ([a = 0, b = 0]) => ({
        value: (a - 3) ** 2 + 10 * (b + 1) ** 2,
        gradient: [2 * (a - 3), 20 * (b + 1)],
      }),
      2,
    )
    expect(x).toBeCloseTo(3, 3)
    expect(y).toBeCloseTo(-1, 3)
  })

  it('gives the input that separates right from wrong statements the greatest weight', () => {
    const at = ACCEPTANCE_INPUTS.indexOf('coverage')
    const inputsOf = (coverage: number) => ACCEPTANCE_INPUTS.map((_, index) => (index === at ? coverage : 0))
    const judgements = Array.from({ length: 200 }, (_, index) => ({
      inputs: inputsOf((index % 10) / 10),
      isRight: index % 10 >= 5,
      weight: 1,
    }))
    const fitted = fitAcceptance(judgements)
    expect(fitted.apply(inputsOf(0.9))).toBeGreaterThan(0)
    expect(fitted.apply(inputsOf(0.1))).toBeLessThan(0)
    expect(fitted.weights.filter((weight) => Math.abs(weight) > 1e-6)).toHaveLength(1)
  })
})
