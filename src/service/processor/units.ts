import { type Block, blocksOf } from '../corpus/blocks.ts'
import { type Inline, inlinesOf, inlineText } from '../corpus/inline.ts'

/** A sentence, a list item, a table row or a line of code: what an answer is made of. */
export interface Unit {
  /** Without the markup around it; stands word for word in the text. */
  readonly text: string
  readonly kind: 'sentence' | 'item' | 'row' | 'code'
  /** The heading above it, empty where the text shows none. */
  readonly heading: string
}

/** Characters of a list item that is one answer; a longer one is taken apart into sentences. */
const LONGEST_ITEM = 300

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })
const ABBREVIATION = /(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|dr|mr|mrs|st)|\b[A-Z])\.\s*$/i

/** Takes a passage of Markdown or plain text apart. Headings and badges are no units. */
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

  function read({ kind, start, end, content, parts }: Block, isItem: boolean): void {
    const raw = text.slice(start, end)
    if (kind === 'heading') heading = inlineText(content)
    else if (kind === 'code') addLines(content, 'code')
    // A passage may begin within a table: its rows are a paragraph then.
    else if (kind === 'table' || (kind === 'paragraph' && content.startsWith('|'))) addLines(raw, 'row')
    else if (kind === 'paragraph' || kind === 'html') {
      if (isItem && raw.length <= LONGEST_ITEM) add(raw, 'item')
      else for (const sentence of sentencesOf(raw)) add(sentence, isItem ? 'item' : 'sentence')
    }
    for (const [index, part] of parts.entries()) read(part, kind === 'item' && index === 0)
  }

  for (const block of blocksOf(text)) read(block, false)
  return units
}

const LIST_MARKER = /^\s*(?:[-*+•]|\d{1,3}[.)])\s+/

/** The sentences of a paragraph, which may run over several lines. Images and tags around them are left out. */
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
 * A text of the same length in which only sentences end sentences: no line, no full stop in an address or in code, no
 * exclamation mark of an image.
 */
function masked(text: string): string {
  // Most texts are plain, and need no parser.
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
      // A link around an image is a badge.
      return shown.trim() === '' ? blank(source) : `[${shown}${letters(source.slice(shown.length + 1))}`
    }
    default:
      return withoutLines(source)
  }
}

/** A tag of HTML that begins or ends a block. */
const BLOCK_TAG = /^<\/?(?:h[1-6]|p|div|br|hr|li|ul|ol|table|tr|td)\b/i

const withoutLines = (source: string) => source.replace(/[\r\n]/g, ' ')
const blank = (source: string) => ' '.repeat(source.length)
/** What separates paragraphs in Unicode; a block of HTML is one. */
const separator = (source: string) => '\u2029'.padEnd(source.length)
const letters = (source: string) => 'x'.repeat(source.length)

/** What markup can stand around a text. */
const BEGINNINGS = [LIST_MARKER, /^\s*>\s?/, /^\s*\[[ x]\]\s+/, /^\s*\$\s+(?=\w)/, /^\s*<\/?[a-z][^<>]*>/i]
const ENDINGS = [/<\/?[a-z][^<>]*>\s*$/i]
/** Pairs around a whole text; the group is what they enclose. */
const PAIRS = [
  /^\*\*([^*]+)\*\*$/,
  /^__([^_]+)__$/,
  /^\*([^*]+)\*$/,
  /^_([^_]+)_$/,
  /^`([^`]+)`$/,
  /^\[([^[\]]+)\](?:\([^()]*\)|\[[^\]]*\])[.:]?$/,
]

/** A text without the markup at its two ends; what is within stays as it is. */
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

/** Whether there is something to read: not a badge, a tag, or the address of a link. */
function isReadable(text: string, kind: Unit['kind']): boolean {
  return /[\p{L}\p{N}]{2}/u.test(kind === 'code' ? text : masked(text))
}

/** Whether a unit is an address and nothing else. */
export function isAddress({ text }: Unit): boolean {
  return /^<?https?:\/\/\S+$/i.test(text)
}
