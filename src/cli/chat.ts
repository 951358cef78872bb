import type { Command } from 'commander'
import type { ChatCompletion, ChatRequest } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { jsonFile } from './json-file.ts'
import type { JsonObject } from './json-file.ts'
import type { Output } from './output.ts'
import { oneLine, plain } from './plain.ts'

interface ChatOptions extends ConnectionOptions {
  readonly model: string
  readonly schema?: JsonObject
}

const EXAMPLES = `
Examples:
  $ rivulet chat "Who produces solid state batteries in series?"
  $ rivulet chat What is a rivulet --model speed
  $ rivulet chat "When was Acme founded?" --schema company.json
  $ rivulet chat "What is a rivulet?" --json | jq -r .choices[0].message.content`

/** `rivulet chat`: one question, and its answer as it comes; beyond the interface document. */
export function addChat(program: Command, signal: AbortSignal): void {
  const command = program
    .command('chat')
    .description('Ask a question, print the answer as it comes, and then its sources.')
    .argument('<question...>', 'the question')
    .option('--model <name>', 'model: speed, lite, base or core', 'base')
    .option('--schema <file>', 'JSON Schema of the answer', jsonFile)
  addConnectionOptions(command, 'print the completion as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((words: string[], options: ChatOptions) => chat(words.join(' '), options, signal))
}

async function chat(question: string, options: ChatOptions, signal: AbortSignal): Promise<void> {
  const { client, output } = connect(options, signal)
  const { model, schema } = options
  const request: ChatRequest = {
    model,
    messages: [{ role: 'user', content: question }],
    ...(schema !== undefined && {
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema } },
    }),
  }
  const answer = client.chat.stream(request, { signal })
  if (output.json) return output.value(await answer)
  let basis: ChatCompletion['basis']
  let printed = 0
  try {
    for await (const { event, text } of answer) {
      basis = event.basis ?? basis
      await output.text(plain(text.slice(printed)))
      printed = text.length
    }
  } finally {
    // An error begins on a new line.
    if (printed > 0 && !signal.aborted) await output.line()
  }
  await printSources(basis ?? [], output)
}

async function printSources(basis: NonNullable<ChatCompletion['basis']>, output: Output): Promise<void> {
  const { paint, width } = output
  const titles = new Map<string, string>()
  for (const { citations } of basis)
    for (const { url, title } of citations ?? []) if (!titles.has(url)) titles.set(url, title ?? '')
  if (titles.size > 0) await output.line()
  for (const [index, [url, title]] of [...titles].entries()) {
    const number = `[${index + 1}]`
    await output.line(`${paint('dim', number)} ${paint('cyan', oneLine(url, width - number.length - 1))}`)
    if (title !== '') await output.line(`    ${oneLine(title, width - 4)}`)
  }
}
