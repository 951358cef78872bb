import type { Heading, PhrasingContent } from 'mdast'
import { fromMarkdown } from 'mdast-util-from-markdown'
import { gfmFromMarkdown } from 'mdast-util-gfm'
import { gfm } from 'micromark-extension-gfm'
import { imageDescriptions } from './html.ts'

const OPTIONS = { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] }
/**
 * Characters of a heading that are read. The parser's time grows with the square of some hostile inputs, and it takes
 * fifty times as long as all else about a document, so it is given no more of one than its headings.
 */
const LONGEST_HEADING = 1_000

/**
 * What a heading of Markdown says, without its markup and badges. Where images are all that there is, they stand for
 * their descriptions.
 *
 * @param source The heading's lines, `# …` or underlined.
 */
export function inlineText(source: string): string {
  const heading = parse(source.slice(0, LONGEST_HEADING))
  if (heading === undefined) return oneLine(source)
  return oneLine(heading.children.map(textOf).join('')) || oneLine(heading.children.map(imageOf).join(' '))
}

function parse(source: string): Heading | undefined {
  // What its links and images refer to stands elsewhere in the document: any address makes them what they are.
  const references = [...source.matchAll(/\]\[([^[\]]+)\]/g)].map(([, name]) => `[${name}]: #`)
  try {
    const tree = fromMarkdown([source, '', ...references].join('\n'), OPTIONS)
    return tree.children.find((node) => node.type === 'heading')
  } catch {
    // The parser fails on some texts that are no Markdown in earnest.
    return undefined
  }
}

function textOf(node: PhrasingContent): string {
  if (node.type === 'text' || node.type === 'inlineCode') return node.value
  if (node.type === 'break') return ' '
  return 'children' in node ? node.children.map(textOf).join('') : ''
}

function imageOf(node: PhrasingContent): string {
  if (node.type === 'image' || node.type === 'imageReference') return node.alt ?? ''
  if (node.type === 'html') return imageDescriptions(node.value)
  return 'children' in node ? node.children.map(imageOf).join(' ') : ''
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
