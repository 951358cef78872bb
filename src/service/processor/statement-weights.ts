// Written by `npm run quality:fit`: fitted to the questions of bench/quality/questions/tuning.json. See docs/quality.md.
import type { ACCEPTANCE_FEATURES, RANKING_FEATURES } from './features.ts'

/** The log-odds that each feature adds to a statement, compared with the others of its question. */
export const RANKING: Readonly<Record<(typeof RANKING_FEATURES)[number], number>> = {
  inUnit: 5.913,
  asSynonym: 2.821,
  asKind: 4.237,
  inHeading: 5.615,
  inComment: 0.292,
  around: 0.445,
  topInUnit: -0.029,
  topMissing: -0.71,
  namesInUnit: 0.634,
  namesMissing: -0.439,
  defines: 0.844,
  phrases: 3.067,
  density: 2.9,
  ofForm: 2.592,
  notOfForm: -1.06,
  newName: 0.764,
  code: -1.378,
  row: 0.004,
  item: -0.079,
  long: 0.416,
  short: -0.463,
  announces: -0.335,
  open: -2.665,
  manifest: -0.209,
  changelog: -0.418,
  page: -0.058,
  late: -0.901,
}

/** The log-odds that each input adds to a statement's being the answer. */
export const ACCEPTANCE: {
  readonly bias: number
  readonly weights: Readonly<Record<(typeof ACCEPTANCE_FEATURES)[number] | 'rank' | 'lead', number>>
} = {
  bias: -2.911,
  weights: {
    inUnit: 0.595,
    inHeading: 0.826,
    ofForm: 0.35,
    notOfForm: -0.608,
    newName: 0.21,
    namesMissing: -0.261,
    open: -1.702,
    coverage: 1.43,
    direct: 1.06,
    missingTerms: -0.143,
    unknownWords: -0.709,
    unknownNames: -0.409,
    rank: 0.136,
    lead: 0.326,
  },
}

/** Minimum likelihood of an answer. */
export const ACCEPTED = 0.31

/** Minimum likelihood of an answer that is called `high`. */
export const HIGH = 0.8

/** Minimum likelihood of an answer that is called `medium`. */
export const MEDIUM = 0.61
