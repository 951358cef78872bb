import { Ajv, type ErrorObject, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, isText } from '../../../protocol/json.ts'
import type { JsonSchema } from '../../../protocol/requests/json-schema.ts'
import { addFormats } from './format.ts'
import { readSchema } from './schema.ts'
import { cutText } from '../../../protocol/cut-text.ts'

/** A problem of a schema, or of a value, and its position. */
export interface SchemaIssue {
  /** The keys from the root to the position. */
  readonly path: readonly string[]
  readonly message: string
  /** Whether the check exceeded its time or memory, so that nothing was found. Default false. */
  readonly isTimeout?: boolean
}

/** A schema that was read. */
interface CompiledSchema {
  /** Why the schema cannot be used; empty if it can. */
  readonly issues: readonly SchemaIssue[]
  /** The first reason why a value does not satisfy the schema; undefined if it does. */
  validate(value: unknown): SchemaIssue | undefined
}

/** Number of compiled schemas that are kept. */
const CACHE_SIZE = 64
const OPTIONS: Options = { strict: false, logger: false }
const DIALECTS = { 'draft-07': Ajv, '2020-12': Ajv2020 }
type Dialect = keyof typeof DIALECTS

const cache = new Map<string, CompiledSchema>()
/** Validate schemas. They compile the schemas of schemas here, so that their time does not count as a job's time. */
const CHECKERS: Readonly<Record<Dialect, Ajv>> = {
  'draft-07': createChecker('draft-07'),
  '2020-12': createChecker('2020-12'),
}

// Everything here takes a time and a memory without a bound: the isolated thread executes it.

/** Why a JSON schema cannot be used; empty if it can. Never throws, and never fetches a reference. */
export function checkSchema(text: string): readonly SchemaIssue[] {
  return compiled(text).issues
}

/** The first reason why a value does not satisfy a schema; undefined if it does. Both are JSON. */
export function validateContent(text: string, value: string): SchemaIssue | undefined {
  return compiled(text).validate(JSON.parse(value))
}

function compiled(text: string): CompiledSchema {
  const cached = cache.get(text)
  if (cached !== undefined) return cached
  const made = compile(JSON.parse(text))
  const [oldest] = cache.keys()
  if (cache.size >= CACHE_SIZE && oldest !== undefined) cache.delete(oldest)
  cache.set(text, made)
  return made
}

function compile(schema: JsonSchema): CompiledSchema {
  let issues: readonly SchemaIssue[] | undefined
  for (const dialect of dialectsOf(schema)) {
    const found = issuesOf(schema, dialect)
    if (found.length === 0) return compileAs(dialect, schema)
    issues ??= found
  }
  return unusable(issues ?? [])
}

function compileAs(dialect: Dialect, schema: JsonSchema): CompiledSchema {
  const more = [...wrongPatterns(schema), ...unsupported(schema)]
  if (more.length > 0) return unusable(more)
  try {
    const ajv = new DIALECTS[dialect]({ ...OPTIONS, validateSchema: false, meta: false })
    addFormats(ajv)
    const test = ajv.compile(schema)
    // References without end, and a schema that takes too long to read, end here instead of in a run.
    test({})
    readSchema(schema)
    const validate = (value: unknown) => {
      try {
        return test(value) === true ? undefined : issueOf(test.errors?.[0])
      } catch (error) {
        return issueOfError(error)
      }
    }
    return { issues: [], validate }
  } catch (error) {
    return unusable([issueOfError(error)])
  }
}

function unusable(issues: readonly SchemaIssue[]): CompiledSchema {
  return { issues, validate: () => issues[0] }
}

/** The versions of JSON Schema that a schema may follow: the version that it names, else both. */
function dialectsOf({ $schema }: JsonSchema): readonly Dialect[] {
  if (!isText($schema)) return ['2020-12', 'draft-07']
  return /draft-0[67]/.test($schema) ? ['draft-07'] : ['2020-12']
}

function createChecker(dialect: Dialect): Ajv {
  const checker = new DIALECTS[dialect](OPTIONS)
  checker.validateSchema({})
  return checker
}

/** Validates a schema against the schema of schemas. */
function issuesOf(schema: JsonSchema, dialect: Dialect): SchemaIssue[] {
  const checker = CHECKERS[dialect]
  const { $schema: _named, ...rest } = schema
  try {
    return checker.validateSchema(rest) === true ? [] : [issueOf(checker.errors?.[0])]
  } catch (error) {
    return [issueOfError(error)]
  }
}

/** The regular expressions in a schema that cannot be read. */
function wrongPatterns(value: unknown, path: readonly string[] = []): SchemaIssue[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, member]) => {
    const at = [...path, key]
    const patterns =
      key === 'pattern'
        ? [member]
        : key === 'patternProperties' && isObject(member)
          ? Object.keys(member)
          : []
    const wrong = patterns.filter(isText).find((pattern) => !isPattern(pattern))
    if (wrong !== undefined) return [{ path: at, message: 'Expected a regular expression' }]
    return wrongPatterns(member, at)
  })
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}

function unsupported(schema: JsonSchema): SchemaIssue[] {
  if (schema['$async'] !== undefined) return [{ path: ['$async'], message: 'This keyword is not supported' }]
  const { type } = schema
  const isForObjects = type === undefined || [type].flat().includes('object')
  const message = 'Expected an object, since content is a JSON object'
  return isForObjects ? [] : [{ path: ['type'], message }]
}

function issueOf(error: ErrorObject | undefined): SchemaIssue {
  const { instancePath = '', message = 'is not valid', params = {}, keyword = '' } = error ?? {}
  const path = instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'))
  const { missingProperty, allowedValues } = params
  if (keyword === 'required' && isText(missingProperty)) {
    return { path: [...path, missingProperty], message: 'is required, and nothing was found for it' }
  }
  const allowed = Array.isArray(allowedValues) ? `: ${cutText(JSON.stringify(allowedValues), 200)}` : ''
  return { path, message: cutText(message, 300) + allowed }
}

function issueOfError(error: unknown): SchemaIssue {
  return { path: [], message: reasonOf(error) }
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError) return 'Its references to itself have no end'
  const message = error instanceof Error ? error.message : String(error)
  return message.startsWith("can't resolve reference")
    ? `${message}: only references within the schema are resolved`
    : cutText(message, 300)
}
