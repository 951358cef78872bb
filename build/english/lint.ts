import { TextlintKernel } from '@textlint/kernel'
import type { TextlintMessage, TextlintRuleModule } from '@textlint/kernel'
import { parse } from '@textlint/markdown-to-ast'
import { docComments } from './doc-comments.ts'
import { longSentences, MAX_WORDS, PATTERNS } from './patterns.ts'

/** A place in a text that should be rewritten. */
export interface Finding {
  /** Counted from 1. */
  readonly line: number
  readonly rule: string
  readonly message: string
}

/** Values that have the place of a word in a sentence. */
const LITERAL = /^`(?:undefined|null|true|false)`$/

/** An offset in a text of one line, and what is wrong there. */
interface Found {
  readonly index: number
  readonly message: string
}

/** The words of a text, with their offsets. A piece of code is one word, whatever it says. */
function wordsOf(text: string): { readonly word: string; readonly offset: number }[] {
  const prose = text.replaceAll(/`[^`]+`/g, (code) =>
    LITERAL.test(code) ? code : code.replaceAll(/[^`]/g, '_'),
  )
  return [...prose.matchAll(/\S+/g)].map(({ 0: word, index }) => ({ word, offset: index }))
}

/** The line comments in a piece of code, with their offsets. Those of lines that follow each other are one text. The marks are spaces. */
function commentsIn(code: string): { readonly text: string; readonly offset: number }[] {
  return [...code.matchAll(/(?:^[ \t]*\/\/ .*\n?)+|(?<=\s)\/\/ .*/gm)].map(({ 0: comment, index }) => ({
    text: comment.replaceAll(/(?<=^|\s)\/\/(?= )/g, '  '),
    offset: index,
  }))
}

/** A rule that reads each paragraph, heading and cell of a table, and the line comments in blocks of code. */
function ruleOf(find: (text: string) => readonly Found[]): TextlintRuleModule {
  return ({ Syntax, RuleError, getSource, locator, report }) => {
    type Node = Parameters<typeof getSource>[0] & object
    const read = (node: Node, text = getSource(node), start = 0): void => {
      const words = wordsOf(text)
      const line = words.map(({ word }) => word).join(' ')
      for (const { index, message } of find(line)) {
        // The words before it, and its own one, which the line may end with.
        const word = words[line.slice(0, index).split(' ').length - 1]
        report(node, new RuleError(message, { padding: locator.at(start + (word?.offset ?? 0)) }))
      }
    }
    const readProse = (node: Node) => read(node)
    return {
      [Syntax.Paragraph]: readProse,
      [Syntax.Header]: readProse,
      [Syntax.TableCell]: readProse,
      [Syntax.CodeBlock]: (node: Node) => {
        for (const { text, offset } of commentsIn(getSource(node))) read(node, text, offset)
      },
    }
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
/** Reads a text as Markdown. */
class Markdown {
  availableExtensions() {
    return ['.md']
  }

  processor() {
    return {
      preProcess: (text: string) => parse(text),
      postProcess: (messages: TextlintMessage[], filePath = '') => ({ messages, filePath }),
    }
  }
}

const plugins = [{ pluginId: 'markdown', plugin: { Processor: Markdown } }]
const kernel = new TextlintKernel()

/** Reads the English of a page, or of the doc comments of a module. */
export async function lint(file: string, text: string): Promise<readonly Finding[]> {
  const comments = /\.tsx?$/.test(file) ? docComments(text) : undefined
  const { messages } = await kernel.lintText(comments?.text ?? text, {
    filePath: file,
    ext: '.md',
    plugins,
    rules,
  })
  return messages.map(({ loc: { start }, ruleId, message }) => ({
    line: comments?.lines[start.line - 1] ?? start.line,
    rule: ruleId,
    message,
  }))
}
