/** How a part of a statement is set apart from the text around it. */
export type Mark = 'code' | 'link' | 'strong' | 'quote' | 'plain'

/** A part of a statement that may be a value. */
export interface MarkedSpan {
  /** Text of the span, without marks and quotes. */
  readonly text: string
  readonly mark: Mark
  /** Start and end in the statement, including its marks. */
  readonly start: number
  readonly end: number
}

/** Maximum length of a text in which spans are searched, in characters. */
const MAX_TEXT = 4_000
/** Maximum length of a span, in characters. */
const MAX_SPAN = 200

/** Marks of Markdown, in the order in which they are read. The content of a mark is not read again. */
const MARKS: readonly (readonly [Mark, RegExp])[] = [
  ['code', /(`{1,3})(?!`)(?<value>[^`]+)\1(?!`)/g],
  ['link', /\[(?<value>[^[\]]+)\](?:\([^()\s]*(?:\([^()\s]*\)[^()\s]*)?(?:\s+"[^"]*")?\)|\[[^\]]*\])/g],
  ['strong', /\*\*(?<value>[^*\n]+)\*\*|(?<!\w)__(?<second>[^_\n]+)__(?!\w)/g],
  [
    'strong',
    /(?<![\w*])\*(?<value>[^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])|(?<!\w)_(?<second>[^_\s][^_\n]*)_(?!\w)/g,
  ],
  [
    'quote',
    /(?<![\p{L}\p{N}])(?:"(?<value>[^"\n]+)"|'(?<second>[^'\n]+)'|“(?<third>[^”\n]+)”)(?![\p{L}\p{N}])/gu,
  ],
]

/** The parts of a statement in code marks, links, emphasis and quotes, in its order. */
export function markedSpans(statement: string): MarkedSpan[] {
  let text = statement.slice(0, MAX_TEXT)
  const spans: MarkedSpan[] = []
  for (const [mark, pattern] of MARKS) {
    for (const { 0: whole, index, groups = {} } of text.matchAll(pattern)) {
      const value = groups['value'] ?? groups['second'] ?? groups['third'] ?? ''
      // A link shows its label, which may contain marks.
      const bare = bareText(value.replaceAll('\u0000', ''))
      const shown = bare === '' ? inside(spans, index, index + whole.length)?.text : bare
      if (mark === 'link') drop(spans, index, index + whole.length)
      if (shown !== undefined && shown.length <= MAX_SPAN) {
        spans.push({ text: shown, mark, start: index, end: index + whole.length })
      }
    }
    text = text.replace(pattern, (whole: string) => '\u0000'.repeat(whole.length))
  }
  return spans.toSorted((a, b) => a.start - b.start)
}

function inside(spans: readonly MarkedSpan[], start: number, end: number): MarkedSpan | undefined {
  return spans.find((span) => span.start >= start && span.end <= end)
}

function drop(spans: MarkedSpan[], start: number, end: number): void {
  const at = spans.findIndex((span) => span.start >= start && span.end <= end)
  if (at !== -1) spans.splice(at, 1)
}

/** The parts of a statement that match a pattern. */
export function plainSpans(statement: string, pattern: RegExp): MarkedSpan[] {
  return [...statement.slice(0, MAX_TEXT).matchAll(pattern)].map(({ 0: text, index }) => ({
    text,
    mark: 'plain',
    start: index,
    end: index + text.length,
  }))
}

/** A text without the marks and the quotes around it; `\|` in a cell of a table is `|`. */
export function bareText(text: string): string {
  const bare = text.trim().replaceAll(String.raw`\|`, '|')
  const inner =
    /^(?:`+([^`]+)`+|\*\*([^*]+)\*\*|"([^"]+)"|'([^']+)'|\[([^[\]]+)\](?:\([^()]*\)|\[[^\]]*\]))$/.exec(bare)
  const found = inner?.slice(1).find((group) => group !== undefined)
  return found === undefined ? bare : bareText(found)
}

/**
 * A name at the beginning of a statement, before a colon, a dash or `=`. Two parts in a row never begin with the same character, so that a line
 * of underscores takes linear time.
 */
const HEAD =
  /^\s*(?:(?<flags>--?[a-z][\w-]*(?:,\s*--?[a-z][\w-]*)*)(?=\s)|[`*_"'[]*(?<name>[@a-z\d$](?:[\w$./@-]*[a-z\d$/@])?(?:\([^()\n]*\))?)[`*_"'\]]*(?:\([^()\s]*\)[*_]*)?(?:\s*\([^()]{1,60}\)[*_]*)?\s*(?:[:=–—]|-\s))/i

/** The name that a statement begins with and describes: `` `port`: … ``, `--dry-run  …`, `timeout - …`. */
export function headOf(statement: string): string | undefined {
  const { name, flags } = HEAD.exec(statement)?.groups ?? {}
  return flags ?? (name === undefined ? undefined : bareText(name))
}

/** A heading that is the name of a function, an option or a file, such as `cursorUp(count)`. */
const NAME = /^(?=.*(?:[.(_/]|\p{Ll}\p{Lu}))[@.$\w/-]+(?:\([^)]*\))?\??$/u

/** The name that a heading is, without its arguments; undefined if it is words. */
export function headingName(heading: string): string | undefined {
  const bare = heading.replaceAll('`', '').trim()
  return NAME.test(bare) ? bare.replace(/\(.*$|\?$/, '') : undefined
}
