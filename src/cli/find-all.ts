import { Option } from 'commander'
import type { Command } from 'commander'
import { FIND_ALL_GENERATORS } from 'rivulet'
import type { FindAllEvent, FindAllGenerator, FindAllResult, ResearchClient } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { Interrupted } from './exit.ts'
import { jsonFile } from './json-file.ts'
import type { JsonObject } from './json-file.ts'
import { jsonText } from './json-text.ts'
import { wholeNumber } from './options.ts'
import { printMessage } from './output.ts'
import type { Output } from './output.ts'
import { oneLine, withoutMarkup } from './plain.ts'

interface FindAllOptions extends ConnectionOptions {
  readonly limit: number
  readonly generator: FindAllGenerator
  readonly enrich?: JsonObject
}

/** An event of a candidate. */
type CandidateEvent = Extract<FindAllEvent, { readonly type: `findall.candidate.${string}` }>

const EXAMPLES = `
It reads the conditions out of the objective, creates a run, and prints each candidate as it matches. If interrupted, the
run continues at the service.

Examples:
  $ rivulet find-all "libraries for TypeScript that have no dependencies"
  $ rivulet find-all "makers of solid state batteries" --generator core --limit 50
  $ rivulet find-all "makers of solid state batteries" --enrich company.json
  $ rivulet find-all "makers of solid state batteries" --json | jq -r 'select(.type == "findall.candidate.matched")'`

/** `rivulet find-all`: one FindAll run. Beyond the interface document. */
export function addFindAll(program: Command, signal: AbortSignal): void {
  const command = program
    .command('find-all')
    .description('Find the entities that an objective describes, and print each as it matches.')
    .argument('<objective>', 'what to find and its conditions, in quotes')
    .option('--limit <number>', 'the most matches, 5 to 1000', wholeNumber(5, 1_000), 10)
    .addOption(
      new Option('--generator <name>', 'how thoroughly to search')
        .choices(FIND_ALL_GENERATORS)
        .default('base'),
    )
    .option('--enrich <file>', 'JSON Schema of what to find out about each match', jsonFile)
  addConnectionOptions(command, 'print each event of the run as one line of JSON')
    .addHelpText('after', EXAMPLES)
    .action((objective: string, options: FindAllOptions) => findAll(objective, options, signal))
}

async function findAll(objective: string, options: FindAllOptions, signal: AbortSignal): Promise<void> {
  const { client, log, output } = connect(options, signal)
  const id = await createRun(client, objective, options, signal)
  log.debug({ findall: id }, 'following the run')
  try {
    for await (const event of client.findAll.events(id, { signal })) {
      if (output.json) await output.value(event)
      else if (isCandidate(event)) await printCandidate(event, options.enrich !== undefined, output)
    }
  } catch (error) {
    if (error instanceof Interrupted) printMessage(`The run ${id} continues at the service.`)
    throw error
  }
  const { run } = await client.findAll.result(id, { signal })
  if (!output.json) await printSummary(run, output)
  if (run.status.status === 'completed') return
  throw new Error(
    `${id} ${run.status.status}: ${run.status.termination_reason ?? 'the service gives no reason'}`,
  )
}

async function createRun(
  client: ResearchClient,
  objective: string,
  { limit, generator, enrich }: FindAllOptions,
  signal: AbortSignal,
): Promise<string> {
  const { entity_type, match_conditions } = await client.findAll.ingest({ objective }, { signal })
  const request = { objective, entity_type, match_conditions, generator, match_limit: limit }
  const { findall_id } = await client.findAll.create(request, { signal })
  if (enrich !== undefined) {
    const output_schema = { type: 'json', json_schema: enrich } as const
    await client.findAll.enrich(findall_id, { output_schema }, { signal })
  }
  return findall_id
}

function isCandidate(event: FindAllEvent): event is CandidateEvent {
  return event.type.startsWith('findall.candidate.')
}

/** Prints a match with its conditions; with an enrichment once that is made. */
async function printCandidate(
  { type, data: { data: candidate } }: CandidateEvent,
  isEnriched: boolean,
  output: Output,
): Promise<void> {
  const { paint, width } = output
  if (type !== (isEnriched ? 'findall.candidate.enriched' : 'findall.candidate.matched')) return
  await output.line(paint('bold', oneLine(candidate.name, width)))
  await output.line(paint('cyan', oneLine(candidate.url, width)))
  for (const [name, { value }] of Object.entries(candidate.output ?? {})) {
    const text = typeof value === 'string' ? withoutMarkup(value) : jsonText(value)
    await output.line(`  ${paint('dim', `${oneLine(name, 40)}:`)} ${oneLine(text, width - 4)}`)
  }
  await output.line()
}

async function printSummary({ status }: FindAllResult['run'], output: Output): Promise<void> {
  const { generated_candidates_count: generated, matched_candidates_count: matched } = status.metrics
  const reason = status.termination_reason === null ? '' : `, ${oneLine(status.termination_reason, 40)}`
  await output.line(output.paint('dim', `${matched} of ${generated} candidates match${reason}`))
}
