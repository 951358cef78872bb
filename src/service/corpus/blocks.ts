import MarkdownIt, { type Token } from 'markdown-it'

/** A stretch of a text, from `start` up to but without `end`. */
export interface Span {
  readonly start: number
  readonly end: number
}

/** A block of Markdown, in whole lines, without the white space around it. */
export interface Block extends Span {
  /** `other` is what readers do not see: link reference definitions, lines across the page, markers without a text. */
  readonly kind: 'heading' | 'paragraph' | 'code' | 'html' | 'table' | 'list' | 'item' | 'quote' | 'other'
  /** 1 to 6 for a heading, 0 for what is none. */
  readonly level: number
  /** What a heading, a paragraph, code or HTML holds, without the markers of lists and quotes; else empty. */
  readonly content: string
  /** The blocks that a list, an item or a quote holds, in their order. Together they cover its text. */
  readonly parts: readonly Block[]
}

/**
 * Blocks alone are parsed, in time that grows with the text. What is within their lines is parsed where it is needed, in
 * pieces: the time for it grows with the square of some hostile texts.
 */
export const markdown = new MarkdownIt({
  html: true,
  // As the parser's own preset for CommonMark has it. What is nested deeper has no blocks of its own.
  maxNesting: 20,
})
markdown.core.ruler.enableOnly(['normalize', 'block'])
// Addresses are not used: any makes a link.
markdown.normalizeLink = (address) => address
markdown.validateLink = () => true

/**
 * Leaves the cells of tables out, which are not used. Each row has as many as the head: a short text can make tens of
 * thousands of them.
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
 * The blocks of a text in Markdown (CommonMark, and GitHub's tables). They cover the text: between two of them there is
 * white space only.
 */
export function blocksOf(text: string): Block[] {
  const lines = linesOf(text)
  return covering({ text, lines }, nodesOf(markdown.parse(text, {})), 0, lines.length)
}

interface Source {
  readonly text: string
  readonly lines: readonly Span[]
}

/** The lines of a text as CommonMark has them, without their ends. */
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

/** A block whose place is known in lines. */
interface Node {
  readonly kind: Block['kind']
  readonly level: number
  content: string
  readonly first: number
  readonly end: number
  readonly nodes: Node[]
}

/** The tree that the parser's list of tokens stands for. */
function nodesOf(tokens: readonly Token[]): Node[] {
  const top: Node[] = []
  /** The nodes that are open, undefined for tokens that are no blocks of their own. */
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

/** The blocks in the lines from `first` up to `end`, with what belongs to no node in blocks of its own. */
function covering(source: Source, nodes: readonly Node[], first: number, end: number): Block[] {
  const blocks: Block[] = []
  let line = first
  function fill(to: number): void {
    const span = trimmed(source, line, to)
    if (span !== undefined) blocks.push({ ...span, kind: 'other', level: 0, content: '', parts: [] })
  }
  for (const node of nodes) {
    fill(node.first)
    line = Math.min(node.end, end)
    const span = trimmed(source, node.first, line)
    if (span === undefined) continue
    const { kind, level, content } = node
    const parts = node.nodes.length === 0 ? [] : covering(source, node.nodes, node.first, line)
    blocks.push({ ...span, kind, level, content, parts })
  }
  fill(end)
  return blocks
}

/** The lines from `first` up to `end` without the white space around them, or undefined where there is nothing else. */
function trimmed({ text, lines }: Source, first: number, end: number): Span | undefined {
  const from = lines[first]?.start
  const to = lines[end - 1]?.end
  if (from === undefined || to === undefined || from >= to) return undefined
  const whole = text.slice(from, to)
  const bare = whole.trimStart()
  if (bare === '') return undefined
  const start = to - bare.length
  return { start, end: start + bare.trimEnd().length }
}
