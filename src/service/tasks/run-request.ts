import { isObject } from '../../protocol/json.ts'
import { MAX_RUN_CHARACTERS } from '../../protocol/limits.ts'
import type { ValidationIssue, Warning } from '../../protocol/problem.ts'
import type { RunInput, TaskSpec } from '../../protocol/task.ts'
import { MAX_REPORTED_ISSUES } from '../http/request-limits.ts'
import { issue } from '../http/validation.ts'
import type { Isolated } from '../isolated/isolated.ts'
import { jsonSchemaOf } from '../processor/schema/output-schema.ts'
import type { NewRun } from './task-store.ts'

/** The default processor of runs; beyond the interface document. */
const DEFAULT_PROCESSOR = 'base'
/** Output fields that the basis already has; beyond the interface document. */
const BASIS_FIELDS: ReadonlySet<string> = new Set([
  'citations',
  'confidence',
  'evidence',
  'reasoning',
  'source',
  'sources',
  'source_urls',
])

/** A run, and issues that are not of a single field: its total length. */
export interface CheckedRun {
  readonly run: NewRun
  readonly issues: readonly ValidationIssue[]
}

/** Checks JSON schemas. */
export type SchemaChecks = Pick<Isolated, 'checkSchema'>

/** Creates a run from an input. `loc` is the path of the input in its request. */
export async function newRun(
  checks: SchemaChecks,
  given: RunInput,
  loc: readonly string[] = ['body'],
): Promise<CheckedRun> {
  return checkedRun(given, loc, await readSpec(checks, given.task_spec, [...loc, 'task_spec']))
}

/**
 * Creates runs from inputs, with the default task spec for inputs without one. Inputs after a schema that takes too long, or after enough issues, are not checked: the request is refused anyway.
 */
export async function newRuns(
  checks: SchemaChecks,
  inputs: readonly RunInput[],
  defaultSpec: TaskSpec | undefined,
): Promise<{ readonly runs: readonly NewRun[]; readonly issues: readonly ValidationIssue[] }> {
  // Read once, since there may be a thousand inputs and the spec may be long.
  const { issues: commonIssues, ...common } = await readSpec(checks, defaultSpec, [
    'body',
    'default_task_spec',
  ])
  const runs: NewRun[] = []
  const issues = [...commonIssues]
  let isTimeout = common.isTimeout
  for (const [index, given] of inputs.entries()) {
    if (isTimeout || issues.length >= MAX_REPORTED_ISSUES) break
    const loc = ['body', 'inputs', String(index)]
    let spec: ReadSpec = { ...common, issues: [] }
    if (given.task_spec !== undefined) {
      // oxlint-disable-next-line no-await-in-loop -- a schema that takes too long ends the checks
      spec = await readSpec(checks, given.task_spec, [...loc, 'task_spec'])
    }
    const checked = checkedRun(given, loc, spec)
    runs.push(checked.run)
    issues.push(...checked.issues)
    isTimeout = spec.isTimeout
  }
  return { runs, issues: issues.slice(0, MAX_REPORTED_ISSUES) }
}

/** The issues of inputs that continue an unknown interaction: without its context, they would be about another subject. */
export function unknownInteractions(
  inputs: readonly RunInput[],
  isKnown: (id: string) => boolean,
  locOf: (index: number) => readonly string[],
): ValidationIssue[] {
  const unknown = (id: string | undefined) => id !== undefined && !isKnown(id)
  return inputs
    .flatMap(({ previous_interaction_id: id }, index) =>
      unknown(id)
        ? [issue([...locOf(index), 'previous_interaction_id'], `There is no interaction with the id ${id}`)]
        : [],
    )
    .slice(0, MAX_REPORTED_ISSUES)
}

/** A task spec, with its length and warnings. */
interface ReadSpec {
  readonly spec: TaskSpec | undefined
  readonly characters: number
  readonly warnings: readonly Warning[]
  /** The problems of its JSON schema. */
  readonly issues: readonly ValidationIssue[]
  /** Whether reading the JSON schema took too long. */
  readonly isTimeout: boolean
}

async function readSpec(
  checks: SchemaChecks,
  spec: TaskSpec | undefined,
  loc: readonly string[],
): Promise<ReadSpec> {
  const characters = spec === undefined ? 0 : JSON.stringify(spec).length
  const schema = jsonSchemaOf(spec?.output_schema)
  // A schema that is too long is refused for its length.
  const isChecked = schema !== undefined && characters <= MAX_RUN_CHARACTERS
  const found = isChecked ? await checks.checkSchema(schema) : []
  const issues = found.map(({ path, message }) =>
    issue([...loc, 'output_schema', 'json_schema', ...path], message),
  )
  const isTimeout = found.some((one) => one.isTimeout === true)
  return { spec, characters, warnings: specWarnings(spec), issues, isTimeout }
}

function checkedRun(
  { processor: named = DEFAULT_PROCESSOR, ...rest }: RunInput,
  loc: readonly string[],
  { spec, characters, warnings, issues }: ReadSpec,
): CheckedRun {
  const asked = typeof rest.input === 'string' ? rest.input.length : JSON.stringify(rest.input).length
  const total = asked + characters
  const message = `Task spec and input have ${total} characters, more than ${MAX_RUN_CHARACTERS}`
  return {
    run: { input: { ...rest, processor: named, ...(spec !== undefined && { task_spec: spec }) }, warnings },
    issues: [
      ...issues,
      ...(total <= MAX_RUN_CHARACTERS ? [] : [issue([...loc, 'input'], message, 'too_big')]),
    ],
  }
}

function specWarnings(spec: TaskSpec | undefined): Warning[] {
  const schema = spec?.output_schema
  if (typeof schema !== 'object' || schema.type !== 'json') return []
  const { properties } = schema.json_schema
  if (!isObject(properties)) return []
  return Object.keys(properties)
    .filter((field) => BASIS_FIELDS.has(field))
    .map((field) => ({
      type: 'spec_validation_warning',
      message: `The output field ${field} is not needed: it is part of the basis of every field`,
      detail: { field },
    }))
}
