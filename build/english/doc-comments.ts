/** The doc comments of a module as Markdown. Each line is the one that it has in the module; those of the code are empty. */
export function docComments(source: string): string {
  const lines = source.split('\n').map(() => '')
  for (const { 0: comment, index } of source.matchAll(/(?<=^\s*|\s)\/\*\*(?=\s)[^]*?\*\//gm)) {
    const first = source.slice(0, index).split('\n').length - 1
    const text = comment.slice('/**'.length, -'*/'.length).split('\n')
    for (const [offset, line] of text.entries()) {
      lines[first + offset] = offset === 0 ? line.trim() : withoutTag(line.replace(/^\s*\* ?/, '').trimEnd())
    }
  }
  return lines.join('\n')
}

/** The text of a tag begins a paragraph of its own. */
function withoutTag(line: string): string {
  return line.replace(/^@(?:param|property|typeParam|template) +\S+ +(?:- +)?|^@\w+ +(?=[A-Z])/, '')
}
