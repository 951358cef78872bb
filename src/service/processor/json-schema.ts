import { Ajv, type ErrorObject, type Options } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { isObject, isText } from '../../protocol/event.ts'
import type { OutputSchema } from '../../protocol/task.ts'
import { bounded } from './bounded.ts'
import { addFormats } from './format.ts'
import { readSchema } from './schema.ts'

/** What is wrong with a schema, or with a value, and where. */
interface SchemaIssue {
  /** The keys from the root to the place. */
  readonly path: readonly string[]
  readonly message: string
  /** Whether the time was over before anything was found. Default false. */
  readonly isTimeout?: boolean
}

/** A schema that was read. */
export interface CompiledSchema {
  /** Why the schema cannot be used; empty if it can. */
  readonly issues: readonly SchemaIssue[]
  /** The first reason why a value does not satisfy the schema; undefined if it does. */
  validate(value: unknown): SchemaIssue | undefined
}

type Schema = Readonly<Record<string, unknown>>

/** Maximum time for compiling a schema and for validating one value, in ms of real time. */
const MAX_TIME = 1_000
/** Number of compiled schemas that are kept. */
const CACHE_SIZE = 64
const OPTIONS: Options = { strict: false, logger: false }
const DRAFTS = { 'draft-07': Ajv, '2020-12': Ajv2020 }
type Draft = keyof typeof DRAFTS

const cache = new Map<string, CompiledSchema>()
const checkers: { [Name in Draft]?: Ajv } = {}

/** The JSON schema that the content of an answer must satisfy; undefined if there is none. */
export function jsonSchemaOf(schema: OutputSchema | undefined): Schema | undefined {
  return typeof schema === 'object' && schema.type === 'json' ? schema.json_schema : undefined
}

/** Reads a JSON schema. Never throws, never fetches a reference, and takes a bounded time. */
export function compileSchema(schema: Schema): CompiledSchema {
  const key = JSON.stringify(schema)
  const cached = cache.get(key)
  if (cached !== undefined) return cached
  const compiled = compile(schema)
  const [oldest] = cache.keys()
  if (cache.size >= CACHE_SIZE && oldest !== undefined) cache.delete(oldest)
  cache.set(key, compiled)
  return compiled
}

function compile(schema: Schema): CompiledSchema {
  let issues: readonly SchemaIssue[] | undefined
  for (const draft of draftsOf(schema)) {
    const found = issuesOf(schema, draft)
    if (found.length === 0) return compileAs(draft, schema)
    issues ??= found
  }
  return unusable(issues ?? [])
}

function compileAs(draft: Draft, schema: Schema): CompiledSchema {
  const more = [...wrongPatterns(schema), ...unsupported(schema)]
  if (more.length > 0) return unusable(more)
  try {
    return bounded(MAX_TIME, () => {
      const ajv = new DRAFTS[draft]({ ...OPTIONS, validateSchema: false, meta: false })
      addFormats(ajv)
      const test = ajv.compile(schema)
      // References without end, and a schema that takes too long to read, throw here instead of in a run.
      test({})
      readSchema(schema)
      const validate = (value: unknown) => {
        try {
          return bounded(MAX_TIME, () => (test(value) === true ? undefined : issueOf(test.errors?.[0])))
        } catch (error) {
          return issueOfError(error)
        }
      }
      return { issues: [], validate }
    })
  } catch (error) {
    return unusable([issueOfError(error)])
  }
}

function unusable(issues: readonly SchemaIssue[]): CompiledSchema {
  return { issues, validate: () => issues[0] }
}

/** The versions of JSON Schema that a schema may follow: the one that it names, else both. */
function draftsOf({ $schema }: Schema): readonly Draft[] {
  if (!isText($schema)) return ['2020-12', 'draft-07']
  return /draft-0[67]/.test($schema) ? ['draft-07'] : ['2020-12']
}

/** Validates a schema against the schema of schemas. */
function issuesOf(schema: Schema, draft: Draft): SchemaIssue[] {
  let checker = checkers[draft]
  if (checker === undefined) {
    checker = new DRAFTS[draft](OPTIONS)
    // Compiles the schema of schemas, whose time does not count.
    checker.validateSchema({})
    checkers[draft] = checker
  }
  const { $schema: _named, ...rest } = schema
  try {
    const isValid = bounded(MAX_TIME, () => checker.validateSchema(rest))
    return isValid === true ? [] : [issueOf(checker.errors?.[0])]
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

function unsupported(schema: Schema): SchemaIssue[] {
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
  const allowed = Array.isArray(allowedValues) ? `: ${JSON.stringify(allowedValues).slice(0, 200)}` : ''
  return { path, message: message.slice(0, 300) + allowed }
}

function issueOfError(error: unknown): SchemaIssue {
  const isTimeout = isObject(error) && error['code'] === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
  const message = isTimeout ? `It cannot be processed within ${MAX_TIME} ms` : reasonOf(error)
  return { path: [], message, isTimeout }
}

function reasonOf(error: unknown): string {
  if (error instanceof RangeError) return 'Its references to itself have no end'
  const message = error instanceof Error ? error.message : String(error)
  return message.startsWith("can't resolve reference")
    ? `${message}: only references within the schema are resolved`
    : message.slice(0, 300)
}
