import { TextlintKernel } from '@textlint/kernel'
import type { TextlintRuleModule } from '@textlint/kernel'
import markdown from '@textlint/textlint-plugin-markdown'
import { docComments } from './doc-comments.ts'
import { longSentences, MAX_WORDS, PATTERNS } from './patterns.ts'

/** A place in a text that should be rewritten. */
export interface Finding {
  /** Counted from 1. */
  readonly line: number
  readonly rule: string
  readonly message: string
}

/** A place in a text of one line, and what is wrong there. */
interface Found {
  readonly index: number
  readonly message: string
}

/** A rule that reads each paragraph, heading and cell of a table as one line. Blocks of code are not read. */
function ruleOf(find: (text: string) => readonly Found[]): TextlintRuleModule {
  return ({ Syntax, RuleError, getSource, locator, report }) => {
    const read = (node: Parameters<typeof getSource>[0] & object): void => {
      for (const { index, message } of find(getSource(node).replaceAll('\n', ' '))) {
        report(node, new RuleError(message, { padding: locator.at(index) }))
      }
    }
    return { [Syntax.Paragraph]: read, [Syntax.Header]: read, [Syntax.TableCell]: read }
  }
}

const rules = [
  ...PATTERNS.map(({ id, pattern, advice }) => ({
    ruleId: id,
    rule: ruleOf((text) =>
      [...text.matchAll(pattern)].map(({ 0: words, index }) => ({ index, message: `"${words}": ${advice}` })),
    ),
  })),
  {
    ruleId: 'long-sentence',
    rule: ruleOf((text) =>
      longSentences(text).map(({ index, words }) => ({
        index,
        message: `A sentence of ${words} words, at most ${MAX_WORDS}: one idea a sentence.`,
      })),
    ),
  },
]
const plugins = [{ pluginId: 'markdown', plugin: markdown.default }]
const kernel = new TextlintKernel()

/** Reads the English of a page, or of the doc comments of a module. */
export async function lint(file: string, text: string): Promise<readonly Finding[]> {
  const source = /\.tsx?$/.test(file) ? docComments(text) : text
  const { messages } = await kernel.lintText(source, { filePath: file, ext: '.md', plugins, rules })
  return messages.map(({ loc, ruleId, message }) => ({ line: loc.start.line, rule: ruleId, message }))
}
