// Written by `npm run quality:fit`: fitted to the questions of bench/quality/questions/tuning.json. See docs/quality.md.
import type { ACCEPTANCE_FEATURES, RANKING_FEATURES } from './features.ts'

/** The log-odds that each feature adds to a statement, compared with the others of its question. */
export const RANKING: Readonly<Record<(typeof RANKING_FEATURES)[number], number>> = {
  inUnit: 6.463,
  asSynonym: 2.669,
  asKind: 4.336,
  inHeading: 5.791,
  inComment: 5.213,
  around: 0.174,
  topInUnit: -0.199,
  topMissing: -0.927,
  namesInUnit: 0.399,
  namesMissing: -0.357,
  defines: 1.053,
  phrases: 2.388,
  density: 3.304,
  ofForm: 2.727,
  notOfForm: -1.044,
  newName: 1.057,
  code: -1.471,
  row: 0.376,
  item: -0.068,
  long: 0.664,
  short: -0.554,
  announces: -0.342,
  open: -2.387,
  manifest: -1.48,
  changelog: -0.505,
  page: -0.025,
  late: -1.315,
}

/** The log-odds that each input adds to a statement's being the answer. */
export const ACCEPTANCE: {
  readonly bias: number
  readonly weights: Readonly<Record<(typeof ACCEPTANCE_FEATURES)[number] | 'rank' | 'lead', number>>
} = {
  bias: -2.989,
  weights: {
    inUnit: 0.731,
    inHeading: 1.194,
    ofForm: 0.132,
    notOfForm: -0.615,
    newName: 0.3,
    namesMissing: -0.342,
    open: -1.257,
    coverage: 1.329,
    direct: 0.929,
    missingTerms: -0.137,
    unknownWords: -0.613,
    unknownNames: -0.57,
    rank: 0.138,
    lead: 0.363,
  },
}

/** Minimum likelihood of an answer. */
export const ACCEPTED = 0.32

/** Minimum likelihood of an answer that is called `high`. */
export const HIGH = 0.74

/** Minimum likelihood of an answer that is called `medium`. */
export const MEDIUM = 0.33
