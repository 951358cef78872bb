import { isObject } from '../../../protocol/json.ts'
import type { JsonSchema } from '../../../protocol/requests/json-schema.ts'

/** The words before the list of a question. */
const LEAD = /^(?:what (?:are|is)|which are|give me|tell me|list|find|show(?: me)?|extract)\s+/i
/** Two or more short names. A space can match only one part of the pattern, or a long list would take exponential time. */
const NAMES = String.raw`((?:[\p{L}\p{N} '-]+,)*[\p{L}\p{N} '-]+?),?\s+and\s+([\p{L}\p{N} '-]+?)`
/** Such a list, and the thing that it belongs to: `the licence, version and author of undici`. */
const LIST_OF = new RegExp(String.raw`^${NAMES}\s+(?:of|for)\s+\S`, 'iu')
/** A list and the thing that it belongs to: `undici's licence, version and author`. */
const LIST_AFTER = new RegExp(String.raw`^(?:the\s+)?[^\s,:]+(?:\s[^\s,:]+)?['’]s\s+${NAMES}\s*[?.]?$`, 'iu')
/** `Acme: founded, CEO, headquarters`. */
const COLON = /^[^:,?!.]{1,80}:\s+([^:;?!]+?)\.?$/u
/** Several values of one thing: `list the features of rxjs`. */
const ALL_OF = /^(?:list|enumerate)\s+(?:all\s+)?(?:the\s+)?([\p{L}\p{N} -]+?s)\s+(?:of|in)\s+\S/iu
/** Keys of an object whose value names the wanted fields. */
const WANTED = /^(?:fields|attributes|columns|properties)$/i
/** Maximum length of a question that is read as a list, in characters. */
const MAX_LENGTH = 400
/** Maximum number of fields of a suggested schema. */
const MAX_FIELDS = 12
/** Maximum number of words of a field. */
const MAX_WORDS = 3
/** Maximum length of a field, in characters. */
const MAX_NAME = 80

/**
 * The schema that an input suggests: one nullable field for each thing that a question lists, as in "the licence, version and
 * author of undici" or "Acme: founded, CEO", and for each null of an object, as in `{ company: 'Acme', founded: null }`. "List the
 * features of rxjs" suggests one list. Undefined for any other input, whose answer is a text.
 */
export function suggestSchema(input: unknown): JsonSchema | undefined {
  if (isObject(input)) return schemaOf(wantedOf(input))
  if (typeof input !== 'string' || input.length > MAX_LENGTH) return undefined
  const question = input.trim().replaceAll(/\s+/g, ' ')
  const names = listedIn(question)
  if (names !== undefined) return schemaOf(names.map((name) => [keyOf(name), name]))
  const [, all] = ALL_OF.exec(question) ?? []
  if (all === undefined || / and /i.test(all)) return undefined
  return schemaOf([[keyOf(all), all]], { type: ['array', 'null'], items: { type: 'string' } })
}

/** The names that a question lists, without articles; undefined if it lists none. */
function listedIn(question: string): readonly string[] | undefined {
  const bare = question.replace(LEAD, '')
  const [, before, last] = LIST_OF.exec(bare) ?? LIST_AFTER.exec(bare) ?? []
  const parts =
    before === undefined || last === undefined
      ? (COLON.exec(question)?.[1]?.split(/,\s*(?:and\s+)?|\s+and\s+/i) ?? [])
      : [...before.split(','), last]
  const names = parts.map((part) => part.trim().replace(/^(?:the|its|an?)\s+/i, ''))
  return names.length > 1 ? names : undefined
}

/** The keys of an object whose values are wanted, with their descriptions. It must also name the thing that they belong to. */
function wantedOf(input: Readonly<Record<string, unknown>>): readonly Field[] {
  const entries = Object.entries(input)
  const empty = entries.filter(([, value]) => value === null || value === '').map(([key]) => key)
  const named = entries.filter(([key, value]) => WANTED.test(key) && isNames(value))
  if (entries.length === empty.length + named.length) return []
  const names = [...empty, ...named.flatMap(([, value]) => (isNames(value) ? value : []))]
  return names.map((name) => [name, name.replace(/[_-]+/g, ' ').trim()])
}

type Field = readonly [name: string, description: string]

/** The schema of these fields; undefined if one of them is no short name, or there are none, too many or equal ones. */
function schemaOf(
  fields: readonly Field[],
  type: JsonSchema = { type: ['string', 'null'] },
): JsonSchema | undefined {
  const names = fields.map(([name]) => name)
  const isName = ([name, text]: Field) =>
    text !== '' && name.length <= MAX_NAME && text.split(/\s+/).length <= MAX_WORDS
  if (names.length === 0 || names.length > MAX_FIELDS || !fields.every(isName)) return undefined
  if (new Set(names).size < names.length) return undefined
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map(([name, description]) => [name, { ...type, description }])),
    required: names,
    additionalProperties: false,
  }
}

function keyOf(phrase: string): string {
  return phrase.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '_')
}

function isNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string')
}
