import { createInterface } from 'node:readline'
import type { Command } from 'commander'
import { Argument, Option } from 'commander'
import { MEMORY_KINDS } from 'rivulet'
import type { MemoryKind, MemoryResult, MemoryScope } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { jsonText } from './json-text.ts'
import { wholeNumber } from './options.ts'
import { printMessage } from './output.ts'
import type { Output } from './output.ts'
import { oneLine, withoutMarkup } from './plain.ts'
import type { StandardInput } from './run-inputs.ts'

interface ScopeOptions extends ConnectionOptions {
  readonly scope?: string
}

interface MemorySearchOptions extends ScopeOptions {
  readonly kind?: MemoryKind
  readonly limit?: number
  readonly since?: string
}

const EXAMPLES = `
What task runs, monitors and FindAll runs have found is kept in a memory: the personal one, or that of the memory_scope_key which they were
created with. To evict or clear memories deletes nothing else.

Examples:
  $ rivulet memory search "solid state battery"
  $ rivulet memory search --kind task --since 2026-01-31T00:00:00Z
  $ rivulet memory search "solid state battery" --scope customer-7 --json | jq -r '.results[].id'
  $ rivulet memory evict task trun_123
  $ rivulet memory clear --scope customer-7`

/** `rivulet memory`: finds and forgets memories. Beyond the interface document. */
export function addMemory(program: Command, signal: AbortSignal, input: StandardInput = process.stdin): void {
  const memory = program
    .command('memory')
    .description('Find what was researched before, and forget it.')
    .addHelpText('after', EXAMPLES)
  addScoped(
    memory
      .command('search')
      .description('Print the memories that match a query, best first; without a query the most recent ones.')
      .argument('[query...]', 'what the memories are about')
      .addOption(new Option('--kind <kind>', 'only memories of this kind').choices(MEMORY_KINDS))
      .option('--limit <number>', 'the most memories', wholeNumber(1))
      .option('--since <time>', 'only what completed then or later, such as 2026-01-31T12:00:00Z'),
    "print the service's response as one line of JSON",
  ).action((words: string[], options: MemorySearchOptions) => search(words, options, signal))

  addScoped(
    memory
      .command('evict')
      .description('Forget one memory. What made it stays.')
      .addArgument(new Argument('<kind>', 'its kind').choices(MEMORY_KINDS))
      .argument('<id>', 'the id of the run or monitor'),
    'print its id as one line of JSON',
  ).action(async (kind: MemoryKind, id: string, options: ScopeOptions) => {
    const { client, output } = connect(options, signal)
    await client.memory.evict({ kind, id, ...scopeOf(options) }, { signal })
    if (output.json) await output.value({ evicted: id })
    else await output.line(`${memoryOf(options)} no longer has ${oneLine(id, 80)}.`)
  })

  addScoped(
    memory
      .command('clear')
      .description(
        'Forget all memories of a scope, or the personal ones. Asks first if it runs on a terminal.',
      ),
    'print the scope, or false if you answered no, as one line of JSON',
  ).action(async (options: ScopeOptions) => {
    const { client, output } = connect(options, signal)
    if (!(await isConfirmed(`${memoryOf(options)} forgets everything. Go on?`, signal, input))) {
      if (output.json) await output.value({ cleared: false })
      else printMessage('Nothing was forgotten.')
      return
    }
    await client.memory.clear(scopeOf(options), { signal })
    if (output.json) await output.value({ cleared: options.scope ?? null })
    else await output.line(`${memoryOf(options)} is empty.`)
  })
}

function addScoped(command: Command, json: string): Command {
  return addConnectionOptions(
    command.option('--scope <key>', 'the memory of this memory_scope_key (default: the personal memory)'),
    json,
  )
}

function scopeOf({ scope }: ScopeOptions): MemoryScope {
  return scope === undefined ? {} : { memory_scope_key: scope }
}

function memoryOf({ scope }: ScopeOptions): string {
  return scope === undefined ? 'The personal memory' : `The memory ${oneLine(scope, 80)}`
}

/** Asks on a terminal. A script is not asked to confirm. */
export async function isConfirmed(
  question: string,
  signal: AbortSignal,
  input: StandardInput,
): Promise<boolean> {
  if (input.isTTY !== true) return true
  process.stderr.write(`${question} [y/N] `)
  // Without the raw mode of a terminal, so that Ctrl-C ends the command.
  const lines = createInterface({ input, signal, terminal: false })
  const answer = await new Promise<string>((resolve) => {
    lines.once('line', resolve).once('close', () => resolve(''))
  })
  lines.close()
  signal.throwIfAborted()
  return /^y(?:es)?$/i.test(answer.trim())
}

async function search(
  words: readonly string[],
  options: MemorySearchOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, output } = connect(options, signal)
  const { kind, limit, since } = options
  const request = {
    query: words.join(' '),
    ...(kind !== undefined && { kind }),
    ...(limit !== undefined && { limit }),
    ...(since !== undefined && { since }),
    ...scopeOf(options),
  }
  const answer = await client.memory.retrieve(request, { signal })
  if (output.json) return output.value(answer)
  if (answer.results.length === 0) return output.line('No memories.')
  for (const result of answer.results) await printMemory(result, output)
}

async function printMemory(result: MemoryResult, output: Output): Promise<void> {
  const { paint, width } = output
  if (result.kind === 'unknown') {
    await output.line(oneLine(jsonText(result.data), width))
    return output.line()
  }
  const { kind, id, updated_at, input_excerpt } = result
  const title = `${kind.padEnd(7)}  ${oneLine(id, 60)}  ${oneLine(updated_at, 30)}`
  await output.line(paint('dim', title))
  await output.line(paint('bold', oneLine(input_excerpt, width)))
  for (const text of findingsOf(result)) await output.line(`  ${oneLine(withoutMarkup(text), 2 * width - 4)}`)
  await output.line()
}

/** The findings of a memory, as lines. */
function findingsOf(memory: Exclude<MemoryResult, { readonly kind: 'unknown' }>): string[] {
  switch (memory.kind) {
    case 'task':
      return [memory.output_excerpt]
    case 'findall':
      return [`${memory.matched_count} ${memory.matched_count === 1 ? 'match' : 'matches'}`]
    case 'monitor':
      return [
        memory.status,
        ...(memory.matched_events ?? []).map(({ detected_at, excerpt }) => `${detected_at}: ${excerpt}`),
      ]
  }
}
