/** A stretch of a text, from `start` up to but without `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A passage shorter than this, in characters, takes in what follows. */
const SHORT_PASSAGE = 300
/** Characters of a passage, at the most, when it has no code in it. */
const LONGEST_PASSAGE = 1_200
/** Characters of a passage with code: more, since half a listing is of no use. */
const LONGEST_CODE = 2_400
/** Characters of one block; leaves room for the heading before it. */
const LONGEST_BLOCK = 1_000

/** Characters of a heading in HTML, at the most. */
const LONGEST_HTML_HEADING = 500

interface Block extends Span {
  readonly kind: 'heading' | 'code' | 'prose'
  /** 1 for the main heading; 0 for what is none. */
  readonly level: number
}

/**
 * Splits a text into passages: paragraphs taken together until they are worth reading, headings with what follows them,
 * code blocks whole where they are not too long. Between two passages, and nowhere else, there is white space that
 * belongs to none. The text must not begin or end with white space.
 */
export function splitPassages(text: string): Span[] {
  const passages: Span[] = []
  let current: Draft | undefined
  for (const whole of blocks(text)) {
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

/** The headings at the beginning of a text, and its paragraphs that may hold a heading of HTML, in their order. */
export function* headBlocks(
  text: string,
): Generator<{ readonly kind: 'heading' | 'html'; readonly source: string }> {
  for (const { kind, start, end } of blocks(text)) {
    if (kind === 'heading') yield { kind, source: text.slice(start, end) }
    // It may go on behind a blank line.
    else if (kind === 'prose' && /<h[1-3][\s>]/i.test(text.slice(start, end))) {
      yield { kind: 'html', source: text.slice(start, end + LONGEST_HTML_HEADING) }
    }
  }
}

/** The blocks of a text: headings, fenced code, and paragraphs, which end at a blank line. */
function* blocks(text: string): Generator<Block> {
  let open: { start: number; end: number } | undefined
  let fence: { marker: string; start: number; end: number } | undefined
  for (const line of lines(text)) {
    const content = text.slice(line.start, line.end)
    const marker = fenceMarker(content)
    if (fence !== undefined) {
      if (content.trim() !== '') fence.end = line.end
      if (marker !== undefined && content.trim() === marker && marker.startsWith(fence.marker)) {
        yield { start: fence.start, end: line.end, kind: 'code', level: 0 }
        fence = undefined
      }
      continue
    }
    const level = /^ {0,3}(#{1,6})(?:\s|$)/.exec(content)?.[1]?.length ?? 0
    const blank = content.trim() === ''
    if (open !== undefined && (blank || level > 0 || marker !== undefined)) {
      yield paragraph(text, open)
      open = undefined
    }
    if (open !== undefined && isUnderline(content) && !text.slice(open.start, open.end).includes('\n')) {
      // What follows in the next line is a paragraph of its own.
      yield paragraph(text, { start: open.start, end: line.end })
      open = undefined
      continue
    }
    if (marker !== undefined) fence = { marker, start: line.start, end: line.end }
    else if (level > 0) yield { start: line.start, end: line.end, kind: 'heading', level }
    else if (!blank) open = { start: open?.start ?? line.start, end: line.end }
  }
  if (fence !== undefined) yield { start: fence.start, end: fence.end, kind: 'code', level: 0 }
  if (open !== undefined) yield paragraph(text, open)
}

/** A paragraph, or a heading underlined with `===` or `---`. */
function paragraph(text: string, span: Span): Block {
  const underline = /^[^\n]{1,200}\n {0,3}(=+|-{3,})$/.exec(text.slice(span.start, span.end))?.[1]
  if (underline === undefined) return { start: span.start, end: span.end, kind: 'prose', level: 0 }
  return { start: span.start, end: span.end, kind: 'heading', level: underline.startsWith('=') ? 1 : 2 }
}

function isUnderline(line: string): boolean {
  return /^ {0,3}(?:=+|-{3,})$/.test(line)
}

/** The backticks or tildes that open or close a code block in this line. */
function fenceMarker(line: string): string | undefined {
  return /^\s*(`{3,}(?=[^`]*$)|~{3,})/.exec(line)?.[1]
}

/** The lines of a text, without the white space that they end with. */
function* lines(text: string): Generator<Span> {
  let start = 0
  while (start < text.length) {
    const newline = text.indexOf('\n', start)
    const next = newline === -1 ? text.length : newline + 1
    yield { start, end: trimmedEnd(text, start, next) }
    start = next
  }
}

/** A block as it is, or cut where it hurts least when it is too long. */
function* pieces(text: string, block: Block): Generator<Block> {
  const longest = block.kind === 'code' ? LONGEST_CODE : LONGEST_BLOCK
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
