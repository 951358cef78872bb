import { ACCEPTANCE_INPUTS } from '../../../src/service/processor/evidence/statement-model.ts'
import { RANKING_FEATURES } from '../../../src/service/processor/evidence/features.ts'
import { dot, minimise } from './minimise.ts'

/** A fitted linear function of named inputs. */
export interface Linear {
  readonly names: readonly string[]
  readonly weights: readonly number[]
  /** For a standard deviation of each input, which makes them comparable. */
  readonly scaled: readonly number[]
  readonly bias: number
  apply(inputs: readonly number[]): number
}

/** A statement of a question. */
interface Choice {
  readonly inputs: readonly number[]
  readonly isRight: boolean
}

/** A statement, and whether it is the answer. */
export interface Judgement extends Choice {
  /** How much it counts. */
  readonly weight: number
}

/** How strongly weights are drawn to zero. Chosen by cross-validation. */
const RANKING_PENALTY = 10
const ACCEPTANCE_PENALTY = 30
const LEAST_SCALE = 0.1

/** Fits a conditional logit model: the odds of a right statement among all statements of its question. */
export function fitRanking(questions: readonly (readonly Choice[])[]): Linear {
  const scales = scalesOf(questions.flat().map(({ inputs }) => inputs))
  const scaled = questions.map((choices) =>
    choices.map(({ inputs, isRight }) => ({ inputs: divided(inputs, scales), isRight })),
  )
  const weights = minimise((at) => {
    let value = penalty(at, RANKING_PENALTY)
    const gradient = at.map((weight) => weight * RANKING_PENALTY)
    for (const choices of scaled) {
      const odds = exponentials(choices.map(({ inputs }) => dot(at, inputs)))
      const all = sumOf(odds)
      const right = sumOf(odds.filter((_, index) => choices[index]?.isRight === true))
      value -= Math.log(right / all)
      for (const [index, { inputs, isRight }] of choices.entries()) {
        const odd = odds[index] ?? 0
        add(gradient, inputs, odd / all - (isRight ? odd / right : 0))
      }
    }
    return { value, gradient }
  }, scales.length)
  return linear(RANKING_FEATURES, weights, scales, 0)
}

/** Fits a logistic model: the probability that a statement is the answer. */
export function fitAcceptance(judgements: readonly Judgement[]): Linear {
  const scales = scalesOf(judgements.map(({ inputs }) => inputs))
  const scaled = judgements.map((one) => ({ ...one, inputs: [...divided(one.inputs, scales), 1] }))
  const weights = minimise((at) => {
    const free = at.slice(0, -1)
    let value = penalty(free, ACCEPTANCE_PENALTY)
    const gradient = [...free.map((weight) => weight * ACCEPTANCE_PENALTY), 0]
    for (const { inputs, isRight, weight } of scaled) {
      const odds = dot(at, inputs)
      value += weight * (Math.log1p(Math.exp(-Math.abs(odds))) + Math.max(0, isRight ? -odds : odds))
      add(gradient, inputs, weight * (1 / (1 + Math.exp(-odds)) - Number(isRight)))
    }
    return { value, gradient }
  }, scales.length + 1)
  return linear(ACCEPTANCE_INPUTS, weights.slice(0, -1), scales, weights.at(-1) ?? 0)
}

function linear(
  names: readonly string[],
  scaled: readonly number[],
  scales: readonly number[],
  bias: number,
): Linear {
  const weights = divided(scaled, scales)
  return { names, weights, scaled, bias, apply: (inputs) => bias + dot(weights, inputs) }
}

/** The standard deviation of each input; not less than a tenth, so that a rare input gets no great weight. */
function scalesOf(rows: readonly (readonly number[])[]): number[] {
  const size = rows[0]?.length ?? 0
  return Array.from({ length: size }, (_, index) => {
    const column = rows.map((row) => row[index] ?? 0)
    const mean = sumOf(column) / column.length
    const deviation = Math.sqrt(sumOf(column.map((value) => (value - mean) ** 2)) / column.length)
    return Math.max(LEAST_SCALE, deviation)
  })
}

function exponentials(values: readonly number[]): number[] {
  const most = Math.max(...values)
  return values.map((value) => Math.exp(value - most))
}

function penalty(weights: readonly number[], strength: number): number {
  return (strength / 2) * dot(weights, weights)
}

function divided(values: readonly number[], by: readonly number[]): number[] {
  return values.map((value, index) => value / (by[index] ?? 1))
}

function add(to: number[], values: readonly number[], times: number): void {
  for (const [index, value] of values.entries()) to[index] = (to[index] ?? 0) + times * value
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0)
}
