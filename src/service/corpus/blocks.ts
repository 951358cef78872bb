import MarkdownIt, { type Token } from 'markdown-it'

/** A range of a text, from `start` to `end`, exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A block of Markdown: whole lines, without the white space around them. */
export interface Block extends Span {
  /** `other` is not rendered as text: link reference definitions, thematic breaks, empty markers. */
  readonly kind: 'heading' | 'paragraph' | 'code' | 'html' | 'table' | 'list' | 'item' | 'quote' | 'other'
  /** 1 to 6 for a heading, else 0. */
  readonly level: number
  /** The text of a heading, a paragraph, code or HTML, without the markers of lists and quotes; else empty. */
  readonly content: string
  /** The blocks within a list, an item or a quote, in order. They cover its text. */
  readonly children: readonly Block[]
}

/**
 * Parses blocks only, in linear time. Inline content is parsed only when it is needed, in pieces, since that takes quadratic time
 * for some hostile texts.
 */
export const markdown = new MarkdownIt({
  html: true,
  // As in the parser's CommonMark preset. Deeper nesting yields no blocks.
  maxNesting: 20,
})
markdown.core.ruler.enableOnly(['normalize', 'block'])
// URLs of links are not used, so any is valid.
markdown.normalizeLink = (address) => address
markdown.validateLink = () => true

/**
 * Omits the cells of tables, which are not used. Each row has as many cells as the header, so a short text can have tens of
 * thousands.
 */
class StateWithoutCells extends markdown.block.State {
  readonly #cell = new this.Token('cell', '', 0)
  #inCell = false

  override push(type: string, tag: string, nesting: -1 | 0 | 1): Token {
    if (type === 'th_open' || type === 'td_open') this.#inCell = true
    if (!this.#inCell) return super.push(type, tag, nesting)
    if (type === 'th_close' || type === 'td_close') this.#inCell = false
    return this.#cell
  }
}
markdown.block.State = StateWithoutCells

/**
 * The blocks of a Markdown text (CommonMark, and GitHub's tables). They cover the text, except for white space between them.
 */
export function blocksOf(text: string): Block[] {
  const lines = linesOf(text)
  return covering({ text, lines }, nodesOf(markdown.parse(text, {})), 0, lines.length)
}

interface LinedText {
  readonly text: string
  readonly lines: readonly Span[]
}

/** The lines of a text as in CommonMark, without line endings. */
function linesOf(text: string): Span[] {
  const lines: Span[] = []
  let start = 0
  for (const { index, 0: end } of text.matchAll(/\r\n?|\n/g)) {
    lines.push({ start, end: index })
    start = index + end.length
  }
  lines.push({ start, end: text.length })
  return lines
}

const KINDS: Readonly<Record<string, Block['kind']>> = {
  heading_open: 'heading',
  paragraph_open: 'paragraph',
  fence: 'code',
  code_block: 'code',
  html_block: 'html',
  table_open: 'table',
  bullet_list_open: 'list',
  ordered_list_open: 'list',
  list_item_open: 'item',
  blockquote_open: 'quote',
  hr: 'other',
}

/** A block with its position in lines. */
interface Node {
  readonly kind: Block['kind']
  readonly level: number
  content: string
  readonly first: number
  readonly end: number
  readonly nodes: Node[]
}

/** Builds the tree of blocks from the parser's list of tokens. */
function nodesOf(tokens: readonly Token[]): Node[] {
  const top: Node[] = []
  /** The open nodes; undefined for tokens that are not blocks. */
  const open: (Node | undefined)[] = []
  for (const token of tokens) {
    if (token.nesting < 0) {
      open.pop()
      continue
    }
    const parent = open.findLast((node) => node !== undefined)
    const kind = KINDS[token.type]
    let node: Node | undefined
    if (kind !== undefined && token.map !== null) {
      const [first, end] = token.map
      const level = kind === 'heading' ? Number(token.tag.slice(1)) : 0
      node = { kind, level, content: token.content, first, end, nodes: [] }
      const siblings = parent?.nodes ?? top
      siblings.push(node)
    } else if (token.type === 'inline' && parent !== undefined) {
      parent.content = token.content
    }
    if (token.nesting > 0) open.push(node)
  }
  return top
}

/** The blocks in the lines from `first` to `end`, exclusive. Text outside of all nodes becomes blocks of kind `other`. */
function covering(source: LinedText, nodes: readonly Node[], first: number, end: number): Block[] {
  const blocks: Block[] = []
  let line = first
  function fill(to: number): void {
    const span = trimmed(source, line, to)
    if (span !== undefined) blocks.push({ ...span, kind: 'other', level: 0, content: '', children: [] })
  }
  for (const node of nodes) {
    fill(node.first)
    line = Math.min(node.end, end)
    const span = trimmed(source, node.first, line)
    if (span === undefined) continue
    const { kind, level, content } = node
    const children = node.nodes.length === 0 ? [] : covering(source, node.nodes, node.first, line)
    blocks.push({ ...span, kind, level, content, children })
  }
  fill(end)
  return blocks
}

/** The lines from `first` to `end`, exclusive, without the white space around them; undefined if they are blank. */
function trimmed({ text, lines }: LinedText, first: number, end: number): Span | undefined {
  const from = lines[first]?.start
  const to = lines[end - 1]?.end
  if (from === undefined || to === undefined || from >= to) return undefined
  const whole = text.slice(from, to)
  const bare = whole.trimStart()
  if (bare === '') return undefined
  const start = to - bare.length
  return { start, end: start + bare.trimEnd().length }
}
