import { setImmediate } from 'node:timers/promises'
import type { Corpus } from '../corpus/corpus.ts'
import { passagesOf } from '../corpus/passages.ts'
import type { SourcePassage } from '../processor/passages/place.ts'
import { stemsOf } from '../processor/words/vocabulary.ts'
import type { Effort } from './generators.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** A passage about an entity, with the stems of its words and of its document's title. */
export interface EntityPassage extends SourcePassage {
  readonly stems: ReadonlySet<string>
}

/**
 * The passages of the entity at a URL, in the order of its documents; none if the index has lost it. Yields to the event loop
 * between documents.
 */
export async function readEntity(corpus: Corpus, url: string, effort: Effort): Promise<EntityPassage[]> {
  const passages: EntityPassage[] = []
  let charactersLeft = effort.characters
  for (const source of corpus.entity(url, effort.documents)?.documents ?? []) {
    const document = corpus.document(source.url)
    if (document === undefined || charactersLeft <= 0) continue
    const text = cutText(document.text, charactersLeft)
    charactersLeft -= text.length
    for (const { start, end } of passagesOf(text, source.kind)) {
      const passage = text.slice(start, end)
      const { url: at, title, kind } = source
      passages.push({ url: at, title, kind, text: passage, stems: stemsOf(`${title} ${passage}`) })
    }
    await setImmediate()
  }
  return passages
}
