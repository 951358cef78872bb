import { InvalidArgumentError, Option } from 'commander'
import type { Command } from 'commander'
import { MissingHeadersError } from 'rivulet'
import { lastValueFrom, takeWhile } from 'rxjs'
import type { GroupErrors, RetryOptions, TaskGroup, TaskSpec } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { statusText } from './event-line.ts'
import { UsageError } from './exit.ts'
import { invocation } from './invocation.ts'
import { isJsonObject, jsonFile } from './json-file.ts'
import type { JsonObject } from './json-file.ts'
import { collect, metadataEntry } from './options.ts'
import type { Output } from './output.ts'
import { oneLine } from './plain.ts'
import { runInputs } from './run-inputs.ts'
import type { InputOptions } from './run-inputs.ts'

interface GroupCreateOptions extends ConnectionOptions {
  readonly metadata?: readonly (readonly [string, string])[]
}

interface AddOptions extends ConnectionOptions, InputOptions {
  readonly schema?: JsonObject
}

interface GroupRetryOptions extends ConnectionOptions {
  readonly status?: RetryOptions['statuses']
  readonly mcpHeaders?: HeadersByUrl
}

/** The headers of tool servers, by the URL of the server. */
type HeadersByUrl = ReadonlyMap<string, Readonly<Record<string, string>>>

/** The default of --processor. */
const DEFAULT_PROCESSOR = 'base'

const EXAMPLES = `
Examples:
  $ rivulet group create
  $ rivulet group add tgrp_123 --input "What is a rivulet?" --input "Who named it so?"
  $ rivulet group status tgrp_123
  $ rivulet group errors tgrp_123
  $ rivulet group retry tgrp_123
  $ rivulet watch --group tgrp_123`

const ADD_EXAMPLES = `
Each line of the file is a JSON string, or an object of the interface, such as
  {"input": "What is a rivulet?", "processor": "core", "metadata": {"row": 1}}
Without --input and --file the lines are read from standard input.

Examples:
  $ rivulet group add tgrp_123 --input "What is a rivulet?"
  $ rivulet group add tgrp_123 --file inputs.jsonl --schema answer.json
  $ jq -c '.companies[] | {input: .}' companies.json | rivulet group add tgrp_123 --file -`

/** `rivulet group`: creates task groups and adds runs to them (§4.3). */
export function addGroup(program: Command, signal: AbortSignal): void {
  const group = program
    .command('group')
    .description('Create task groups, add runs to them, show their progress, and retry what failed.')
    .addHelpText('after', EXAMPLES)
  addCreate(group, signal)
  addAdd(group, signal)
  addStatus(group, signal)
  addErrors(group, signal)
  addRetry(group, signal)
}

function addCreate(group: Command, signal: AbortSignal): void {
  const command = group
    .command('create')
    .description('Create an empty task group, and print its id.')
    .option('--metadata <name=value>', 'stored with it; may be repeated', collect(metadataEntry))
  addConnectionOptions(command, "print the service's response as one line of JSON").action(
    async ({ metadata, ...options }: GroupCreateOptions) => {
      const { client, output } = connect(options, signal)
      const entries = metadata !== undefined && { metadata: Object.fromEntries(metadata) }
      const created = await client.taskGroups.create({ ...entries, signal })
      if (output.json) return output.value(created)
      await output.line(created.taskgroup_id)
      await output.hint(`Add runs: ${invocation()} group add ${created.taskgroup_id} --input "your question"`)
    },
  )
}

function addAdd(group: Command, signal: AbortSignal): void {
  const command = group
    .command('add')
    .description('Add runs to a task group.')
    .argument('<id>', "the group's id")
    .option('--input <text>', 'the input of a run; may be repeated', collect(String))
    .option('--file <path>', 'inputs, one per line; - is standard input')
  addTaskOptions(command)
  addConnectionOptions(command, "print each of the service's responses, to 1,000 inputs, as one line of JSON")
    .addHelpText('after', ADD_EXAMPLES)
    .action((id: string, options: AddOptions) => add(id, options, signal))
}

/** Adds the options of a run's task. */
export function addTaskOptions(command: Command): Command {
  return command
    .option('--processor <name>', 'processor, such as lite, base or core', DEFAULT_PROCESSOR)
    .option('--schema <file>', 'JSON Schema of the answer', jsonFile)
}

/** The task spec with this schema. */
export function taskSpec(schema: JsonObject | undefined): { readonly default_task_spec?: TaskSpec } {
  if (schema === undefined) return {}
  return { default_task_spec: { output_schema: { type: 'json', json_schema: schema } } }
}

async function add(id: string, options: AddOptions, signal: AbortSignal): Promise<void> {
  const { client, output } = connect(options, signal)
  const inputs = await runInputs(options)
  signal.throwIfAborted()
  let count = 0
  for await (const answer of client.taskGroups.addRuns(
    id,
    { inputs, ...taskSpec(options.schema) },
    { signal },
  )) {
    count += answer.run_ids.length
    if (output.json) await output.value(answer)
  }
  if (output.json) return
  await output.line(`${runsText(count)} added to ${id}.`)
  await output.hint(`Watch their results: ${invocation()} watch --group ${id}`)
}

function addStatus(group: Command, signal: AbortSignal): void {
  const command = group
    .command('status')
    .description('Show the progress of a task group.')
    .argument('<id>', "the group's id")
  addConnectionOptions(command, "print the service's response as one line of JSON").action(
    async (id: string, options: ConnectionOptions) => {
      const { client, output } = connect(options, signal)
      await printGroup(await client.taskGroups.get(id, { signal }), output)
    },
  )
}

async function printGroup(group: TaskGroup, output: Output): Promise<void> {
  if (output.json) return output.value(group)
  const { taskgroup_id, status } = group
  const state = status.is_active ? output.paint('blue', 'active') : 'done'
  const text = status.num_task_runs === 0 ? 'no runs yet' : `${state}  ${statusText(status)}`
  await output.line(`${taskgroup_id}  ${text}`)
}

function addErrors(group: Command, signal: AbortSignal): void {
  const command = group
    .command('errors')
    .description('Show the errors of the runs that have failed so far, the most frequent first.')
    .argument('<id>', "the group's id")
  addConnectionOptions(command, 'print the errors as one line of JSON').action(
    async (id: string, options: ConnectionOptions) => {
      const { client, output } = connect(options, signal)
      const { status } = await client.taskGroups.get(id, { signal })
      // A service that does not count the runs says nothing about them: then the group is read to its end.
      const counts = status?.task_run_status_counts
      const failed = counts == null ? Infinity : (counts.failed ?? 0)
      const errors = client.taskGroups.errors(id, { signal })
      // The stream of a group that runs, or that has no run yet, does not end.
      const soFar = errors.pipe(takeWhile((known) => known.failed < failed, true))
      const none: GroupErrors = { failed: 0, errors: [], others: 0 }
      await printErrors(id, failed === 0 ? none : await lastValueFrom(soFar), output)
    },
  )
}

async function printErrors(id: string, found: GroupErrors, output: Output): Promise<void> {
  if (output.json) return output.value(found)
  if (found.failed === 0) return output.line(`No run of ${id} has failed.`)
  for (const { count, kind, message, first, last, run_ids } of found.errors) {
    const text = [kind, message].filter((part) => part !== null).join(': ')
    const error = oneLine(text === '' ? 'unknown error' : text, output.width - 12)
    const times = first === null ? '' : first === last ? `at ${first}  ` : `${first} to ${last}  `
    const ids = `${run_ids.join(' ')}${count > run_ids.length ? ' …' : ''}`
    await output.line(`${runsText(count).padStart(10)}  ${output.paint('red', error)}`)
    await output.line(output.paint('dim', `${' '.repeat(12)}${times}${ids}`))
  }
  if (found.others > 0) await output.line(`${runsText(found.others).padStart(10)}  other errors`)
  await output.hint(`Add their inputs again: ${invocation()} group retry ${id}`)
}

function addRetry(group: Command, signal: AbortSignal): void {
  const command = group
    .command('retry')
    .description(
      'Add the inputs of failed runs to their group again, when no run is active. No run is replaced twice, by a second command either.',
    )
    .argument('<id>', "the group's id")
    .addOption(
      new Option('--status <status...>', 'the statuses of the runs to replace')
        .choices(['failed', 'cancelled'])
        .default(['failed']),
    )
    .option(
      '--mcp-headers <file>',
      'JSON object with the headers for the tool servers of the runs, by the URL of the server',
      headersFile,
    )
  addConnectionOptions(
    command,
    'print each replaced run, and the id of the new one, as one line of JSON',
  ).action((id: string, options: GroupRetryOptions) => retry(id, options, signal))
}

async function retry(id: string, { status, mcpHeaders, ...options }: GroupRetryOptions, signal: AbortSignal) {
  const { client, output } = connect(options, signal)
  const retried = client.taskGroups.retry(id, {
    ...(status !== undefined && { statuses: status }),
    ...(mcpHeaders !== undefined && { mcpHeaders: ({ url }) => mcpHeaders.get(url) }),
    exactlyOnce: true,
    signal,
  })
  let count = 0
  try {
    for await (const run of retried) {
      count += 1
      if (output.json) await output.value(run)
      else await output.line(`${run.run_id} replaces ${run.replaced.run_id}  attempt ${run.attempt}`)
    }
  } catch (error) {
    if (!(error instanceof MissingHeadersError)) throw error
    const origins = [...new Set(error.urls.map((url) => new URL(url).origin))]
    const shown = origins.slice(0, 10).join(', ')
    throw new UsageError(
      `the headers for these tool servers are missing; give them with --mcp-headers: ${shown}`,
    )
  }
  if (output.json) return
  if (count === 0) return output.line(`No run of ${id} is to be replaced.`)
  await output.line(`${runsText(count)} added to ${id}.`)
  await output.hint(`Watch their results: ${invocation()} watch --group ${id}`)
}

/** Reads a file with headers by URL. Its values are secrets, so a message shows no part of the file. A message of the JSON parser would. */
function headersFile(path: string): HeadersByUrl {
  let file: JsonObject
  try {
    file = jsonFile(path)
  } catch {
    throw new InvalidArgumentError('It cannot be read as a JSON object.')
  }
  const isHeaders = (value: unknown): value is Readonly<Record<string, string>> =>
    isJsonObject(value) && Object.values(value).every((header) => typeof header === 'string')
  return new Map(
    Object.entries(file).map(([url, headers]) => {
      if (isHeaders(headers)) return [url, headers]
      throw new InvalidArgumentError('Each URL must have an object whose values are strings.')
    }),
  )
}

function runsText(count: number): string {
  return `${count} ${count === 1 ? 'run' : 'runs'}`
}
