import * as z from 'zod'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import type { JsonRole, Limit } from '../../protocol/requests/schema.ts'

/*
 * How much one request may ask for; where the interface document gives no figure, beyond it. Together with the limit on
 * bodies they bound the work of a request. Each is far above what a caller needs.
 */

/** Each limit by its name in the schemas of requests. Those of texts are in characters, the others count entries. */
export const LIMITS = {
  /** Event types of a webhook, values of a filter that may be repeated. */
  choices: 10,
  domains: 200,
  /** Metadata. */
  entries: 100,
  /** The value of a header for a tool server. */
  header: 8_192,
  headers: 50,
  /** An id, a name or a key that a caller chooses. */
  name: 512,
  queries: 50,
  /** A search query, an objective or the query of a monitor. */
  query: 5_000,
  runs: MAX_RUNS_PER_REQUEST,
  tools: 200,
  toolServers: 20,
  url: 2_048,
} as const satisfies Readonly<Record<Limit, number>>

/** Maximum number of issues in a 422, and of warnings about unknown fields of a search. */
export const MAX_REPORTED_ISSUES = 20

/** Objects and lists within one another in a JSON schema, at the most. */
const MAX_SCHEMA_LEVELS = 32
/** Entries of each object and each list in a JSON schema, at the most: properties, allowed values. */
const MAX_SCHEMA_ENTRIES = 500

/** A list. Its length is checked first: a list that is too long costs no look at its entries. */
export function list(item: z.ZodType, limit: Limit, min: number) {
  const error = atMost(LIMITS[limit], limit === 'runs' ? 'inputs in a request' : 'entries')
  const entries = z.array(item).min(min, { error: `Expected at least ${min} entry` })
  return z.array(z.unknown()).max(LIMITS[limit], error).pipe(entries)
}

/** An object of values by names that the caller chooses, which are checked only where they are not too many. */
export function record(value: z.ZodType, limit: Limit, maxKey: number = LIMITS.name) {
  const key = z.string().max(maxKey, `Expected a key of at most ${maxKey} characters`)
  return z
    .record(z.string(), z.unknown())
    .refine((members) => Object.keys(members).length <= LIMITS[limit], atMost(LIMITS[limit]))
    .pipe(z.record(key, value))
}

/** Any JSON object. Its size is limited by what it is for. */
export function jsonObject(role: JsonRole | undefined) {
  const object = z.record(z.string(), z.unknown())
  if (role === undefined) return object
  const maxEntries = role === 'metadata' ? LIMITS.entries : Infinity
  return object
    .refine((value) => Object.keys(value).length <= maxEntries, atMost(maxEntries))
    .refine((value) => JSON.stringify(value).length <= MAX_RUN_CHARACTERS, {
      error: `Expected at most ${MAX_RUN_CHARACTERS} characters of JSON`,
    })
    .superRefine((value, context) => {
      const message = role === 'schema' ? schemaFault(value) : undefined
      if (message !== undefined) context.addIssue({ code: 'custom', message })
    })
}

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

/** The error of a limit. */
export function atMost(count: number, what = 'entries') {
  return { error: `Expected at most ${count} ${what}` }
}
