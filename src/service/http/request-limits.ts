import * as z from 'zod'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import type { JsonRole, Limit } from '../../protocol/requests/schema.ts'

/* Limits of a request. Limits without a figure in the interface document are beyond it. Together with the limit on bodies
 * they bound the work of a request. Each is far above the needs of a caller. */

/** Each limit by its name in the schemas of requests. Limits of strings are in characters, the others in entries. */
export const LIMITS = {
  /** Event types of a webhook, values of a repeatable filter. */
  choices: 10,
  /** Conditions of a FindAll run. */
  conditions: 20,
  domains: 200,
  /** Metadata. */
  entries: 100,
  /** Entities that a FindAll run excludes. */
  exclusions: 1_000,
  /** The value of a header for a tool server. */
  header: 8_192,
  headers: 50,
  /** Messages of a conversation. */
  messages: 500,
  /** An id, a name or a key that a caller chooses. */
  name: 512,
  queries: 50,
  /** A search query, an objective or the query of a monitor. */
  query: 5_000,
  runs: MAX_RUNS_PER_REQUEST,
  tools: 200,
  toolServers: 20,
  url: 2_048,
  /** Pages of an extraction. */
  urls: 20,
} as const satisfies Readonly<Record<Limit, number>>

/** Maximum number of issues in a 422, and of warnings about unknown fields of a search. */
export const MAX_REPORTED_ISSUES = 20

/** Maximum nesting depth of a JSON Schema. */
const MAX_SCHEMA_LEVELS = 32
/** Maximum entries per object or list of a JSON Schema, such as properties and allowed values. */
const MAX_SCHEMA_ENTRIES = 500

/** A list. Entries are validated only if their number is within the limit. */
export function list(item: z.ZodType, limit: Limit, min: number) {
  const max = LIMITS[limit]
  const { error } = atMost(max, limit === 'runs' ? 'inputs in a request' : 'entries')
  return z
    .array(z.unknown())
    .min(min, { error: `Expected at least ${min} entry` })
    .max(max, { error })
    .pipe(z.array(item))
}

/** An object with keys that the caller chooses. Entries are validated only if their number is within the limit. */
export function record(value: z.ZodType, limit: Limit, maxKey: number = LIMITS.name) {
  const key = z.string().max(maxKey, `Expected a key of at most ${maxKey} characters`)
  return z
    .record(z.string(), z.unknown())
    .refine((given) => Object.keys(given).length <= LIMITS[limit], atMost(LIMITS[limit]))
    .pipe(z.record(key, value))
}

/** Any JSON object. The role determines the maximum size. */
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
      const message = role === 'metadata' ? undefined : schemaFault(value)
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
