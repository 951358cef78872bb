import { type Block, blocksOf } from '../corpus/blocks.ts'
import { type Inline, inlinesOf, inlineText } from '../corpus/inline.ts'

/** The smallest part of an answer: a sentence, a list item, a table row or a line of code. */
export interface Unit {
  /** A verbatim part of the text, without the markup around it. */
  readonly text: string
  readonly kind: 'sentence' | 'item' | 'row' | 'code'
  /** The heading above it; empty if there is none. */
  readonly heading: string
}

/** Maximum length of a list item that is one unit, in characters; a longer one is split into sentences. */
const MAX_ITEM_LENGTH = 300

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })
const ABBREVIATION = /(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|dr|mr|mrs|st)|\b[A-Z])\.\s*$/i

/** Splits a passage of Markdown or plain text into units. Headings and badges are not units. */
export function unitsOf(text: string): Unit[] {
  const units: Unit[] = []
  let heading = ''

  function add(raw: string, kind: Unit['kind']): void {
    const bare = withoutMarkup(raw)
    if (isReadable(bare, kind)) units.push({ text: bare, kind, heading })
  }

  function addLines(raw: string, kind: Unit['kind']): void {
    for (const line of raw.split('\n')) add(line, kind)
  }

  function read({ kind, start, end, content, children }: Block, isItem: boolean): void {
    const raw = text.slice(start, end)
    if (kind === 'heading') heading = inlineText(content)
    else if (kind === 'code') addLines(content, 'code')
    // A passage that begins within a table has its rows in a paragraph.
    else if (kind === 'table' || (kind === 'paragraph' && content.startsWith('|'))) addLines(raw, 'row')
    else if (kind === 'paragraph' || kind === 'html') {
      if (isItem && raw.length <= MAX_ITEM_LENGTH) add(raw, 'item')
      else for (const sentence of sentencesOf(raw)) add(sentence, isItem ? 'item' : 'sentence')
    }
    for (const [index, child] of children.entries()) read(child, kind === 'item' && index === 0)
  }

  for (const block of blocksOf(text)) read(block, false)
  return units
}

const LIST_MARKER = /^\s*(?:[-*+•]|\d{1,3}[.)])\s+/

/** The sentences of a paragraph, which may span several lines, without images and tags around them. */
function sentencesOf(paragraph: string): string[] {
  const found: { start: number; end: number }[] = []
  const plain = masked(paragraph)
  for (const { segment, index } of sentences.segment(plain)) {
    const start = index + segment.length - segment.trimStart().length
    const end = index + segment.trimEnd().length
    if (start >= end) continue
    const last = found.at(-1)
    if (last !== undefined && ABBREVIATION.test(plain.slice(last.start, last.end))) last.end = end
    else found.push({ start, end })
  }
  return found.map(({ start, end }) => paragraph.slice(start, end))
}

/**
 * Replaces markup by neutral characters of the same length, so that line breaks, URLs, code and images do not end sentences.
 */
function masked(text: string): string {
  // Plain text needs no parser.
  if (!/[`[<]/.test(text)) return withoutLines(text)
  let plain = ''
  for (const inline of inlinesOf(text)) plain += maskOf(text, inline)
  return plain
}

function maskOf(text: string, { kind, start, end, label }: Inline): string {
  const source = text.slice(start, end)
  switch (kind) {
    case 'code':
      return letters(source)
    case 'image':
      return blank(source)
    case 'html':
      return BLOCK_TAG.test(source) ? separator(source) : blank(source)
    case 'link': {
      const shown = label === undefined ? '' : masked(text.slice(label.start, label.end))
      // A link that only contains an image is a badge.
      return shown.trim() === '' ? blank(source) : `[${shown}${letters(source.slice(shown.length + 1))}`
    }
    default:
      return withoutLines(source)
  }
}

/** An HTML tag that begins or ends a block. */
const BLOCK_TAG = /^<\/?(?:h[1-6]|p|div|br|hr|li|ul|ol|table|tr|td)\b/i

const withoutLines = (source: string) => source.replace(/[\r\n]/g, ' ')
const blank = (source: string) => ' '.repeat(source.length)
/** The paragraph separator of Unicode, for a block of HTML. */
const separator = (source: string) => '\u2029'.padEnd(source.length)
const letters = (source: string) => 'x'.repeat(source.length)

/** Markup before and after a text. */
const BEGINNINGS = [LIST_MARKER, /^\s*>\s?/, /^\s*\[[ x]\]\s+/, /^\s*\$\s+(?=\w)/, /^\s*<\/?[a-z][^<>]*>/i]
const ENDINGS = [/<\/?[a-z][^<>]*>\s*$/i]
/** Pairs of markup around a whole text; the group is the content. */
const PAIRS = [
  /^\*\*([^*]+)\*\*$/,
  /^__([^_]+)__$/,
  /^\*([^*]+)\*$/,
  /^_([^_]+)_$/,
  /^`([^`]+)`$/,
  /^\[([^[\]]+)\](?:\([^()]*\)|\[[^\]]*\])[.:]?$/,
]

/** Removes the markup at both ends of a text. */
function withoutMarkup(raw: string): string {
  let text = raw.trim()
  for (;;) {
    let next = text
    for (const markup of [...BEGINNINGS, ...ENDINGS]) next = next.replace(markup, '').trim()
    for (const pair of PAIRS) next = pair.exec(next)?.[1]?.trim() ?? next
    if (next === text) return text
    text = next
  }
}

/** Whether a text has words besides badges, tags and URLs. */
function isReadable(text: string, kind: Unit['kind']): boolean {
  return /[\p{L}\p{N}]{2}/u.test(kind === 'code' ? text : masked(text))
}

/** Whether a unit is only a URL. */
export function isAddress({ text }: Unit): boolean {
  return /^<?https?:\/\/\S+$/i.test(text)
}
