import { isObject } from '../../protocol/json.ts'
import type { Span } from './blocks.ts'
import { oneLine } from './one-line.ts'
import type { ParsedText } from './parsed-text.ts'

/** Maximum length of a manifest, in characters. A longer one is no document. */
const MAX_MANIFEST_LENGTH = 256 * 1_024
/** Maximum length of a member, in characters. A longer one is left out. */
const MAX_MEMBER_LENGTH = 2_400
/** Maximum length of several members in one passage, in characters. */
const MAX_PASSAGE_LENGTH = 1_200
/** The text between two passages. */
const BETWEEN_PASSAGES = ',\n\n'

/**
 * Parses a `package.json`: its title is the package's name, its text has the members that describe the package, such as
 * `"license": "MIT"`, as they stand in the file. Members that stand together are one passage; an empty line separates it from the next.
 * Returns undefined unless it is an object with a name and another of these members.
 */
export function parseManifest(source: string): ParsedText | undefined {
  if (source.length > MAX_MANIFEST_LENGTH || !isObject(parseJson(source))) return undefined
  // If several members have one name, the last one counts.
  const byName = new Map(membersOf(source).map((member) => [member.name, member]))
  const described = [...byName.values()].filter((member) => lineOf(member) !== undefined)
  const title = statedLine(byName.get('name')?.value)
  // Some folders of a package have a manifest with a name only, which selects a module format.
  if (title === undefined || described.length < 2) return undefined
  const passages = joined(
    source,
    described.toSorted((a, b) => a.start - b.start),
  )
  return { title, text: passages.map(({ start, end }) => source.slice(start, end)).join(BETWEEN_PASSAGES) }
}

/** The passages of a manifest's text, each of them a part of its file. If the text was cut, only passages of whole members. */
export function manifestPassages(text: string): Span[] {
  return joined(text, bareMembersOf(text))
}

/** A text of a manifest in readable form: a line for each member, such as `license: MIT`. */
export function manifestLines(text: string): string[] {
  return bareMembersOf(text).flatMap((member) => lineOf(member) ?? [])
}

/** A member of a manifest, and its position. */
interface ManifestMember extends Span {
  readonly name: string
  readonly value: unknown
}

/** Strings, and the marks that begin, separate and end members. */
const TOKENS = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g

/** The members of an object that may describe a package, but for those that are too long or no JSON. */
function membersOf(object: string): ManifestMember[] {
  const members: ManifestMember[] = []
  let depth = 0
  let key: { readonly name: unknown; readonly start: number } | undefined
  for (const { 0: token, index } of object.matchAll(TOKENS)) {
    const isOpening = token === '{' || token === '['
    if (token.startsWith('"')) {
      if (depth === 1) key ??= { name: parseJson(token), start: index }
      continue
    }
    if (depth === 1 && key !== undefined && !isOpening) {
      const member = memberAt(key.start, key.name, object.slice(key.start, index).trimEnd())
      if (member !== undefined) members.push(member)
      key = undefined
    }
    if (token !== ',') depth += isOpening ? 1 : -1
  }
  return members
}

function memberAt(start: number, name: unknown, text: string): ManifestMember | undefined {
  if (typeof name !== 'string' || !DESCRIBING.has(name) || text.length > MAX_MEMBER_LENGTH) return undefined
  const parsed = parseJson(`{${text}}`)
  return isObject(parsed) ? { name, value: parsed[name], start, end: start + text.length } : undefined
}

/** The members in a manifest's text, which has no braces around them. */
function bareMembersOf(text: string): ManifestMember[] {
  return membersOf(`{${text}}`).map(({ name, value, start, end }) => {
    return { name, value, start: start - 1, end: end - 1 }
  })
}

/** The passages of members: those that follow each other are one, up to its maximum length. */
function joined(text: string, members: readonly ManifestMember[]): Span[] {
  const passages: Span[] = []
  for (const { start, end } of members) {
    const last = passages.at(-1)
    const isNext = last !== undefined && /^\s*,(?!\n\n)\s*$/.test(text.slice(last.end, start))
    if (isNext && end - last.start <= MAX_PASSAGE_LENGTH) passages.splice(-1, 1, { start: last.start, end })
    else passages.push({ start, end })
  }
  return passages
}

/** The members that describe a package: what each is called in its line, and how its value is read. */
const DESCRIBING: ReadonlyMap<string, readonly [key: string, read: (value: unknown) => string | undefined]> =
  new Map([
    ['name', ['name', statedLine]],
    ['version', ['version', statedLine]],
    ['description', ['description', statedLine]],
    ['keywords', ['keywords', listOf]],
    // npm's old forms of licences: an object, and a list of objects.
    ['license', ['license', (value) => statedLine(value) ?? part(value, 'type')]],
    ['licenses', ['license', licences]],
    ['author', ['author', person]],
    ['homepage', ['homepage', statedLine]],
    ['repository', ['repository', (value) => statedLine(value) ?? part(value, 'url')]],
    ['engines', ['engines.node', (value) => part(value, 'node')]],
  ])

/** A member in readable form, on one line; undefined if it does not describe the package. */
function lineOf({ name, value }: ManifestMember): string | undefined {
  const [key, read] = DESCRIBING.get(name) ?? []
  const text = read?.(value)
  return text === undefined ? undefined : `${key}: ${text}`
}

function parseJson(source: string): unknown {
  try {
    return JSON.parse(source)
  } catch {
    return undefined
  }
}

/** A text on one line; undefined if it is not a text, or blank. */
function statedLine(value: unknown): string | undefined {
  return typeof value === 'string' ? oneLine(value) || undefined : undefined
}

function part(value: unknown, name: string): string | undefined {
  return isObject(value) ? statedLine(value[name]) : undefined
}

function listOf(value: unknown): string | undefined {
  if (!Array.isArray(value)) return statedLine(value)
  return statedLine(value.filter((item) => typeof item === 'string').join(', '))
}

function licences(value: unknown): string | undefined {
  if (!Array.isArray(value)) return undefined
  return statedLine(value.flatMap((licence) => part(licence, 'type') ?? statedLine(licence) ?? []).join(', '))
}

/** A person as npm writes one: `Name <email> (url)`. */
function person(value: unknown): string | undefined {
  const name = part(value, 'name')
  if (name === undefined) return statedLine(value)
  const email = part(value, 'email')
  const url = part(value, 'url')
  return [
    name,
    ...(email === undefined ? [] : [`<${email}>`]),
    ...(url === undefined ? [] : [`(${url})`]),
  ].join(' ')
}
