import { type Block, blocksOf, type Span } from './blocks.ts'
import type { DocumentKind } from './document-kind.ts'
import { manifestPassages } from './manifest.ts'
import { cutText } from '../../protocol/cut-text.ts'

/** A passage shorter than this, in characters, is extended by the next block. */
const MIN_PASSAGE_LENGTH = 300
/** Maximum length of a passage without code, in characters. */
const MAX_PASSAGE_LENGTH = 1_200
/** Maximum length of a passage with code, in characters; more, to avoid splitting code. */
const MAX_CODE_LENGTH = 2_400
/** Maximum length of a block, in characters; leaves space for a heading before it. */
const MAX_BLOCK_LENGTH = 1_000

/** The passages of a document's text, in its order. The text must be trimmed. */
export function passagesOf(text: string, kind: DocumentKind | undefined): Span[] {
  return kind === 'manifest' ? manifestPassages(text) : splitPassages(text)
}

/**
 * Splits a text into passages: short paragraphs together, headings with the block after them, and whole code blocks if they
 * are not too long. Only white space between two passages belongs to no passage. The text must be trimmed.
 */
export function splitPassages(text: string): Span[] {
  const passages: Span[] = []
  let current: GrowingPassage | undefined
  for (const whole of blocksOf(text)) {
    for (const block of pieces(text, whole)) {
      if (current !== undefined && belongs(current, block)) {
        current = extended(current, block)
        continue
      }
      if (current !== undefined) passages.push({ start: current.start, end: current.end })
      current = {
        start: block.start,
        end: block.end,
        level: block.level,
        headingOnly: block.kind === 'heading',
      }
    }
  }
  if (current !== undefined) passages.push({ start: current.start, end: current.end })
  return passages
}

/** A passage that may still grow. */
interface GrowingPassage extends Span {
  /** Level of the heading that it begins with; 0 if there is none. */
  readonly level: number
  readonly headingOnly: boolean
}

function belongs(draft: GrowingPassage, block: Block): boolean {
  const length = block.end - draft.start
  if (length > (block.kind === 'code' ? MAX_CODE_LENGTH : MAX_PASSAGE_LENGTH)) return false
  const short = draft.end - draft.start < MIN_PASSAGE_LENGTH
  if (block.kind !== 'heading') return short || draft.headingOnly
  // A subsection may be in the passage of its section. A new section begins a passage.
  return draft.level > 0 && block.level > draft.level && (short || draft.headingOnly)
}

function extended(draft: GrowingPassage, block: Block): GrowingPassage {
  return { ...draft, end: block.end, headingOnly: draft.headingOnly && block.kind === 'heading' }
}

/** Splits a block that is too long: lists and quotes between their children, others at the best position. */
function* pieces(text: string, block: Block): Generator<Block> {
  const longest = block.kind === 'code' ? MAX_CODE_LENGTH : MAX_BLOCK_LENGTH
  if (block.end - block.start <= longest) yield block
  else if (block.children.length > 0) yield* runs(text, block)
  else yield* cuts(text, block, longest)
}

/** The children of a block, merged up to the maximum length. */
function* runs(text: string, block: Block): Generator<Block> {
  let run: Block | undefined
  for (const child of block.children) {
    if (run !== undefined && child.end - run.start <= MAX_BLOCK_LENGTH) {
      run = { ...block, start: run.start, end: child.end }
      continue
    }
    if (run !== undefined) yield* pieces(text, run)
    run = child
  }
  if (run !== undefined) yield* pieces(text, run)
}

function* cuts(text: string, block: Block, longest: number): Generator<Block> {
  let start = block.start
  while (block.end - start > longest) {
    const cut = cutBefore(text, start, start + longest)
    const end = trimmedEnd(text, start, cut)
    if (end > start) yield { ...block, start, end }
    start = skipSpace(text, cut, block.end)
  }
  if (start < block.end) yield { ...block, start }
}

/** The best position to split a text: after a line, a sentence or a word, or else before `limit`. */
function cutBefore(text: string, start: number, limit: number): number {
  const window = text.slice(start, limit)
  const min = window.length / 4
  const newline = window.lastIndexOf('\n')
  if (newline > min) return start + newline + 1
  const sentence = Math.max(...['. ', '! ', '? '].map((end) => window.lastIndexOf(end)))
  if (sentence > min) return start + sentence + 2
  const space = window.lastIndexOf(' ')
  if (space > min) return start + space + 1
  return cutText(text, limit).length
}

function trimmedEnd(text: string, start: number, end: number): number {
  return start + text.slice(start, end).trimEnd().length
}

function skipSpace(text: string, start: number, end: number): number {
  return end - text.slice(start, end).trimStart().length
}
