import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { scoreText } from '../answers/compare.ts'
import type { Question } from '../answers/question.ts'

/**
 * What the note of an item claims about the documents, one claim a line; other lines are for the reader only.
 *
 * - `pino/README.md: “Very low overhead”`: the file, below `node_modules`, contains these words.
 * - `none in pino: /price/i`: no document of the package matches.
 * - `not installed: some-name`: there is no package of that name.
 *
 * `Conclusion: 2023-11-06` gives a value that follows from the quotes, as a date in another form does.
 */
type Claim =
  | { readonly kind: 'quote'; readonly file: string; readonly words: string }
  | { readonly kind: 'none'; readonly package: string; readonly pattern: RegExp }
  | { readonly kind: 'absent'; readonly package: string }

/** The claims of a note. */
function claimsOf(note: string): Claim[] {
  return note.split('\n').flatMap((line): Claim[] => {
    const [, file, words] = /^(\S+): “(.+)”$/.exec(line) ?? []
    if (file !== undefined && words !== undefined) return [{ kind: 'quote', file, words }]
    const [, searched, pattern] = /^none in (\S+): (\/.+\/\w*)$/.exec(line) ?? []
    if (searched !== undefined && pattern !== undefined) {
      return [{ kind: 'none', package: searched, pattern: regExpOf(pattern) ?? /(?:)/ }]
    }
    const [, absent] = /^not installed: (\S+)$/.exec(line) ?? []
    return absent === undefined ? [] : [{ kind: 'absent', package: absent }]
  })
}

function conclusionsOf(note: string): string[] {
  return [...note.matchAll(/^Conclusion: (.+)$/gm)].map(([, value = '']) => value)
}

/** What is wrong with the label of an item, in sentences; empty if it can be checked against the installed packages and holds. */
export function problemsOf(question: Question, packages: string): string[] {
  const claims = claimsOf(question.note ?? '')
  const problems = claims.flatMap((claim) => brokenClaim(claim, packages))
  const quotes = claims.filter((claim) => claim.kind === 'quote')
  if (question.expect === 'unknown') {
    if (claims.length === 0) problems.push('its note does not claim where the documents are silent')
  } else if (quotes.length === 0) problems.push('its note quotes no document')
  else {
    const stated = [...quotes.map(({ words }) => words), ...conclusionsOf(question.note ?? '')]
    problems.push(...unsupported(question, stated))
  }
  return problems.map((problem) => `${question.id}: ${problem}`)
}

function brokenClaim(claim: Claim, packages: string): string[] {
  if (claim.kind === 'absent') {
    return existsSync(join(packages, claim.package))
      ? [`${claim.package} is installed, so the documents may answer it`]
      : []
  }
  if (claim.kind === 'none') {
    if (!existsSync(join(packages, claim.package))) return [notInstalled(claim.package)]
    return documentsOf(packages, claim.package)
      .filter(({ text }) => claim.pattern.test(text))
      .map(({ file }) => `${file} matches ${String(claim.pattern)}, so it may answer the question`)
  }
  const folder = claim.file.startsWith('@') ? 2 : 1
  const name = claim.file.split('/').slice(0, folder).join('/')
  if (!existsSync(join(packages, name))) return [notInstalled(name)]
  const file = join(packages, claim.file)
  if (!existsSync(file)) return [`${claim.file} does not exist: its package has changed`]
  return spaced(readFileSync(file, 'utf8')).includes(spaced(claim.words))
    ? []
    : [`${claim.file} no longer contains “${claim.words}”: its package has changed, correct the label`]
}

function notInstalled(name: string): string {
  return `${name} is not installed on this platform: ask about packages that are installed on every one`
}

const DOCUMENT = /^(?:readme|changelog|history|licen[cs]e|copying|notice|authors|package\.json)/i
const NO_TEXT = /\.(?:[cm]?[jt]sx?|map|css|png|svg|gif)$/i
const MANIFEST_FIELDS = [
  'name',
  'version',
  'description',
  'keywords',
  'license',
  'author',
  'homepage',
  'repository',
  'engines',
]

/** The documents in a package's own folder; of package.json the fields that are shown. */
function documentsOf(packages: string, name: string): { file: string; text: string }[] {
  return readdirSync(join(packages, name), { withFileTypes: true })
    .filter((entry) => entry.isFile() && DOCUMENT.test(entry.name) && !NO_TEXT.test(entry.name))
    .map((entry) => {
      const text = readFileSync(join(packages, name, entry.name), 'utf8')
      return {
        file: `${name}/${entry.name}`,
        text: entry.name === 'package.json' ? manifestText(text) : text,
      }
    })
}

function manifestText(text: string): string {
  const manifest: Record<string, unknown> = JSON.parse(text)
  return MANIFEST_FIELDS.map((field) => `${field}: ${JSON.stringify(manifest[field] ?? '')}`).join('\n')
}

/** The expected answers that the quoted words do not give. Yes, no and values of booleans are conclusions. */
function unsupported(question: Question, stated: readonly string[]): string[] {
  if (question.expect === 'unknown') return []
  if (question.form !== 'json') {
    const { expect, form } = question
    if (expect.accept.some(isConclusion)) return []
    const isRight = stated.some((words) => scoreText(words, expect, form) === 'right')
    return isRight ? [] : ['no quote of its note would be a right answer']
  }
  const all = stated.join('\n')
  return Object.entries(question.expect).flatMap(([field, values]) => {
    if (values === 'unknown' || values.some((value) => isConclusion(value) || statedIn(value, all))) return []
    return [`no accepted value of ${field} is in its quotes`]
  })
}

function isConclusion(value: unknown): boolean {
  return (
    typeof value === 'boolean' ||
    value === null ||
    (typeof value === 'string' && /^\/\^\\W\*(?:yes|no)\\b\/i$/.test(value))
  )
}

function statedIn(value: unknown, quotes: string): boolean {
  if (Array.isArray(value)) return value.every((each) => statedIn(each, quotes))
  const text = String(value)
  return regExpOf(text)?.test(spaced(quotes)) ?? plain(quotes).includes(plain(text))
}

function regExpOf(text: string): RegExp | undefined {
  const [, source, flags] = /^\/(.+)\/(\w*)$/.exec(text) ?? []
  return source === undefined ? undefined : new RegExp(source, flags)
}

function spaced(text: string): string {
  return text.replaceAll(/\s+/g, ' ')
}

function plain(text: string): string {
  return spaced(text).replaceAll(/[*_`]/g, '').toLowerCase()
}
