import type { FindAllGenerator } from '../../protocol/find-all.ts'

/** The effort of a generator. */
export interface Effort {
  /** Maximum number of candidates. */
  readonly candidates: number
  /** Number of candidates in a row without a match after which a run ends. */
  readonly patience: number
  /** Maximum number of documents of a candidate that are read. */
  readonly documents: number
  /** Maximum length of the text of a candidate that is read, in characters. */
  readonly characters: number
}

/** The effort of each generator; beyond the interface document. */
export const EFFORTS: Readonly<Record<FindAllGenerator, Effort>> = {
  preview: { candidates: 10, patience: 10, documents: 2, characters: 20_000 },
  base: { candidates: 100, patience: 30, documents: 4, characters: 40_000 },
  core: { candidates: 300, patience: 100, documents: 8, characters: 100_000 },
  pro: { candidates: 1_000, patience: 300, documents: 16, characters: 250_000 },
}
