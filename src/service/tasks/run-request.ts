import * as z from 'zod'
import { MAX_RUN_CHARACTERS, MAX_RUNS_PER_REQUEST } from '../../protocol/limits.ts'
import type { ValidationIssue, Warning } from '../../protocol/problem.ts'
import type { RunInput, TaskSpec } from '../../protocol/task.ts'
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
const text = z.string().min(1)

const outputSchema = z.union([
  text,
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('json'), json_schema: object }),
    z.object({ type: z.literal('text'), description: optional(z.string()) }),
    z.object({ type: z.literal('auto') }),
  ]),
])

const taskSpec = z.object({
  output_schema: optional(outputSchema),
  input_schema: optional(z.union([z.string(), object])),
})

const runInput = z.object({
  input: z.union([text, object], { error: 'Expected a non-empty string or a JSON object' }),
  processor: optional(text),
  metadata: optional(object),
  memory_scope_key: optional(z.string()),
  source_policy: optional(sourcePolicy),
  advanced_settings: optional(z.object({ location: optional(location) })),
  task_spec: optional(taskSpec),
  previous_interaction_id: optional(z.string()),
  mcp_servers: optional(
    z.array(
      z.object({
        type: z.literal('url'),
        url: httpUrl,
        name: text,
        headers: optional(z.record(z.string(), z.string())),
        allowed_tools: optional(z.array(z.string())),
      }),
    ),
  ),
  enable_events: optional(z.boolean()),
  webhook: optional(z.object({ url: httpUrl, event_types: z.array(z.literal('task_run.status')) })),
})

/** The body of `POST …/groups/{taskgroup_id}/runs` (§4.3). */
export const addRunsBody = z.object({
  inputs: z
    .array(runInput)
    .max(MAX_RUNS_PER_REQUEST, `Expected at most ${MAX_RUNS_PER_REQUEST} inputs in a request`),
  default_task_spec: optional(taskSpec),
})

/** The body of `POST /v1/tasks/runs`; beyond the interface document. */
export const createRunBody = runInput.extend({ processor: text })

/** The run that an input asks for, with the default task spec where it has none of its own. */
export function newRun(given: RunInput, defaultSpec?: TaskSpec): NewRun {
  const { processor = DEFAULT_PROCESSOR, task_spec = defaultSpec, ...rest } = given
  return {
    input: { ...rest, processor, ...(task_spec !== undefined && { task_spec }) },
    warnings: specWarnings(task_spec),
  }
}

/** What is wrong with a run that every one of its fields is right for: that it is too long. */
export function runIssues({ input }: NewRun, loc: readonly string[]): ValidationIssue[] {
  const asked = typeof input.input === 'string' ? input.input.length : JSON.stringify(input.input).length
  const spec = input.task_spec === undefined ? 0 : JSON.stringify(input.task_spec).length
  if (asked + spec <= MAX_RUN_CHARACTERS) return []
  const said = `Task spec and input have ${asked + spec} characters, more than ${MAX_RUN_CHARACTERS}`
  return [issue([...loc, 'input'], said, 'too_big')]
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
