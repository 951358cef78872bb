import type { Span } from './blocks.ts'
import type { ExcerptBudget } from './corpus.ts'
import type { DocumentKind } from './document-kind.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** A passage and the white space between it and the next one. */
export interface StoredPassage {
  readonly text: string
  readonly gap: string
}

/**
 * The passages of a text by their ids, from `first`. Adjacent ones have adjacent ids, and may be one excerpt. Between two passages of a
 * manifest its file may have other text, so their ids are never adjacent.
 */
export function storedPassages(
  text: string,
  spans: readonly Span[],
  kind: DocumentKind | undefined,
  first: number,
): Map<number, StoredPassage> {
  const distance = kind === 'manifest' ? 2 : 1
  return new Map(
    spans.map(({ start, end }, index) => [
      first + index * distance,
      { text: text.slice(start, end), gap: text.slice(end, spans[index + 1]?.start ?? text.length) },
    ]),
  )
}

/** Stored passages by their ids. */
interface StoredPassages {
  get(id: number): StoredPassage | undefined
}

/** The ids of the passages that {@link excerptsAround} may use, to read them at once. Some may not exist. */
export function passagesAround(ids: readonly number[], { excerptsPerResult }: ExcerptBudget): number[] {
  return ids.slice(0, excerptsPerResult).flatMap((id) => [id - 1, id, id + 1])
}

/**
 * Excerpts around the best passages of one document. Takes passages, best first, up to the budget, and then their neighbours.
 * Adjacent passages become one excerpt.
 *
 * @param ids Matching passages, best first.
 * @param passages The stored passages of {@link passagesAround}.
 */
export function excerptsAround(
  ids: readonly number[],
  passages: StoredPassages,
  { charactersPerResult, excerptsPerResult }: ExcerptBudget,
): string[] {
  const [best] = ids
  if (best === undefined || excerptsPerResult < 1 || charactersPerResult < 1) return []
  const chosen = new Map<number, StoredPassage>()
  let remaining = charactersPerResult

  function choose(id: number): void {
    if (chosen.has(id)) return
    const passage = passages.get(id)
    // Includes the gap, which is part of the excerpt if the next passage is added.
    const length = passage === undefined ? 0 : passage.text.length + passage.gap.length
    if (passage === undefined || length > remaining) return
    chosen.set(id, passage)
    remaining -= length
  }

  const core = ids.slice(0, excerptsPerResult)
  for (const id of core) choose(id)
  if (!chosen.has(best)) {
    const excerpt = shorten(passages.get(best)?.text ?? '', charactersPerResult)
    return excerpt === '' ? [] : [excerpt]
  }
  // Following passages first: they explain more than preceding ones.
  for (const id of core) if (chosen.has(id)) choose(id + 1)
  for (const id of core) if (chosen.has(id)) choose(id - 1)
  return excerptsOf(core, chosen)
}

function excerptsOf(core: readonly number[], chosen: ReadonlyMap<number, StoredPassage>): string[] {
  const shown = new Set<number>()
  const excerpts: string[] = []
  for (const id of core) {
    if (!chosen.has(id) || shown.has(id)) continue
    let first = id
    while (chosen.has(first - 1)) first -= 1
    let text = ''
    let gap = ''
    for (let next = first; ; next++) {
      const passage = chosen.get(next)
      if (passage === undefined) break
      shown.add(next)
      text += gap + passage.text
      gap = passage.gap
    }
    excerpts.push(text)
  }
  return excerpts
}

/** Truncates a text after a word. */
export function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  const head = cutText(text, length)
  const cut = head.search(/\s\S*$/)
  return (cut > length / 2 ? head.slice(0, cut) : head).trimEnd()
}
