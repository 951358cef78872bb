import type { Env, Token } from 'markdown-it'
import { markdown, type Span } from './blocks.ts'
import { imageDescriptions } from './html.ts'

/** Characters of a heading that are read: more than a title or an answer has use for. */
const LONGEST_HEADING = 1_000

/**
 * What a heading says, without its markup and badges. Where images are all that there is, they stand for their
 * descriptions.
 *
 * @param content As {@link Block.content} has it.
 */
export function inlineText(content: string): string {
  const tokens = inlineTokens(content.slice(0, LONGEST_HEADING))
  return oneLine(tokens.map(textOf).join('')) || oneLine(tokens.map(imageOf).join(' '))
}

function inlineTokens(content: string): Token[] {
  const tokens: Token[] = []
  markdown.inline.parse(content, markdown, environmentOf(content), tokens)
  return tokens
}

/** What links and images refer to stands elsewhere in the document: any address makes them what they are. */
function environmentOf(content: string): Env {
  const names = [...content.matchAll(/\]\[([^[\]]+)\]/g)].map(([, name = '']) => name)
  const references = names.map((name) => [markdown.utils.normalizeReference(name), { href: '#', title: '' }])
  return { references: Object.fromEntries(references) }
}

function textOf(token: Token): string {
  switch (token.type) {
    case 'text':
    case 'text_special':
    case 'code_inline':
      return token.content
    case 'softbreak':
    case 'hardbreak':
      return ' '
    default:
      return ''
  }
}

function imageOf(token: Token): string {
  if (token.type === 'image') return token.children?.map(textOf).join('') ?? ''
  return token.type === 'html_inline' ? imageDescriptions(token.content) : ''
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}

/** What stands in the lines of a block. */
export interface Inline extends Span {
  readonly kind: 'text' | 'code' | 'image' | 'link' | 'html'
  /** What a link shows, within its brackets. */
  readonly label?: Span
}

/** The links, images, code and tags of a text, and what is between them, in their order. An address in `<…>` is a tag too. */
export function* inlinesOf(content: string): Generator<Inline> {
  const state = new markdown.inline.State(content, markdown, environmentOf(content), [])
  while (state.pos < state.posMax) {
    const start = state.pos
    markdown.inline.skipToken(state)
    const end = state.pos
    const kind = kindOf(content.slice(start, end))
    if (kind === 'link') {
      const label = { start: start + 1, end: markdown.helpers.parseLinkLabel(state, start, true) }
      yield { kind, start, end, label }
    } else yield { kind, start, end }
  }
}

/** What a token of the parser is, by the mark that it begins with. A mark alone begins nothing. */
function kindOf(source: string): Inline['kind'] {
  if (source.length > 1) {
    if (source.startsWith('[')) return 'link'
    if (source.startsWith('!')) return 'image'
    if (source.startsWith('<')) return 'html'
    if (/^`+[^`]/.test(source)) return 'code'
  }
  return 'text'
}
