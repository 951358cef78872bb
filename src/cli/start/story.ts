import type { Citation, Diagnostic, EventOf, FieldBasis, ResearchEvent, SearchResponse } from 'rivulet'
import { outputText } from '../event-line.ts'
import { jsonText } from '../json-text.ts'
import type { Output, Style } from '../output.ts'
import { oneLine, withoutMarkup } from '../plain.ts'
import { createProgress } from '../progress.ts'
import type { FieldNote } from './field-notes.ts'
import { nextSteps } from './next-steps.ts'
import type { Summary } from './ledger.ts'
import type { Narrator } from './narrator.ts'

/** How many search results are shown. */
const SHOWN_RESULTS = 3
/** The left margin. */
const MARGIN = '    '
/** The widths of a package's name and of its licence, in characters. */
const NAME_WIDTH = 22
const LICENCE_WIDTH = 32

/** An entry of the stream: a sign, a name, a text, and more lines below it. */
interface Entry {
  readonly sign: string
  readonly style: Style
  readonly name: string
  readonly text: string
  readonly more?: readonly string[]
}

/** Prints the demonstration for a person. */
export class StoryNarrator implements Narrator {
  readonly #output: Output
  /** The width of a text after the margin, in characters. */
  readonly #width: number
  readonly #progress = createProgress()
  /** Titles of the added documents, by their URLs. */
  readonly #titles = new Map<string, string>()

  constructor(output: Output) {
    this.#output = output
    this.#width = output.width - MARGIN.length
  }

  async service({ url, documents }: { readonly url: string; readonly documents: number }): Promise<void> {
    await this.#output.line()
    await this.#output.line(
      `  ${this.#output.paint(['bold', 'cyan'], 'Rivulet')}  a web-research service as one stream of typed events`,
    )
    await this.#heading('1  The service', 'embedded, over real documents, without a key or a network')
    await this.#text(`${documents} documents, served at ${url}`)
    await this.#text(
      'It has faults on purpose: it breaks streams four times, and delivers every webhook twice.',
    )
  }

  async dashboard({ url }: { readonly url: string }): Promise<void> {
    await this.#text('The log in the browser, while this runs, or until Ctrl-C with --dashboard:')
    await this.#text(url, ['bold', 'cyan'])
  }

  async search(query: string, { results }: SearchResponse): Promise<void> {
    await this.#heading('2  A search', `client.search({ search_queries: ['${query}'] })`)
    for (const [index, { url, excerpts }] of results.slice(0, SHOWN_RESULTS).entries()) {
      await this.#text(`${index + 1}  ${this.#output.paint('cyan', oneLine(shortUrl(url), this.#width - 3))}`)
      await this.#text(`   ${oneLine(withoutMarkup(excerpts[0] ?? ''), this.#width - 3)}`, 'dim')
    }
    const left = results.length - SHOWN_RESULTS
    if (results.length === 0) await this.#text('No results in these documents.')
    if (left > 0) await this.#text(`   and ${left} more`, 'dim')
  }

  async watching({ packages }: { readonly packages: readonly string[] }): Promise<void> {
    await this.#heading('3  One log', 'log.record({ client, monitors, taskGroups, webhooks })')
    await this.#text(
      `A run for each of ${packages.length} packages: its purpose, its licence, how to install it.`,
    )
    await this.#text('A monitor on a folder, to which documents are added meanwhile. Webhooks of both.')
    await this.#text(
      'All events are recorded once. Two consumers read them, one of which prints this, and a process counts.',
    )
    await this.#text(
      'An alert rule fires when the service begins the runs, and is resolved when all have ended.',
    )
    await this.#output.line()
  }

  async event(event: ResearchEvent): Promise<void> {
    this.#progress.take(event)
    // The bar shows a status.
    if (event.type !== 'task_group.status') await this.#entry(eventEntry(event, this.#titles))
  }

  async note({ title, url }: FieldNote): Promise<void> {
    this.#titles.set(url, title)
    await this.#entry({
      sign: '+',
      style: 'blue',
      name: title,
      text: 'Its README is added to the monitored folder.',
    })
  }

  async diagnostic(diagnostic: Diagnostic): Promise<void> {
    // Duplicates are only counted, and a reconnect after a proper close is not shown.
    if (diagnostic.kind !== 'reconnect' || diagnostic.cause === undefined) return
    const delay = `${Math.round(diagnostic.delay)} ms`
    const message = `The stream broke. It resumes after its last event, in ${delay}.`
    await this.#entry({ sign: '↻', style: 'yellow', name: 'reconnect', text: message })
  }

  async summary(summary: Summary): Promise<void> {
    this.#progress.stop()
    await this.#heading('Summary', "what a consumer received, compared with the service's own database")
    for (const [name, value] of figures(summary))
      await this.#text(`${name.padEnd(NAME_WIDTH)}${this.#output.paint('bold', value)}`)
    if (summary.lost === 0 && summary.doubled === 0) {
      await this.#output.line()
      await this.#text(
        '✔ Streams broke and webhooks arrived twice, but no event was lost or duplicated.',
        'green',
      )
    }
    await this.#heading('Next steps', 'what to read and what to try')
    const next = nextSteps()
    const column = Math.max(...next.map(([where]) => where.length)) + 2
    for (const [where, what] of next)
      await this.#text(`${where.padEnd(column)}${this.#output.paint('dim', what)}`)
    await this.#output.line()
  }

  async #text(line: string, style: Style = 'reset'): Promise<void> {
    await this.#output.line(`${MARGIN}${this.#output.paint(style, line)}`)
  }

  async #heading(title: string, about: string): Promise<void> {
    await this.#output.line()
    await this.#output.line(`  ${this.#output.paint('bold', title)}  ${this.#output.paint('dim', about)}`)
    await this.#output.line()
  }

  async #entry({ sign, style, name, text: first, more = [] }: Entry): Promise<void> {
    const indent = ' '.repeat(NAME_WIDTH + 4)
    const left = this.#width - indent.length
    await this.#progress.aside(async () => {
      const label = oneLine(name, NAME_WIDTH).padEnd(NAME_WIDTH)
      await this.#text(
        `${this.#output.paint(style, sign)} ${this.#output.paint('bold', label)}  ${oneLine(first, left)}`,
      )
      for (const line of more) await this.#text(indent + oneLine(line, left), 'dim')
    })
  }
}

function eventEntry(event: ResearchEvent, titles: ReadonlyMap<string, string>): Entry {
  switch (event.type) {
    case 'task_run.state':
      return runEntry(event)
    case 'monitor.event_stream': {
      const { output } = event.data
      const url = firstCitation(output.basis)?.url ?? event.source
      const name = titles.get(url) ?? 'monitor'
      const more = [`found by the monitor, received by ${event.via}, from ${shortUrl(url)}`]
      return { sign: '◆', style: 'magenta', name, text: outputText(output), more }
    }
    case 'alert.firing':
      return {
        sign: '▲',
        style: 'red',
        name: event.data.alert,
        text: `The alert fires: ${event.data.annotations['summary'] ?? ''} are researched.`,
      }
    case 'alert.resolved': {
      const seconds = (Date.parse(event.received) - Date.parse(event.data.since)) / 1_000
      const text = `The alert is resolved, ${seconds.toFixed(1)} s after it fired.`
      return { sign: '▽', style: 'green', name: event.data.alert, text }
    }
    default:
      return { sign: '!', style: 'yellow', name: event.type, text: jsonText(event.data) }
  }
}

/** The answer of a run about a package, with its source. */
function runEntry({ data: { run, output } }: EventOf<'task_run.state'>): Entry {
  const name = String(run.metadata?.['package'] ?? run.run_id)
  if (run.status !== 'completed') {
    return {
      sign: '✖',
      style: 'red',
      name,
      text: `${run.status}: ${run.error?.message ?? 'no reason given'}`,
    }
  }
  if (output?.type !== 'json') return { sign: '✔', style: 'green', name, text: '' }
  const { purpose, licence, install } = output.content
  const cited = firstCitation(output.basis)
  if (cited === undefined) return { sign: '✔', style: 'green', name, text: `${NO_ANSWER} anything of it` }
  const more = [
    `${oneLine(answer(licence), LICENCE_WIDTH)} · ${answer(install)}`,
    `from ${shortUrl(cited.url)}`,
  ]
  return { sign: '✔', style: 'green', name, text: answer(purpose), more }
}

const NO_ANSWER = 'the documents do not say'

function answer(value: unknown): string {
  return typeof value === 'string' && value !== '' ? withoutMarkup(value) : NO_ANSWER
}

function firstCitation(basis: readonly FieldBasis[]): Citation | undefined {
  return basis.flatMap(({ citations = [] }) => citations)[0]
}

/** The URL of a package's file, relative to `node_modules`; others unchanged. */
function shortUrl(url: string): string {
  return url.replace(/^file:.*\/node_modules\//, '').replaceAll('%40', '@')
}

/** The counts of the process, the highest first. */
function licences({ licences: counts }: Summary): string {
  const sorted = Object.entries(counts).toSorted(([, one], [, other]) => other - one)
  return sorted.length === 0 ? 'none' : sorted.map(([name, count]) => `${count} ${name}`).join(', ')
}

function figures(summary: Summary): [name: string, value: string][] {
  return [
    ['documents', `${summary.documents}`],
    ['search results', `${summary.search_results}`],
    ['runs', `${summary.runs_completed} completed, ${summary.runs_failed} failed`],
    ['monitor events', `${summary.monitor_events}`],
    ['licences', licences(summary)],
    ['alerts', `${summary.alerts.firing} fired, ${summary.alerts.resolved} resolved`],
    ['webhooks received', `${summary.webhooks_received}`],
    ['duplicates dropped', `${summary.duplicates_dropped}`],
    ['reconnects', `${summary.reconnects}`],
    ['lost', `${summary.lost}`],
    ['doubled', `${summary.doubled}`],
  ]
}
