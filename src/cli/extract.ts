import type { Command } from 'commander'
import type { ExtractRequest, ExtractResponse } from 'rivulet'
import { addConnectionOptions, connect } from './connection.ts'
import type { ConnectionOptions } from './connection.ts'
import type { Output } from './output.ts'
import { collect } from './options.ts'
import { oneLine, plain } from './plain.ts'

interface ExtractOptions extends ConnectionOptions {
  readonly objective?: string
  readonly query?: readonly string[]
  readonly full?: boolean
}

const EXAMPLES = `
Examples:
  $ rivulet extract https://example.org/page
  $ rivulet extract https://example.org/a https://example.org/b --objective "who founded it?"
  $ rivulet extract https://example.org/page --query "solid electrolyte" --query "sulfide"
  $ rivulet extract https://example.org/page --full > page.md
  $ rivulet extract https://example.org/page --json | jq -r '.results[].excerpts[]'`

/** `rivulet extract`: one extraction. Beyond the interface document. */
export function addExtract(program: Command, signal: AbortSignal): void {
  const command = program
    .command('extract')
    .description('Extract pages, and print their excerpts or, with --full, their whole content as Markdown.')
    .argument('<url...>', 'addresses of pages, or of documents that a search found; at most 20')
    .option('--objective <text>', 'what the excerpts are for, in natural language')
    .option('--query <text>', 'keyword query for the excerpts; may be repeated', collect(String))
    .option('--full', 'print the whole content in place of the excerpts')
  addConnectionOptions(command, "print the service's response as one line of JSON")
    .addHelpText('after', EXAMPLES)
    .action((urls: string[], options: ExtractOptions) => extract(urls, options, signal))
}

async function extract(urls: readonly string[], options: ExtractOptions, signal: AbortSignal): Promise<void> {
  const { client, log, output } = connect(options, signal)
  const answer = await client.extract(extractRequest(urls, options), { signal })
  if (output.json) await output.value(answer)
  else {
    for (const { message } of answer.warnings ?? []) log.warn(message)
    await printResults(answer, output)
  }
  const [failed] = answer.errors
  if (failed === undefined) return
  for (const { url, error_type, http_status_code: status } of answer.errors) {
    log.error(`${oneLine(url, 200)}: ${oneLine(error_type, 60)}${status === null ? '' : ` ${status}`}`)
  }
  throw new Error(`${answer.errors.length} of ${answer.errors.length + answer.results.length} pages failed`)
}

function extractRequest(urls: readonly string[], { objective, query, full }: ExtractOptions): ExtractRequest {
  return {
    urls,
    ...(objective !== undefined && { objective }),
    ...(query !== undefined && { search_queries: query }),
    ...(full === true && { advanced_settings: { full_content: true } }),
  }
}

async function printResults({ results }: ExtractResponse, output: Output): Promise<void> {
  const { paint, width } = output
  const isSingle = results.length === 1
  for (const { url, title, publish_date, excerpts, full_content } of results) {
    // The whole content of a single page is printed as it is, for a file.
    if (full_content != null && isSingle) return output.line(plain(full_content))
    const date = publish_date == null ? '' : `  ${oneLine(publish_date, 20)}`
    await output.line(paint('bold', oneLine(title ?? url, width)))
    await output.line(paint('cyan', oneLine(url, width - date.length)) + paint('dim', date))
    for (const text of full_content == null ? excerpts : [full_content]) {
      await output.line()
      await output.line(plain(text))
    }
    await output.line()
  }
}
