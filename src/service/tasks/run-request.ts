import * as z from 'zod'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import type { ValidationIssue, Warning } from '../../protocol/problem.ts'
import type { RunInput, TaskSpec } from '../../protocol/task.ts'
import {
  freeMetadata,
  jsonSchema,
  list,
  MAX_CHOICES,
  MAX_HEADER_CHARACTERS,
  MAX_HEADERS,
  MAX_NAME_CHARACTERS,
  MAX_TOLD,
  MAX_TOOL_SERVERS,
  MAX_TOOLS,
  record,
  limitedText,
} from '../http/request-limits.ts'
import { httpUrl, issue, location, optional, sourcePolicy } from '../http/validation.ts'
import type { NewRun } from './task-store.ts'

/** The processor of runs that name none; beyond the interface document. */
const DEFAULT_PROCESSOR = 'base'
/** Fields that an answer's basis carries already; beyond the interface document. */
const BASIS_FIELDS: ReadonlySet<string> = new Set([
  'citations',
  'confidence',
  'evidence',
  'reasoning',
  'source',
  'sources',
  'source_urls',
])

const object = z.record(z.string(), z.unknown())
const words = z.string().min(1, { error: 'Expected a text that is not empty' })
const name = limitedText(MAX_NAME_CHARACTERS)

const outputSchema = z.union([
  words,
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('json'), json_schema: jsonSchema }),
    z.object({ type: z.literal('text'), description: optional(z.string()) }),
    z.object({ type: z.literal('auto') }),
  ]),
])

const taskSpec = z.object({
  output_schema: optional(outputSchema),
  input_schema: optional(z.union([z.string(), jsonSchema])),
})

const processor = limitedText(MAX_NAME_CHARACTERS, 1)

const runInput = z.object({
  input: z.union([words, object], { error: 'Expected a non-empty string or a JSON object' }),
  processor: optional(processor),
  metadata: optional(freeMetadata),
  memory_scope_key: optional(name),
  source_policy: optional(sourcePolicy),
  advanced_settings: optional(z.object({ location: optional(location) })),
  task_spec: optional(taskSpec),
  previous_interaction_id: optional(name),
  mcp_servers: optional(
    list(
      z.object({
        type: z.literal('url'),
        url: httpUrl,
        name: limitedText(MAX_NAME_CHARACTERS, 1),
        headers: optional(record(name, limitedText(MAX_HEADER_CHARACTERS), MAX_HEADERS)),
        allowed_tools: optional(list(name, MAX_TOOLS)),
      }),
      MAX_TOOL_SERVERS,
    ),
  ),
  enable_events: optional(z.boolean()),
  webhook: optional(z.object({ url: httpUrl, event_types: list(z.literal('task_run.status'), MAX_CHOICES) })),
})

/** The body of `POST …/groups/{taskgroup_id}/runs` (§4.3). */
export const addRunsBody = z.object({
  inputs: list(runInput, MAX_RUNS_PER_REQUEST, 'inputs in a request'),
  default_task_spec: optional(taskSpec),
})

/** The body of `POST /v1/tasks/runs`; beyond the interface document. */
export const createRunBody = runInput.extend({ processor })

/** A run, and what is wrong with it although each of its fields is right: that it is too long. */
export interface CheckedRun {
  readonly run: NewRun
  readonly issues: readonly ValidationIssue[]
}

/** The run that an input asks for. `loc` is where the input stands in its request. */
export function newRun(given: RunInput, loc: readonly string[] = ['body']): CheckedRun {
  return checkedRun(given, loc, readSpec(given.task_spec))
}

/** The runs that inputs ask for, with the default task spec for those that have none of their own. */
export function newRuns(
  inputs: readonly RunInput[],
  defaultSpec: TaskSpec | undefined,
): { readonly runs: readonly NewRun[]; readonly issues: readonly ValidationIssue[] } {
  // Read once: there may be a thousand inputs, and the spec may be as long as all else of a run.
  const common = readSpec(defaultSpec)
  const checked = inputs.map((given, index) => {
    const spec = given.task_spec === undefined ? common : readSpec(given.task_spec)
    return checkedRun(given, ['body', 'inputs', String(index)], spec)
  })
  return {
    runs: checked.map(({ run }) => run),
    issues: checked.flatMap(({ issues }) => issues).slice(0, MAX_TOLD),
  }
}

/** A task spec, and what follows from it alone. */
interface ReadSpec {
  readonly spec: TaskSpec | undefined
  readonly characters: number
  readonly warnings: readonly Warning[]
}

function readSpec(spec: TaskSpec | undefined): ReadSpec {
  const characters = spec === undefined ? 0 : JSON.stringify(spec).length
  return { spec, characters, warnings: specWarnings(spec) }
}

function checkedRun(
  { processor: named = DEFAULT_PROCESSOR, ...rest }: RunInput,
  loc: readonly string[],
  { spec, characters, warnings }: ReadSpec,
): CheckedRun {
  const asked = typeof rest.input === 'string' ? rest.input.length : JSON.stringify(rest.input).length
  const total = asked + characters
  const said = `Task spec and input have ${total} characters, more than ${MAX_RUN_CHARACTERS}`
  return {
    run: { input: { ...rest, processor: named, ...(spec !== undefined && { task_spec: spec }) }, warnings },
    issues: total <= MAX_RUN_CHARACTERS ? [] : [issue([...loc, 'input'], said, 'too_big')],
  }
}

function specWarnings(spec: TaskSpec | undefined): Warning[] {
  const schema = spec?.output_schema
  if (typeof schema !== 'object' || schema.type !== 'json') return []
  const properties = object.safeParse(schema.json_schema['properties'])
  if (!properties.success) return []
  return Object.keys(properties.data)
    .filter((field) => BASIS_FIELDS.has(field))
    .map((field) => ({
      type: 'spec_validation_warning',
      message: `The output field ${field} is not needed: the basis of every field tells it`,
      detail: { field },
    }))
}
