import type { Command } from 'commander'
import { ExecutionError } from 'rivulet'
import type { TaskOutput } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { Interrupted } from './exit.ts'
import { addTaskOptions, taskSpec } from './group.ts'
import { invocation } from './invocation.ts'
import type { JsonObject } from './json-file.ts'
import { jsonText } from './json-text.ts'
import { printMessage } from './output.ts'
import type { Output } from './output.ts'
import { oneLine, withoutMarkup } from './plain.ts'

interface RunOptions extends ConnectionOptions {
  readonly processor: string
  readonly schema?: JsonObject
}

const EXAMPLES = `
It creates a task group with one run, waits for the run to end, and prints the answer with its citations. If interrupted,
the run continues at the service, and the command prints how to watch it.

Examples:
  $ rivulet run "Who produces solid state batteries in series?"
  $ rivulet run "What does the company do, and where?" --schema company.json --processor core
  $ rivulet run "What is a rivulet?" --json | jq -r .output.content`

/** `rivulet run`: one question and its answer (§4.3, §4.5). */
export function addRun(program: Command, signal: AbortSignal): void {
  const command = program
    .command('run')
    .description('Ask a question, wait for the answer, and print it with its citations.')
    .argument('<question>', 'the question, in quotes')
  addTaskOptions(command)
  addConnectionOptions(command, 'print the group, the run and its output as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((question: string, options: RunOptions) => run(question, options, signal))
}

async function run(
  question: string,
  { processor, schema, ...options }: RunOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, log, output } = connect(options, signal)
  const { taskgroup_id } = await client.taskGroups.create({ signal })
  const request = { inputs: [{ input: question, processor }], ...taskSpec(schema) }
  try {
    log.debug({ group: taskgroup_id }, 'adding the run')
    for await (const { run: ended, output: found } of client.taskGroups.execute(taskgroup_id, request, {
      signal,
    })) {
      if (output.json) await output.value({ taskgroup_id, run: ended, output: found })
      else if (found !== null) await printAnswer(found, output)
    }
  } catch (error) {
    if (error instanceof Interrupted) {
      printMessage(`The run continues at the service: ${invocation()} watch --group ${taskgroup_id}`)
    }
    const [failed] = error instanceof ExecutionError ? error.runs : []
    if (failed === undefined) throw error
    const { run_id, status, error: problem } = failed.run
    throw new Error(`${run_id} ${status}: ${problem?.message ?? 'the service gives no reason'}`, {
      cause: error,
    })
  }
}

/** Prints the answer, each field with the numbers of its sources, and then the sources. */
async function printAnswer({ basis, ...answer }: TaskOutput, output: Output): Promise<void> {
  const { paint, width } = output
  const sources = new Map<string, { readonly title: string; readonly excerpt: string | undefined }>()
  const references = new Map<string, string>()
  for (const { field, citations = [], confidence } of basis) {
    for (const { url, title, excerpts } of citations) {
      if (!sources.has(url)) sources.set(url, { title: title ?? '', excerpt: excerpts?.[0] })
    }
    const urls = [...sources.keys()]
    const numbers = new Set(citations.map(({ url }) => `[${urls.indexOf(url) + 1}]`))
    references.set(field, [...numbers, ...(confidence == null ? [] : [`${confidence} confidence`])].join(' '))
  }
  const referencesOf = (field: string) => {
    const text = references.get(field) ?? ''
    return text === '' ? '' : ` ${paint('dim', text)}`
  }

  if (answer.type === 'text') {
    await output.line(plainLines(answer.content) + referencesOf('output'))
  } else {
    for (const [name, value] of Object.entries(answer.content)) {
      const text = typeof value === 'string' ? plainLines(value) : jsonText(value)
      await output.line(`${paint('bold', `${name}:`)} ${text}${referencesOf(name)}`)
    }
  }
  for (const [index, [url, { title, excerpt }]] of [...sources].entries()) {
    if (index === 0) await output.line()
    const number = `[${index + 1}]`
    await output.line(`${paint('dim', number)} ${paint('cyan', oneLine(url, width - number.length - 1))}`)
    const about = [title, excerpt === undefined ? '' : `“${withoutMarkup(excerpt)}”`].filter(
      (part) => part !== '',
    )
    if (about.length > 0) await output.line(`    ${oneLine(about.join(': '), 2 * width - 8)}`)
  }
}

/** Markdown as plain text without control characters: a line for each paragraph, item and row. */
function plainLines(markdown: string): string {
  const lines = withoutMarkup(markdown)
    .trim()
    .split(/\n\s*\n|\n(?=\s*(?:[-*+|]|\d+[.)])\s)/)
  return lines.map((line) => oneLine(line, Number.POSITIVE_INFINITY)).join('\n')
}
