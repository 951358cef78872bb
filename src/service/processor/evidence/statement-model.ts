import { ACCEPTANCE_FEATURES, type StatementFeatures, RANKING_FEATURES } from './features.ts'
import { ACCEPTANCE, RANKING } from './statement-weights.ts'

/** A statement with its features. */
export interface Featured {
  readonly unit: { readonly text: string }
  readonly features: StatementFeatures
}

/** How a statement compares with the others of its question. */
export interface Compared {
  /** Log-odds of being the best, up to a constant that is the same for all statements of the question. */
  readonly rank: number
  /** How far its rank is above the rank of the best other statement; negative if it is below. */
  readonly lead: number
  /** 1 for the best statement, less for the others. */
  readonly score: number
}

/** The features that decide whether a statement is the answer. */
export const ACCEPTANCE_INPUTS = [...ACCEPTANCE_FEATURES, 'rank', 'lead'] as const

/** The bound of a lead: a statement that is further ahead is not more certain. */
const MAX_LEAD = 3

/** A score is an exponential of the distance in ranks from the best, divided by this: 0.75 is 1.4 ranks behind. */
const RANKS_PER_SCORE = 5

/** Compares the statements of a question, and returns them best first. */
export function compareStatements<Item extends Featured>(
  statements: readonly Item[],
  rankOf: (features: StatementFeatures) => number = fittedRank,
): (Item & Compared)[] {
  const ranked = statements
    .map((statement) => ({ statement, rank: rankOf(statement.features) }))
    .toSorted((a, b) => b.rank - a.rank)
  const [best] = ranked
  const textOf = (one: typeof best) => one?.statement.unit.text
  // The same text in two documents is no rival of itself.
  const second = ranked.find((one) => textOf(one) !== textOf(best))
  const compared: (Item & Compared)[] = []
  for (const one of ranked) {
    const { statement, rank } = one
    const rival = textOf(one) === textOf(best) ? second : best
    // A statement without a word of the question ranks 0.
    const lead = rank - Math.max(0, rival?.rank ?? 0)
    const score = Math.exp((rank - (best?.rank ?? 0)) / RANKS_PER_SCORE)
    compared.push({ ...statement, rank, lead: Math.min(MAX_LEAD, Math.max(-MAX_LEAD, lead)), score })
  }
  return compared
}

function fittedRank(features: StatementFeatures): number {
  return RANKING_FEATURES.reduce((sum, name) => sum + RANKING[name] * features[name], 0)
}

/** How likely a statement is the answer, 0 to 1. */
export function likelihoodOf({ features, rank, lead }: Featured & Compared): number {
  const inputs = { ...features, rank, lead }
  const logOdds = ACCEPTANCE_INPUTS.reduce(
    (sum, name) => sum + ACCEPTANCE.weights[name] * inputs[name],
    ACCEPTANCE.bias,
  )
  return 1 / (1 + Math.exp(-logOdds))
}
