import type { Measure } from '../figure.ts'
import { measureSearch } from '../search-speed.ts'

/** The embedded service's search over 10,000 documents. */
export const measure: Measure = (folder) => measureSearch(folder, 10_000)
