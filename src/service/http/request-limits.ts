import * as z from 'zod'
import { MAX_RUN_CHARACTERS } from '../../protocol/limits.ts'

/*
 * How much one request may ask for; where the interface document gives no figure, beyond it. Together with the limit on
 * bodies they bound the work of a request. Each is far above what a caller needs.
 */

/** Characters of a search query, an objective and a monitor's query, at the most. */
export const MAX_QUERY_CHARACTERS = 5_000
/** Search queries of a request, at the most. */
export const MAX_QUERIES = 50
/** Domains of a list, at the most (§2.8). */
export const MAX_DOMAINS = 200
/** Characters of an id, a name or a key that a caller chooses, at the most. */
export const MAX_NAME_CHARACTERS = 512
/** Characters of a URL, at the most. */
export const MAX_URL_CHARACTERS = 2_048
/** Entries of a short list: event types of a webhook, values of a filter that is repeated. */
export const MAX_CHOICES = 10
/** Entries of a record, metadata for instance, at the most. */
export const MAX_ENTRIES = 100
/** Tool servers of a run, at the most (§2.8). */
export const MAX_TOOL_SERVERS = 20
/** Tools that a run may use of a server, at the most (§2.8). */
export const MAX_TOOLS = 200
/** Headers for a tool server, at the most (§2.8). */
export const MAX_HEADERS = 50
/** Characters of such a header's value, at the most. */
export const MAX_HEADER_CHARACTERS = 8_192
/** Faults that a 422 names, and fields that a search warns of: the first of them. */
export const MAX_TOLD = 20

/** Objects and lists within one another in a JSON schema, at the most. */
const MAX_SCHEMA_LEVELS = 32
/** Entries of each object and each list in a JSON schema, at the most: properties, allowed values. */
const MAX_SCHEMA_ENTRIES = 500

/** A text of at most so many characters. */
export function limitedText(max: number, min = 0) {
  return z
    .string()
    .min(min, { error: 'Expected a text that is not empty' })
    .max(max, { error: `Expected at most ${max} characters` })
}

/** A list of at most `max` entries. Its length is checked first: a list that is too long costs no look at its entries. */
export function list<Item extends z.ZodType>(item: Item, max: number, what = 'entries') {
  return z.array(z.unknown()).max(max, atMost(max, what)).pipe(z.array(item))
}

/** An object with at most `max` members, which are checked only where they are not too many. */
export function record<Key extends z.ZodType<string, string>, Value extends z.ZodType>(
  key: Key,
  value: Value,
  max: number,
) {
  return z
    .record(z.string(), z.unknown())
    .refine((members) => Object.keys(members).length <= max, atMost(max))
    .pipe(z.record(key, value))
}

/** Any JSON object that is at most so long when it is written down. */
export function jsonObject(maxCharacters: number, maxEntries = Infinity) {
  return z
    .record(z.string(), z.unknown())
    .refine((value) => Object.keys(value).length <= maxEntries, atMost(maxEntries))
    .refine((value) => JSON.stringify(value).length <= maxCharacters, {
      error: `Expected at most ${maxCharacters} characters of JSON`,
    })
}

/** What a caller attaches to a group or a run, to be echoed. */
export const freeMetadata = jsonObject(MAX_RUN_CHARACTERS, MAX_ENTRIES)

/** A JSON schema: as long as a task spec may be, and no deeper and no wider than whatever reads it can do with. */
export const jsonSchema = jsonObject(MAX_RUN_CHARACTERS).superRefine((schema, context) => {
  const message = schemaFault(schema)
  if (message !== undefined) context.addIssue({ code: 'custom', message })
})

function schemaFault(schema: object): string | undefined {
  let level: object[] = [schema]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === MAX_SCHEMA_LEVELS) return `Expected at most ${MAX_SCHEMA_LEVELS} levels of nesting`
    const members = level.map((container) => Object.values(container))
    if (members.some(({ length }) => length > MAX_SCHEMA_ENTRIES)) {
      return `Expected at most ${MAX_SCHEMA_ENTRIES} entries in each object and list`
    }
    level = members.flat().filter((value) => typeof value === 'object' && value !== null)
  }
  return undefined
}

function atMost(count: number, what = 'entries') {
  return { error: `Expected at most ${count} ${what}` }
}
