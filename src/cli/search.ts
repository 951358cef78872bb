import { Option } from 'commander'
import type { Command } from 'commander'
import { SEARCH_MODES } from 'rivulet'
import type { SearchMode, SearchRequest, SearchResponse } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import { collect, wholeNumber } from './options.ts'
import { oneLine, withoutMarkup } from './plain.ts'
import type { Output } from './output.ts'

interface SearchOptions extends ConnectionOptions {
  readonly objective?: string
  readonly mode?: SearchMode
  readonly limit?: number
  readonly includeDomain?: readonly string[]
  readonly excludeDomain?: readonly string[]
  readonly afterDate?: string
}

const EXAMPLES = `
Examples:
  $ rivulet search "solid state battery"
  $ rivulet search "solid state battery" "sulfide electrolyte" --objective "who produces them in series?"
  $ rivulet search "solid state battery" --include-domain .edu --after-date 2025-01-01 --limit 5
  $ rivulet search "solid state battery" --json | jq -r '.results[].url'`

/** `rivulet search`: one search (§4.7). */
export function addSearch(program: Command, signal: AbortSignal): void {
  const command = program
    .command('search')
    .description('Search, and print the results, best first.')
    .argument('<query...>', 'keyword queries; quote a query of several words')
    .option('--objective <text>', 'what the search is for, in natural language')
    .addOption(new Option('--mode <mode>', 'search mode (default: advanced)').choices(SEARCH_MODES))
    .option('--limit <number>', 'the most results', wholeNumber(1))
    .option(
      '--include-domain <domain>',
      'only this domain, or suffix such as .edu; may be repeated',
      collect(String),
    )
    .option('--exclude-domain <domain>', 'not this domain or suffix; may be repeated', collect(String))
    .option('--after-date <date>', 'only pages published on this date or later, YYYY-MM-DD')
  addConnectionOptions(command, "print the service's response as one line of JSON")
    .addHelpText('after', EXAMPLES)
    .action((queries: string[], options: SearchOptions) => search(queries, options, signal))
}

async function search(
  queries: readonly string[],
  options: SearchOptions,
  signal: AbortSignal,
): Promise<void> {
  const { client, log, output } = connect(options, signal)
  const answer = await client.search(searchRequest(queries, options), { signal })
  if (output.json) return output.value(answer)
  for (const { message } of answer.warnings ?? []) log.warn(message)
  await printResults(answer, output)
}

function searchRequest(queries: readonly string[], options: SearchOptions): SearchRequest {
  const { objective, mode, limit, includeDomain, excludeDomain, afterDate } = options
  const source_policy = {
    ...(includeDomain !== undefined && { include_domains: includeDomain }),
    ...(excludeDomain !== undefined && { exclude_domains: excludeDomain }),
    ...(afterDate !== undefined && { after_date: afterDate }),
  }
  const advanced_settings = {
    ...(limit !== undefined && { max_results: limit }),
    ...(Object.keys(source_policy).length > 0 && { source_policy }),
  }
  return {
    search_queries: queries,
    ...(objective !== undefined && { objective }),
    ...(mode !== undefined && { mode }),
    ...(Object.keys(advanced_settings).length > 0 && { advanced_settings }),
  }
}

async function printResults({ results }: SearchResponse, output: Output): Promise<void> {
  const { paint, width } = output
  if (results.length === 0) return output.line('No results.')
  for (const [index, { url, title, publish_date, excerpts }] of results.entries()) {
    const number = `${index + 1}`.padStart(2)
    const date = publish_date == null ? '' : `  ${publish_date}`
    await output.line(`${paint('dim', number)}  ${paint('bold', oneLine(title ?? url, width - 4))}`)
    await output.line(`    ${paint('cyan', oneLine(url, width - 4 - date.length))}${paint('dim', date)}`)
    for (const excerpt of excerpts.slice(0, 2))
      await output.line(`    ${oneLine(withoutMarkup(excerpt), 2 * width - 8)}`)
    await output.line()
  }
}
