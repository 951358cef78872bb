/** The words before the list of a question. */
const LEAD = /^(?:what (?:are|is)|which are|give me|tell me|list|find|show(?: me)?|extract)\s+/i
/** A list of two or more short names, and what they belong to: `the licence, version and author of undici`. */
const LIST = /^((?:[\p{L}\p{N} '-]+,\s*)*[\p{L}\p{N} '-]+?),?\s+and\s+([\p{L}\p{N} '-]+?)\s+(?:of|for)\s+\S/iu
/** Maximum length of a question that is read as a list, in characters. */
const MAX_LENGTH = 400
/** Maximum number of fields of a suggested schema. */
const MAX_FIELDS = 12
/** Maximum number of words of a field. */
const MAX_WORDS = 3

/**
 * The schema that a question suggests: one nullable field for each thing that it lists, as in "the licence, version and
 * author of undici". Undefined for any other question, whose answer is a text.
 */
export function suggestSchema(input: unknown): Readonly<Record<string, unknown>> | undefined {
  if (typeof input !== 'string' || input.length > MAX_LENGTH) return undefined
  const [, before, last] = LIST.exec(input.trim().replace(LEAD, '')) ?? []
  if (before === undefined || last === undefined) return undefined
  const phrases = [...before.split(','), last].map((part) => part.trim().replace(/^(?:the|its|an?)\s+/i, ''))
  const isName = (phrase: string) => phrase !== '' && phrase.split(/\s+/).length <= MAX_WORDS
  if (phrases.length > MAX_FIELDS || !phrases.every(isName)) return undefined
  const names = phrases.map((phrase) => phrase.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '_'))
  if (new Set(names).size < names.length) return undefined
  const properties = names.map((name, index): [string, unknown] => [
    name,
    { type: ['string', 'null'], description: phrases[index] },
  ])
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    required: names,
    additionalProperties: false,
  }
}
