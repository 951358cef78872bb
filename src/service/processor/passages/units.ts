import { type Block, blocksOf } from '../../corpus/blocks.ts'
import { type Inline, inlinesOf, inlineText } from '../../corpus/inline.ts'
import { manifestLines } from '../../corpus/manifest.ts'
import { cellsOf } from './cells.ts'

/** The smallest part of an answer: a sentence, a list item, a table row or a line of code. */
export interface Unit {
  /** A verbatim part of the text, without the markup around it; for a manifest, the statement of a member, on one line. */
  readonly text: string
  readonly kind: 'sentence' | 'item' | 'row' | 'code'
  /** The heading above it; empty if there is none. */
  readonly heading: string
  /** The cells of its table's header, if it is a row; empty for the header. */
  readonly columns?: readonly string[]
}

/** A unit with all that is above it. */
export interface PlacedUnit extends Unit {
  /** All headings above it, the outermost first. */
  readonly headings: readonly string[]
  /** Equal for the sentences of one paragraph or list item. */
  readonly block: number
}

/** A heading above a text. */
export interface Heading {
  /** 1 to 6. */
  readonly level: number
  readonly text: string
}

/** The units of a passage, and the headings above the text after it. */
export interface UnitReading {
  readonly units: readonly PlacedUnit[]
  readonly headings: readonly Heading[]
}

/** Maximum length of a list item that is one unit, in characters; a longer one is split into sentences. */
const MAX_ITEM_LENGTH = 300

const sentences = new Intl.Segmenter('en', { granularity: 'sentence' })
const ABBREVIATION = /(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|dr|mr|mrs|st)|\b[A-Z])\.\s*$/i

/** Splits a passage of Markdown or plain text into units. Headings and badges are not units. */
export function unitsOf(text: string): readonly Unit[] {
  return readUnits(text, []).units.map((unit) => ({
    text: unit.text,
    kind: unit.kind,
    heading: unit.heading,
  }))
}

/** The units of a manifest's passage: the statement of each of its members. */
export function manifestUnits(passage: string): readonly PlacedUnit[] {
  return manifestLines(passage).map((text) => ({ text, kind: 'row', heading: '', headings: [], block: 0 }))
}

/** Splits a passage into units. `above` are the headings of the document above the passage, the outermost first. */
export function readUnits(text: string, above: readonly Heading[]): UnitReading {
  const units: PlacedUnit[] = []
  let open = [...above]
  let headings = open.map((heading) => heading.text)
  let heading = headings.at(-1) ?? ''
  let count = 0

  function enter(level: number, title: string): void {
    open = [...open.filter((outer) => outer.level < level), { level, text: title }]
    headings = open.map((one) => one.text)
    heading = title
  }

  function add(raw: string, kind: Unit['kind'], columns?: readonly string[]): void {
    const bare = withoutMarkup(raw)
    if (!isReadable(bare, kind)) return
    units.push({
      text: bare,
      kind,
      heading,
      headings,
      block: count,
      ...(columns !== undefined && { columns }),
    })
  }

  function addLines(raw: string, kind: Unit['kind']): void {
    for (const line of raw.split('\n')) add(line, kind)
  }

  function addRows(raw: string): void {
    const [header = '', ...rows] = raw.split('\n')
    const isTable = /^[\s|:-]+$/.test(rows[0] ?? '')
    if (!isTable) return addLines(raw, 'row')
    const columns = cellsOf(header)
    add(header, 'row', [])
    for (const row of rows) add(row, 'row', columns)
  }

  function read({ kind, level, start, end, content, children }: Block, isItem: boolean): void {
    const raw = text.slice(start, end)
    count += 1
    if (kind === 'heading') enter(level, inlineText(content))
    else if (kind === 'code') addLines(content, 'code')
    // A passage that begins within a table has its rows in a paragraph.
    else if (kind === 'table' || (kind === 'paragraph' && content.startsWith('|'))) addRows(raw)
    else if (kind === 'paragraph' || kind === 'html') {
      if (isItem && raw.length <= MAX_ITEM_LENGTH) add(raw, 'item')
      else for (const sentence of sentencesOf(raw)) add(sentence, isItem ? 'item' : 'sentence')
    }
    for (const [index, child] of children.entries()) read(child, kind === 'item' && index === 0)
  }

  for (const block of blocksOf(text)) read(block, false)
  return { units, headings: open }
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
