import type { Measure } from '../figure.ts'
import { measureSearch } from '../search-speed.ts'

/** The same over 100,000 documents, whose indexing takes some minutes. Measured with `--only` alone. */
export const measure: Measure = (folder) => measureSearch(folder, 100_000, '-100k')
