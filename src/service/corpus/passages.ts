import { type Block, blocksOf, type Span } from './blocks.ts'

/** A passage shorter than this, in characters, takes in what follows. */
const SHORT_PASSAGE = 300
/** Characters of a passage, at the most, when it has no code in it. */
const LONGEST_PASSAGE = 1_200
/** Characters of a passage with code: more, since half a listing is of no use. */
const LONGEST_CODE = 2_400
/** Characters of one block; leaves room for the heading before it. */
const LONGEST_BLOCK = 1_000

/**
 * Splits a text into passages: paragraphs taken together until they are worth reading, headings with what follows them,
 * code blocks whole where they are not too long. Between two passages, and nowhere else, there is white space that
 * belongs to none. The text must not begin or end with white space.
 */
export function splitPassages(text: string): Span[] {
  const passages: Span[] = []
  let current: Draft | undefined
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
interface Draft extends Span {
  /** Level of the heading that it begins with, 0 where it begins with none. */
  readonly level: number
  readonly headingOnly: boolean
}

function belongs(draft: Draft, block: Block): boolean {
  const length = block.end - draft.start
  if (length > (block.kind === 'code' ? LONGEST_CODE : LONGEST_PASSAGE)) return false
  const short = draft.end - draft.start < SHORT_PASSAGE
  if (block.kind !== 'heading') return short || draft.headingOnly
  // A subsection may go with the section that it is in, a new section stands for itself.
  return draft.level > 0 && block.level > draft.level && (short || draft.headingOnly)
}

function extended(draft: Draft, block: Block): Draft {
  return { ...draft, end: block.end, headingOnly: draft.headingOnly && block.kind === 'heading' }
}

/** A block as it is, or in pieces when it is too long: lists and quotes in what they hold, the rest where a cut hurts least. */
function* pieces(text: string, block: Block): Generator<Block> {
  const longest = block.kind === 'code' ? LONGEST_CODE : LONGEST_BLOCK
  if (block.end - block.start <= longest) yield block
  else if (block.parts.length > 0) yield* runs(text, block)
  else yield* cuts(text, block, longest)
}

/** The parts of a block, as many together as may be. */
function* runs(text: string, block: Block): Generator<Block> {
  let run: Block | undefined
  for (const part of block.parts) {
    if (run !== undefined && part.end - run.start <= LONGEST_BLOCK) {
      run = { ...block, start: run.start, end: part.end }
      continue
    }
    if (run !== undefined) yield* pieces(text, run)
    run = part
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

/** Where to cut a text that is too long: after a line, a sentence, a word, or else before `limit`. */
function cutBefore(text: string, start: number, limit: number): number {
  const window = text.slice(start, limit)
  const least = window.length / 4
  const newline = window.lastIndexOf('\n')
  if (newline > least) return start + newline + 1
  const sentence = Math.max(...['. ', '! ', '? '].map((end) => window.lastIndexOf(end)))
  if (sentence > least) return start + sentence + 2
  const space = window.lastIndexOf(' ')
  if (space > least) return start + space + 1
  return start + wholeCharacters(window).length
}

/** The text without half a surrogate pair at its end. */
export function wholeCharacters(text: string): string {
  return /[\uD800-\uDBFF]$/.test(text) ? text.slice(0, -1) : text
}

function trimmedEnd(text: string, start: number, end: number): number {
  return start + text.slice(start, end).trimEnd().length
}

function skipSpace(text: string, start: number, end: number): number {
  return end - text.slice(start, end).trimStart().length
}
