import type { Context } from 'hono'
import type * as z from 'zod'
import { isObject } from '../../protocol/json.ts'
import type { ValidationIssue } from '../../protocol/problem.ts'
import { addsRuns } from './body.ts'
import { limitExceeded } from './json-size.ts'
import { problem, type HttpProblem } from './problem.ts'
import { MAX_REPORTED_ISSUES } from './request-limits.ts'

/** Creates the 422 of an area: `invalidRequest` for task groups, {@link unprocessable} for the others (§7). */
export type Refuse = (issues: readonly ValidationIssue[]) => HttpProblem

/** Maximum depth of nested objects and arrays. */
const MAX_NESTING = 256
/** Maximum number of objects, arrays and their entries; far more than a valid request has. */
const MAX_VALUES = 50_000
/** The same for a request that adds runs: 500 per run. */
const MAX_RUNS_VALUES = 500_000

/** The 422 of all endpoints except the endpoints of task groups: an ErrorResponse that lists the issues (§7). */
export function unprocessable(issues: readonly ValidationIssue[]): HttpProblem {
  const messages = issues.map(({ loc, msg }) => `${loc.slice(1).join('.') || loc[0]}: ${msg}`)
  return problem(422, `The request is not valid. ${messages.join('; ')}`, { errors: issues })
}

/** Reads and validates the JSON body, without unknown fields. An empty body is `undefined`. */
export async function readJson<Schema extends z.ZodType>(
  c: Context,
  schema: Schema,
  refuse: Refuse,
): Promise<z.output<Schema>> {
  return checked(await readBody(c, refuse), schema, refuse)
}

/** Like {@link readJson}, and also returns the paths of unknown fields, which may be misspelt. */
export async function readJsonAndUnknown<Schema extends z.ZodType>(
  c: Context,
  schema: Schema,
  refuse: Refuse,
): Promise<{ readonly body: z.output<Schema>; readonly unknown: readonly string[] }> {
  const given = await readBody(c, refuse)
  const body = checked(given, schema, refuse)
  return { body, unknown: unknownFields(given, body) }
}

/** Reads the JSON body; undefined if it is empty. */
export async function readBody(c: Context, refuse: Refuse): Promise<unknown> {
  const bytes = await c.req.arrayBuffer()
  const values = addsRuns(c.req.path) ? MAX_RUNS_VALUES : MAX_VALUES
  const limit = limitExceeded(new Uint8Array(bytes), { levels: MAX_NESTING, values })
  if (limit === 'levels') throw refuse([issue(['body'], `Expected at most ${MAX_NESTING} levels of nesting`)])
  if (limit === 'values') throw refuse([issue(['body'], `Expected at most ${values} values`)])
  return parseJson(bytes, refuse)
}

/** Reads and validates the query parameters, except for the ignored ones. An empty value is an absent one. */
export function readQuery<Query>(
  c: Context,
  schema: z.ZodType<Query>,
  refuse: Refuse,
  ignored: readonly string[] = [],
): Query {
  const given = Object.entries(c.req.queries())
    .map(([name, values]): [string, string[]] => [name, values.filter((value) => value !== '')])
    .filter(([name, values]) => values.length > 0 && !ignored.includes(name))
  return checked(Object.fromEntries(given), schema, refuse, 'query')
}

/** An entry of a 422. */
export function issue(loc: readonly string[], msg: string, type = 'value_error'): ValidationIssue {
  return { loc, msg, type }
}

function parseJson(bytes: ArrayBuffer, refuse: Refuse): unknown {
  if (bytes.byteLength === 0) return undefined
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (error) {
    const reason = error instanceof SyntaxError ? error.message : 'not UTF-8'
    throw refuse([issue(['body'], `Invalid JSON: ${reason}`, 'json_invalid')])
  }
}

function unknownFields(given: unknown, known: unknown): string[] {
  if (!isObject(given) || !isObject(known)) return []
  return Object.keys(given).flatMap((field) => {
    if (!Object.hasOwn(known, field)) return [field]
    return unknownFields(given[field], known[field]).map((inner) => `${field}.${inner}`)
  })
}

/** Validates a body or a query. Throws the error that `refuse` creates for the issues. */
export function checked<Schema extends z.ZodType>(
  value: unknown,
  schema: Schema,
  refuse: Refuse,
  where: 'body' | 'query' = 'body',
): z.output<Schema> {
  const result = schema.safeParse(value, { reportInput: true })
  if (result.success) return result.data
  throw refuse(result.error.issues.slice(0, MAX_REPORTED_ISSUES).map((found) => toIssue(found, where)))
}

function toIssue(found: z.core.$ZodIssue, where: string): ValidationIssue {
  // §4.3 has strings in `loc` only, so the index of an array is a string too.
  const loc = [where, ...found.path.map(String)]
  // JSON and queries have no `undefined`, so it means a missing field. The input of a union is the whole object.
  const isMissing =
    found.code === 'invalid_union' && found.discriminator !== undefined && isObject(found.input)
      ? found.input[found.discriminator] === undefined
      : found.input === undefined
  if (isMissing) return issue(loc, 'Field required', 'missing')
  // The message for an invalid key is in its nested issue.
  const { message } = (found.code === 'invalid_key' && found.issues[0]) || found
  const { type } = (found.code === 'custom' && found.params) || {}
  return issue(loc, message, typeof type === 'string' ? type : found.code)
}
