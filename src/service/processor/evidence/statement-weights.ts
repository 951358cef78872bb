// Written by `npm run quality:fit`: fitted to the questions of bench/quality/questions/tuning.json. See docs/internals/quality.md.
import type { ACCEPTANCE_FEATURES, RANKING_FEATURES } from './features.ts'

/** The log-odds that each feature adds to a statement, compared with the others of its question. */
export const RANKING: Readonly<Record<(typeof RANKING_FEATURES)[number], number>> = {
  inUnit: 6.671,
  asSynonym: 3.094,
  asKind: 3.752,
  inHeading: 5.757,
  inComment: 4.961,
  around: 0.565,
  topInUnit: -0.255,
  topMissing: -0.922,
  namesInUnit: -0.007,
  namesMissing: -0.467,
  defines: 1.253,
  phrases: 2.785,
  density: 3.22,
  ofForm: 2.625,
  notOfForm: -0.939,
  newName: 1.006,
  code: -1.486,
  row: 0.155,
  item: -0.018,
  long: 0.546,
  short: -0.413,
  announces: -0.458,
  open: -2.418,
  manifest: -1.753,
  changelog: -0.581,
  page: -0.031,
  late: -0.828,
}

/** The log-odds that each input adds to a statement's being the answer. */
export const ACCEPTANCE: {
  readonly bias: number
  readonly weights: Readonly<Record<(typeof ACCEPTANCE_FEATURES)[number] | 'rank' | 'lead', number>>
} = {
  bias: -3.229,
  weights: {
    inUnit: 0.72,
    inHeading: 1.375,
    ofForm: 0.11,
    notOfForm: -0.513,
    newName: 0.22,
    namesMissing: -0.305,
    open: -1.206,
    coverage: 1.386,
    direct: 0.923,
    missingTerms: -0.117,
    unknownWords: -0.565,
    unknownNames: -0.589,
    rank: 0.149,
    lead: 0.386,
  },
}

/** Minimum likelihood of an answer. */
export const ACCEPTED = 0.39

/** Minimum likelihood of an answer that is called `high`. */
export const HIGH = 0.86

/** Minimum likelihood of an answer that is called `medium`. */
export const MEDIUM = 0.45
