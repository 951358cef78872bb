import type { Isolated } from '../isolated/isolated.ts'
import { extractFields } from './answer/fields.ts'
import { createPatternMatcher } from './schema/pattern.ts'
import { passagesPlace, type SourcePassage } from './passages/place.ts'
import type { ProcessorResult } from './processor.ts'
import { Reporter } from './answer/reporter.ts'

/** The content to extract from passages that are already found. */
export interface Extraction {
  /** JSON Schema of an object. */
  readonly schema: Readonly<Record<string, unknown>>
  /** The question for which the passages were found. A field without its own words asks this question. */
  readonly question: string
  readonly isolated: Isolated
  readonly signal: AbortSignal
}

/**
 * Extracts the fields of a schema from a few passages, such as the findings of a monitor, as {@link extractFields} does from an index.
 * Rejects if a required field has no value that its schema allows.
 */
export async function extractFrom(
  passages: readonly SourcePassage[],
  { schema, question, isolated, signal }: Extraction,
): Promise<ProcessorResult> {
  const subject = { names: [], text: question }
  return extractFields({
    search: { place: passagesPlace(passages), subject, depth: passages.length },
    schema,
    isolated,
    elementBasis: false,
    patterns: createPatternMatcher(isolated),
    reporter: new Reporter(() => undefined, subject),
    signal,
  })
}
