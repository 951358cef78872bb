import type { Command } from 'commander'
import type { TaskGroup, TaskSpec } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { statusText } from './event-line.ts'
import { invocation } from './invocation.ts'
import { jsonFile } from './json-file.ts'
import type { JsonObject } from './json-file.ts'
import { collect, metadataEntry } from './options.ts'
import type { Output } from './output.ts'
import { runInputs } from './run-inputs.ts'
import type { InputOptions } from './run-inputs.ts'

interface CreateOptions extends ConnectionOptions {
  readonly metadata?: readonly (readonly [string, string])[]
}

interface AddOptions extends ConnectionOptions, InputOptions {
  readonly schema?: JsonObject
}

/** The default of --processor. */
const DEFAULT_PROCESSOR = 'base'

const EXAMPLES = `
Examples:
  $ rivulet group create
  $ rivulet group add tgrp_123 --input "What is a rivulet?" --input "Who named it so?"
  $ rivulet group status tgrp_123
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
    .description('Create task groups, add runs to them, and show their progress.')
    .addHelpText('after', EXAMPLES)
  addCreate(group, signal)
  addAdd(group, signal)
  addStatus(group, signal)
}

function addCreate(group: Command, signal: AbortSignal): void {
  const command = group
    .command('create')
    .description('Create an empty task group, and print its id.')
    .option('--metadata <name=value>', 'stored with it; may be repeated', collect(metadataEntry))
  addConnectionOptions(command, "print the service's response as one line of JSON").action(
    async ({ metadata, ...options }: CreateOptions) => {
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
  addConnectionOptions(command, "print the service's response, one line for each request of 1,000 inputs")
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
  await output.line(`${count} ${count === 1 ? 'run' : 'runs'} added to ${id}.`)
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
