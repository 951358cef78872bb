import type { Evidence } from '../evidence/judge.ts'
import { bareText, headOf, markedSpans, type MarkedSpan } from '../passages/spans.ts'

/** The separator of two values of a list: a comma, a bar, a word. */
const SEPARATOR = /^[\s,;/]*(?:\\?\||and\/or|and|or|&|as well as)?[\s,]*$/i
/** Words in capitals, of which there are two at least. */
const CAPITALS =
  /(?<![\w-])[A-Z][A-Z\d_]{2,}(?:(?:,?\s+(?:and|or)\s+|,\s+|\s*\/\s*|\s*\|\s*)[A-Z][A-Z\d_]{2,})+(?![\w-])/g
/** Names with a capital, the last one after a word: `Windows, macOS and Linux`. */
const NAMES =
  /(?<![\p{L}\p{N}.])(?:\p{Lu}[\w.+#-]*|\p{Ll}+\p{Lu}\w*)(?:,\s+(?:\p{Lu}[\w.+#-]*|\p{Ll}+\p{Lu}\w*))*,?\s+(?:and|or)\s+(?:\p{Lu}[\w+#-]*|\p{Ll}+\p{Lu}\w*)/gu
const TOKEN = String.raw`[\w@#+/.-]*[\w+#]`
/** Maximum length of a text in which a list without marks is searched, in characters. */
const MAX_TEXT = 1_000
/** Short values: `4, 7, 2019-09, and 2020-12`. */
const TOKENS = new RegExp(
  String.raw`(?:["'\x60]?${TOKEN}["'\x60]?,\s+){2,}(?:(?:and|or)\s+)?["'\x60]?${TOKEN}`,
  'gu',
)

/** The values that a statement lists, in its order; empty if it lists none. */
export function listedIn(evidence: Pick<Evidence, 'unit' | 'continuation'>): string[] {
  const { unit, continuation } = evidence
  if (unit.text.endsWith(':') && continuation !== undefined) {
    const lines = continuation.split('\n').map(headOfItem)
    const items = lines.filter((item) => item !== undefined)
    if (items.length > 1 && items.length === lines.length) return items
  }
  if (unit.kind === 'code') return []
  const marked = longestRun(unit.text)
  if (marked.length > 1) return marked
  for (const pattern of [CAPITALS, TOKENS, NAMES]) {
    const [list] = [...unit.text.slice(0, MAX_TEXT).matchAll(pattern)]
      .map(([text]) => text)
      .toSorted((a, b) => b.length - a.length)
    if (list !== undefined) return split(list)
  }
  return []
}

/** The subject of a list item: its first marked part, its words before a colon or a dash, or all of a short one. */
export function headOfItem(item: string): string | undefined {
  const [first] = markedSpans(item)
  if (first?.start === 0) return first.text
  const head = headOf(item)
  if (head !== undefined) return head
  const words = item.trim()
  return words.length <= 40 && !/[.!?]$/.test(words) && words !== '' ? bareText(words) : undefined
}

/** The most marked parts of a text in a row. */
function longestRun(text: string): string[] {
  let best: MarkedSpan[] = []
  let run: MarkedSpan[] = []
  for (const span of markedSpans(text)) {
    const last = run.at(-1)
    const isNext =
      last !== undefined && SEPARATOR.test(text.slice(last.end, span.start)) && span.start > last.end
    run = isNext && last.mark === span.mark ? [...run, span] : [span]
    if (run.length > best.length) best = run
  }
  return best.map((span) => span.text)
}

function split(list: string): string[] {
  return list
    .split(/,\s+|\s+(?:and|or)\s+|\s*[/|]\s*(?=[A-Z]{2})/)
    .map((value) =>
      value
        .replace(/^(?:and|or)\s+/, '')
        .replaceAll(/[`"']/g, '')
        .trim(),
    )
    .filter((value) => value !== '')
}
