// Written by `npm run quality:fit`: fitted to the questions of bench/quality/questions/tuning.json. See docs/quality.md.
import type { ACCEPTANCE_FEATURES, RANKING_FEATURES } from './features.ts'

/** The log-odds that each feature adds to a statement, compared with the others of its question. */
export const RANKING: Readonly<Record<(typeof RANKING_FEATURES)[number], number>> = {
  inUnit: 6.492,
  asSynonym: 3.024,
  asKind: 4.372,
  inHeading: 5.877,
  inComment: 5.33,
  around: -0.197,
  topInUnit: -0.106,
  topMissing: -0.862,
  namesInUnit: 0.371,
  namesMissing: -0.36,
  defines: 1.048,
  phrases: 2.526,
  density: 3.204,
  ofForm: 2.762,
  notOfForm: -1.057,
  newName: 1.061,
  code: -1.469,
  row: 0.378,
  item: -0.048,
  long: 0.612,
  short: -0.562,
  announces: -0.351,
  open: -2.417,
  manifest: -1.436,
  changelog: -0.53,
  page: -0.026,
  late: -1.281,
}

/** The log-odds that each input adds to a statement's being the answer. */
export const ACCEPTANCE: {
  readonly bias: number
  readonly weights: Readonly<Record<(typeof ACCEPTANCE_FEATURES)[number] | 'rank' | 'lead', number>>
} = {
  bias: -2.991,
  weights: {
    inUnit: 0.722,
    inHeading: 1.16,
    ofForm: 0.125,
    notOfForm: -0.628,
    newName: 0.362,
    namesMissing: -0.363,
    open: -1.262,
    coverage: 1.373,
    direct: 0.866,
    missingTerms: -0.136,
    unknownWords: -0.589,
    unknownNames: -0.58,
    rank: 0.134,
    lead: 0.384,
  },
}

/** Minimum likelihood of an answer. */
export const ACCEPTED = 0.34

/** Minimum likelihood of an answer that is called `high`. */
export const HIGH = 0.74

/** Minimum likelihood of an answer that is called `medium`. */
export const MEDIUM = 0.45
