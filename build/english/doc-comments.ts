/** The doc comments of a module as Markdown. */
export interface DocComments {
  readonly text: string
  /** The line of the module that each line of the text has, counted from 1. */
  readonly lines: readonly number[]
}

/** Extracts the doc comments of a module, without their margins. An empty line is between two of them. */
export function docComments(source: string): DocComments {
  const text: string[] = []
  const lines: number[] = []
  let number = 1
  let end = 0
  for (const { 0: comment, index } of source.matchAll(/(?<=^|\s)\/\*\*(?=\s)[^]*?\*\//g)) {
    number += newlinesOf(source.slice(end, index))
    end = index + comment.length
    for (const line of comment.slice('/**'.length, -'*/'.length).split('\n')) {
      const trimmed = line.replace(/^\s*\*/, '').trim()
      // A tag begins a paragraph.
      const added = trimmed.startsWith('@') ? ['', withoutTag(trimmed)] : [trimmed]
      text.push(...added)
      lines.push(...added.map(() => number))
      number += 1
    }
    // The next line of the module may have a comment too.
    text.push('')
    lines.push(number)
    number -= 1
  }
  return { text: text.join('\n'), lines }
}

function newlinesOf(text: string): number {
  return text.split('\n').length - 1
}

/** The text of a tag begins as that of a comment does. */
function withoutTag(line: string): string {
  return line.replace(/^@(?:param|property|typeParam|template) +\S+ +(?:- +)?|^@\w+ +(?=[A-Z])/, '')
}
