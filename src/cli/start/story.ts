import type { Citation, EventOf, FieldBasis, ResearchEvent } from 'rivulet'
import { outputText } from '../event-line.ts'
import { jsonText } from '../json-text.ts'
import type { Output, Style } from '../output.ts'
import { oneLine, withoutMarks } from '../plain.ts'
import { createProgress } from '../progress.ts'
import { nextSteps } from './next-steps.ts'
import type { Summary } from './ledger.ts'
import type { Narrator } from './narrator.ts'

/** Results of the search that are shown. */
const SHOWN_RESULTS = 3
/** White space to the left of everything. */
const MARGIN = '    '
/** Characters of a package's name, and of its licence. */
const NAME_WIDTH = 22
const LICENCE_WIDTH = 32

/** A line of the stream: a sign, whom it is about, what there is to say, and more of it below. */
interface Entry {
  readonly sign: string
  readonly style: Style
  readonly name: string
  readonly text: string
  readonly more?: readonly string[]
}

/** Tells it to a person. */
export function storyNarrator(output: Output): Narrator {
  const { paint, width } = output
  const progress = createProgress()
  /** Titles of the documents that came into the folder, by their URLs. */
  const titles = new Map<string, string>()

  const text = (line: string, style: Style = 'reset') => output.line(`${MARGIN}${paint(style, line)}`)

  async function heading(title: string, about: string): Promise<void> {
    await output.line()
    await output.line(`  ${paint('bold', title)}  ${paint('dim', about)}`)
    await output.line()
  }

  async function entry({ sign, style, name, text: first, more = [] }: Entry): Promise<void> {
    const indent = ' '.repeat(NAME_WIDTH + 4)
    const room = width - MARGIN.length - indent.length
    await progress.aside(async () => {
      const label = oneLine(name, NAME_WIDTH).padEnd(NAME_WIDTH)
      await text(`${paint(style, sign)} ${paint('bold', label)}  ${oneLine(first, room)}`)
      for (const line of more) await text(indent + oneLine(line, room), 'dim')
    })
  }

  return {
    async service({ url, documents }) {
      await output.line()
      await output.line(
        `  ${paint(['bold', 'cyan'], 'Rivulet')}  a web-research service as one stream of typed events`,
      )
      await heading('1  The service', 'embedded, over real documents: no key, no network')
      await text(`${documents} documents, served at ${url}`)
      await text('It misbehaves on purpose: it cuts streams four times, and delivers every webhook twice.')
    },

    async search(query, { results }) {
      await heading('2  A search', `client.search({ search_queries: ['${query}'] })`)
      for (const [index, { url, excerpts }] of results.slice(0, SHOWN_RESULTS).entries()) {
        await text(`${index + 1}  ${paint('cyan', oneLine(shortUrl(url), width - MARGIN.length - 3))}`)
        await text(`   ${oneLine(withoutMarks(excerpts[0] ?? ''), width - MARGIN.length - 3)}`, 'dim')
      }
      const left = results.length - SHOWN_RESULTS
      if (results.length === 0) await text('Nothing found in these documents.')
      if (left > 0) await text(`   and ${left} more`, 'dim')
    },

    async watching({ packages }) {
      await heading('3  One stream', 'client.watch({ monitors, taskGroups, webhooks })')
      await text(
        `A run for each of ${packages.length} packages: what it is for, its licence, how it is installed.`,
      )
      await text('A monitor on a folder, into which documents come while it runs. Webhooks of both.')
      await output.line()
    },

    async event(event) {
      progress.take(event)
      // The bar shows it.
      if (event.type !== 'task_group.status') await entry(eventEntry(event, titles))
    },

    async note({ title, url }) {
      titles.set(url, title)
      await entry({
        sign: '+',
        style: 'blue',
        name: title,
        text: 'Its README comes into the monitored folder.',
      })
    },

    async diagnostic(diagnostic) {
      // Duplicates are only counted, and a clean close is no trouble.
      if (diagnostic.kind !== 'reconnect' || diagnostic.cause === undefined) return
      const delay = `${Math.round(diagnostic.delay)} ms`
      const said = `The stream was cut. It is taken up after its last event, in ${delay}.`
      await entry({ sign: '↻', style: 'yellow', name: 'reconnect', text: said })
    },

    async summary(summary) {
      progress.stop()
      await heading('Summary', "what the subscriber got, compared with the service's own database")
      for (const [name, value] of figures(summary))
        await text(`${name.padEnd(NAME_WIDTH)}${paint('bold', value)}`)
      if (summary.lost === 0 && summary.doubled === 0) {
        await output.line()
        await text(
          '✔ Streams broke and webhooks came twice: nothing is lost, and nothing came twice.',
          'green',
        )
      }
      await heading('Where to read on', 'and what to try next')
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
      const more = [`found by the monitor, told by ${event.via}, from ${shortUrl(url)}`]
      return { sign: '◆', style: 'magenta', name, text: outputText(output), more }
    }
    default:
      return { sign: '!', style: 'yellow', name: event.type, text: jsonText(event.data) }
  }
}

/** What a run found out about a package, and where it stands. */
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
  return typeof value === 'string' && value !== '' ? withoutMarks(value) : NO_ANSWER
}

function firstCitation(basis: readonly FieldBasis[]): Citation | undefined {
  return basis.flatMap(({ citations = [] }) => citations)[0]
}

/** The URL of a package's file from the package on; others as they are. */
function shortUrl(url: string): string {
  return url.replace(/^file:.*\/node_modules\//, '').replaceAll('%40', '@')
}

function figures(summary: Summary): [name: string, value: string][] {
  return [
    ['documents', `${summary.documents}`],
    ['search results', `${summary.search_results}`],
    ['runs', `${summary.runs_completed} completed, ${summary.runs_failed} failed`],
    ['monitor events', `${summary.monitor_events}`],
    ['webhooks received', `${summary.webhooks_received}`],
    ['duplicates dropped', `${summary.duplicates_dropped}`],
    ['reconnects', `${summary.reconnects}`],
    ['lost', `${summary.lost}`],
    ['doubled', `${summary.doubled}`],
  ]
}
