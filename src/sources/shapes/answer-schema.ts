import { ArgumentError } from '../../protocol/argument-error.ts'
import { isObject } from '../../protocol/json.ts'
import type { JsonOutput, TaskOutput } from '../../protocol/output.ts'
import type {
  AnswerSchema,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from '../../protocol/standard-schema.ts'
import type { JsonSchemaSpec } from '../../protocol/task.ts'
import { RivuletError } from '../../protocol/rivulet-error.ts'

/** A JSON output (§2.3) whose content was validated with a schema. */
export type CheckedOutput<Content> = Omit<JsonOutput, 'content'> & {
  /** The content as the schema returned it. */
  readonly content: Content
}

/** An output does not match the schema. `issues` has the paths and reasons. */
export class OutputSchemaError extends RivuletError {
  override readonly name = 'OutputSchemaError'
  override readonly code = 'output_schema'
  readonly issues: readonly StandardIssue[]
  /** The output as received; null for a run without one. */
  readonly output: TaskOutput | null
  /** The run of the output; undefined if the output was checked alone. */
  readonly run_id: string | undefined

  constructor(
    issues: readonly StandardIssue[],
    output: TaskOutput | null,
    options: ErrorOptions & { readonly run_id?: string } = {},
  ) {
    const { run_id, ...own } = options
    const of = run_id === undefined ? '' : ` of the run ${run_id}`
    super(`the output${of} does not fit the schema: ${issuesText(issues)}`, own)
    this.issues = issues
    this.output = output
    this.run_id = run_id
  }
}

/** The number of pending asynchronous checks at which the stream is paused. */
export const MAX_CHECKS = 100

/** The drafts of JSON Schema to convert to, the preferred one first. */
const TARGETS = ['draft-2020-12', 'draft-07']

/**
 * Converts a schema to the `output_schema` of a task spec (§2.8), for `taskGroups.addRuns`:
 * `default_task_spec: { output_schema: outputSchema(schema) }`. Throws an ArgumentError for a schema without a JSON Schema.
 */
export function outputSchema(schema: AnswerSchema<unknown>): JsonSchemaSpec {
  return { type: 'json', json_schema: jsonSchemaOf(schema) }
}

/**
 * Validates the output of a run with the schema that was sent with it, and returns the typed output. Rejects with an
 * {@link OutputSchemaError} if it does not match.
 *
 * ```ts
 * import { checkOutput, createClient } from 'rivulet'
 * import { deliver, ofType } from 'rivulet/operators'
 * import { z } from 'zod'
 *
 * const Company = z.object({ name: z.string(), founded: z.number() })
 * createClient()
 *   .watch({ taskGroups: ['tgrp_123'] })
 *   .pipe(
 *     ofType('task_run.state'),
 *     deliver(async ({ data }) => {
 *       const { content } = await checkOutput(Company, data.output)
 *       console.log(content.name, content.founded)
 *     }),
 *   )
 *   .subscribe()
 * ```
 */
export async function checkOutput<Content>(
  schema: AnswerSchema<Content>,
  output: TaskOutput | null | undefined,
): Promise<CheckedOutput<Content>> {
  validatorOf(schema)
  const checked = await checkedOutput(schema, output ?? null)
  if (checked instanceof OutputSchemaError) throw checked
  return checked
}

/** Like {@link checkOutput}, but returns the error, and a promise only for an asynchronous schema. */
export function checkedOutput<Content>(
  schema: AnswerSchema<Content>,
  output: TaskOutput | null,
): CheckResult<Content> | Promise<CheckResult<Content>> {
  if (output?.type !== 'json') {
    const message = output === null ? 'the run has no output' : `its type is ${nameOf(output.type)}, not json`
    return new OutputSchemaError([{ message }], output)
  }
  const outputOf = (result: StandardResult<Content>) =>
    result.issues === undefined
      ? { ...output, content: result.value }
      : new OutputSchemaError(result.issues, output)
  // A schema that throws is reported as a misfit, so that the run is still emitted.
  const failed = (cause: unknown) =>
    new OutputSchemaError([{ message: 'the schema itself failed' }], output, { cause })
  try {
    const result = validatorOf(schema)['~standard'].validate(output.content)
    return result instanceof Promise ? result.then(outputOf).catch(failed) : outputOf(result)
  } catch (error) {
    return failed(error)
  }
}

/** The type of an output, as far as it is text. `String()` throws for some objects. */
function nameOf(type: unknown): string {
  return typeof type === 'object' && type !== null ? 'an object' : String(type)
}

type CheckResult<Content> = CheckedOutput<Content> | OutputSchemaError

/** Returns the Standard Schema. Throws an ArgumentError for any other value. */
export function validatorOf<Content>(schema: AnswerSchema<Content>): StandardSchema<Content> {
  // Checked as unknown, for callers without TypeScript. Some libraries have functions as schemas.
  const given: unknown = schema
  if (!isObject(given) && typeof given !== 'function')
    throw new ArgumentError('schema', 'a Standard Schema', given)
  const validator = 'schema' in schema ? schema.schema : schema
  const standard: unknown = validator?.['~standard']
  if (!isObject(standard) || typeof standard['validate'] !== 'function')
    throw new ArgumentError('schema', 'a Standard Schema', schema)
  return validator
}

/** The JSON Schema of a schema. Throws an ArgumentError for a schema without one. */
export function jsonSchemaOf(schema: AnswerSchema<unknown>): Readonly<Record<string, unknown>> {
  validatorOf(schema)
  if ('jsonSchema' in schema) {
    if (!isObject(schema.jsonSchema))
      throw new ArgumentError('schema.jsonSchema', 'an object', schema.jsonSchema)
    return schema.jsonSchema
  }
  const converter: unknown = '~standard' in schema ? schema['~standard'].jsonSchema : undefined
  if (!isObject(converter) || typeof converter['input'] !== 'function')
    throw new ArgumentError('schema', 'one with a JSON Schema, or { schema, jsonSchema }', schema)
  let reason: unknown
  for (const target of TARGETS) {
    try {
      const converted: unknown = converter['input']({ target })
      if (isObject(converted)) return converted
    } catch (error) {
      reason = error
    }
  }
  const why = reason instanceof Error ? `: ${reason.message}` : ''
  throw new ArgumentError(
    'schema',
    { message: `schema cannot be written as JSON Schema${why}` },
    typeof schema,
  )
}

/** The issues of a value in one line. */
export function issuesText(issues: readonly StandardIssue[]): string {
  return issues.map(textOf).join('; ')
}

/** `address.city: Required`; only the message for an issue of the whole output. */
function textOf({ message, path = [] }: StandardIssue): string {
  const location = path.map((step) => String(typeof step === 'object' ? step.key : step)).join('.')
  return location === '' ? message : `${location}: ${message}`
}
