import type { Citation, EventOf, FieldBasis, ResearchEvent } from 'rivulet'
import { outputText } from '../event-line.ts'
import { jsonText } from '../json-text.ts'
import type { Output, Style } from '../output.ts'
import { oneLine, withoutMarkup } from '../plain.ts'
import { createProgress } from '../progress.ts'
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
export function storyNarrator(output: Output): Narrator {
  const { paint, width } = output
  const progress = createProgress()
  /** Titles of the added documents, by their URLs. */
  const titles = new Map<string, string>()

  const text = (line: string, style: Style = 'reset') => output.line(`${MARGIN}${paint(style, line)}`)

  async function heading(title: string, about: string): Promise<void> {
    await output.line()
    await output.line(`  ${paint('bold', title)}  ${paint('dim', about)}`)
    await output.line()
  }

  async function entry({ sign, style, name, text: first, more = [] }: Entry): Promise<void> {
    const indent = ' '.repeat(NAME_WIDTH + 4)
    const left = width - MARGIN.length - indent.length
    await progress.aside(async () => {
      const label = oneLine(name, NAME_WIDTH).padEnd(NAME_WIDTH)
      await text(`${paint(style, sign)} ${paint('bold', label)}  ${oneLine(first, left)}`)
      for (const line of more) await text(indent + oneLine(line, left), 'dim')
    })
  }

  return {
    async service({ url, documents }) {
      await output.line()
      await output.line(
        `  ${paint(['bold', 'cyan'], 'Rivulet')}  a web-research service as one stream of typed events`,
      )
      await heading('1  The service', 'embedded, over real documents, without a key or a network')
      await text(`${documents} documents, served at ${url}`)
      await text('It has faults on purpose: it breaks streams four times, and delivers every webhook twice.')
    },

    async dashboard({ url }) {
      await text('The log in the browser, while this runs, or until Ctrl-C with --dashboard:')
      await text(url, ['bold', 'cyan'])
    },

    async search(query, { results }) {
      await heading('2  A search', `client.search({ search_queries: ['${query}'] })`)
      for (const [index, { url, excerpts }] of results.slice(0, SHOWN_RESULTS).entries()) {
        await text(`${index + 1}  ${paint('cyan', oneLine(shortUrl(url), width - MARGIN.length - 3))}`)
        await text(`   ${oneLine(withoutMarkup(excerpts[0] ?? ''), width - MARGIN.length - 3)}`, 'dim')
      }
      const left = results.length - SHOWN_RESULTS
      if (results.length === 0) await text('No results in these documents.')
      if (left > 0) await text(`   and ${left} more`, 'dim')
    },

    async watching({ packages }) {
      await heading('3  One log', 'log.record({ client, monitors, taskGroups, webhooks })')
      await text(
        `A run for each of ${packages.length} packages: its purpose, its licence, how to install it.`,
      )
      await text('A monitor on a folder, to which documents are added meanwhile. Webhooks of both.')
      await text(
        'All events are recorded once. Two consumers read them, one of which prints this, and a process counts.',
      )
      await text('An alert rule fires when the service begins the runs, and is resolved when all have ended.')
      await output.line()
    },

    async event(event) {
      progress.take(event)
      // The bar shows a status.
      if (event.type !== 'task_group.status') await entry(eventEntry(event, titles))
    },

    async note({ title, url }) {
      titles.set(url, title)
      await entry({
        sign: '+',
        style: 'blue',
        name: title,
        text: 'Its README is added to the monitored folder.',
      })
    },

    async diagnostic(diagnostic) {
      // Duplicates are only counted, and a reconnect after a proper close is not shown.
      if (diagnostic.kind !== 'reconnect' || diagnostic.cause === undefined) return
      const delay = `${Math.round(diagnostic.delay)} ms`
      const message = `The stream broke. It resumes after its last event, in ${delay}.`
      await entry({ sign: '↻', style: 'yellow', name: 'reconnect', text: message })
    },

    async summary(summary) {
      progress.stop()
      await heading('Summary', "what a consumer received, compared with the service's own database")
      for (const [name, value] of figures(summary))
        await text(`${name.padEnd(NAME_WIDTH)}${paint('bold', value)}`)
      if (summary.lost === 0 && summary.doubled === 0) {
        await output.line()
        await text(
          '✔ Streams broke and webhooks arrived twice, but no event was lost or duplicated.',
          'green',
        )
      }
      await heading('Next steps', 'what to read and what to try')
      const next = nextSteps()
      const column = Math.max(...next.map(([where]) => where.length)) + 2
      for (const [where, what] of next) await text(`${where.padEnd(column)}${paint('dim', what)}`)
      await output.line()
    },
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
