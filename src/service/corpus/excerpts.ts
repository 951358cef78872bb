import type { ExcerptBudget } from './corpus.ts'
import { wholeCharacters } from './passages.ts'

/** A passage and the white space between it and the next one. */
export interface StoredPassage {
  readonly text: string
  readonly gap: string
}

/** The passages that {@link excerptsAround} may take, so that they can be read at once. There may be none with such an id. */
export function passagesAround(ids: readonly number[], { excerptsPerResult }: ExcerptBudget): number[] {
  return ids.slice(0, excerptsPerResult).flatMap((id) => [id - 1, id, id + 1])
}

/**
 * Excerpts around the best passages of one document. The passages come first, best first, as many as the budget holds;
 * what is left of it goes to their neighbours. Neighbours that were both chosen become one excerpt.
 *
 * @param ids Passages that fit, best first.
 * @param passages What was read of {@link passagesAround}.
 */
export function excerptsAround(
  ids: readonly number[],
  passages: ReadonlyMap<number, StoredPassage>,
  { charactersPerResult, excerptsPerResult }: ExcerptBudget,
): string[] {
  const [best] = ids
  if (best === undefined || excerptsPerResult < 1 || charactersPerResult < 1) return []
  const chosen = new Map<number, StoredPassage>()
  let left = charactersPerResult

  function choose(id: number): void {
    if (chosen.has(id)) return
    const passage = passages.get(id)
    // The gap is counted too: it is part of the excerpt once the next passage joins it.
    const length = passage === undefined ? 0 : passage.text.length + passage.gap.length
    if (passage === undefined || length > left) return
    chosen.set(id, passage)
    left -= length
  }

  const core = ids.slice(0, excerptsPerResult)
  for (const id of core) choose(id)
  if (!chosen.has(best)) {
    const excerpt = shorten(passages.get(best)?.text ?? '', charactersPerResult)
    return excerpt === '' ? [] : [excerpt]
  }
  // What follows explains more than what went before.
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

/** The beginning of a text, up to the end of a word. */
function shorten(text: string, length: number): string {
  if (text.length <= length) return text
  const head = wholeCharacters(text.slice(0, length))
  const cut = head.search(/\s\S*$/)
  return (cut > length / 2 ? head.slice(0, cut) : head).trimEnd()
}
