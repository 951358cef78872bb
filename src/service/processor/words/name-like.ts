import { literal } from './literal.ts'

/** Whether a lowercase word of a question is a name there: `maxAge`, `EPIPE`, `base64`, `"quoted"`, `--flag`, `call()`. */
export function isNameLike(word: string, question: string): boolean {
  const expression = new RegExp(
    String.raw`(?<before>["'\x60“.]|--?)?(?<![\p{L}\p{N}_])${literal(word)}(?![\p{L}\p{N}])(?<after>["'\x60”(_])?`,
    'giu',
  )
  for (const { 0: match, groups, index } of question.matchAll(expression)) {
    const { before, after } = groups ?? {}
    const bare = match.slice(before?.length ?? 0, match.length - (after?.length ?? 0))
    if (/\p{Ll}\p{Lu}|\d/u.test(bare) || /^\p{Lu}{2,}$/u.test(bare)) return true
    if (after === '(' || after === '_') return true
    if (before !== undefined && before !== '.' && before !== "'" && before !== '-') return true
    if (before === '.' && /\s/.test(question.charAt(index - 1))) return true
  }
  return false
}

/** A name in a text: in code marks, or of the shape of one. */
const NAMES =
  /`(?<quoted>[^`\n]+)`|(?<![\w.])(?<bare>--?[a-z][\w-]+|[a-z]+[A-Z]\w*|[A-Z]{2,}_\w+|\.?[a-z]\w*\()/g

/** Whether a text has a name that a question has not. */
export function hasNewName(text: string, question: string): boolean {
  const asked = question.toLowerCase()
  return [...text.matchAll(NAMES)].some(({ groups }) => {
    const name = (groups?.['quoted'] ?? groups?.['bare'] ?? '').toLowerCase().replace(/\($/, '')
    return name !== '' && !asked.includes(name)
  })
}
