import type { Env, Token } from 'markdown-it'
import { markdown, type Span } from './blocks.ts'
import { imageDescriptions } from './html.ts'
import { oneLine } from './one-line.ts'

/** Maximum length of a heading that is read, in characters. */
const MAX_HEADING_LENGTH = 1_000

/**
 * The text of a heading, without markup and badges; the descriptions of its images if it has no text.
 *
 * @param content The {@link Block.content} of the heading.
 */
export function inlineText(content: string): string {
  const tokens = inlineTokens(content.slice(0, MAX_HEADING_LENGTH))
  return oneLine(tokens.map(tokenText).join('')) || oneLine(tokens.map(imageOf).join(' '))
}

function inlineTokens(content: string): Token[] {
  const tokens: Token[] = []
  markdown.inline.parse(content, markdown, environmentOf(content), tokens)
  return tokens
}

/** Defines all references in the text, since their definitions are elsewhere in the document. URLs are not used. */
function environmentOf(content: string): Env {
  const names = [...content.matchAll(/\]\[([^[\]]+)\]/g)].map(([, name = '']) => name)
  const references = names.map((name) => [markdown.utils.normalizeReference(name), { href: '#', title: '' }])
  return { references: Object.fromEntries(references) }
}

function tokenText(token: Token): string {
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
  if (token.type === 'image') return token.children?.map(tokenText).join('') ?? ''
  return token.type === 'html_inline' ? imageDescriptions(token.content) : ''
}

/** An element within the text of a block. */
export interface Inline extends Span {
  readonly kind: 'text' | 'code' | 'image' | 'link' | 'html'
  /** The text of a link, within its brackets. */
  readonly label?: Span
}

/** The links, images, code and tags of a text, and the text between them, in order. A URL in `<…>` is a tag too. */
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

/** The kind of a token, by its first character. A single character is text. */
function kindOf(source: string): Inline['kind'] {
  if (source.length > 1) {
    if (source.startsWith('[')) return 'link'
    if (source.startsWith('!')) return 'image'
    if (source.startsWith('<')) return 'html'
    if (/^`+[^`]/.test(source)) return 'code'
  }
  return 'text'
}
