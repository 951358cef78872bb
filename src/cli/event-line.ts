import type {
  EventOf,
  FindAllCandidate,
  FindAllRun,
  ResearchEvent,
  RunProgressStats,
  TaskGroupStatus,
  TaskOutput,
} from 'rivulet'
import type { AlertData } from 'rivulet/rules'
import { jsonText } from './json-text.ts'
import type { Output, Style } from './output.ts'
import { oneLine, withoutMarkup } from './plain.ts'

/** The description of an event for a person. */
interface Description {
  readonly sign: string
  readonly style: Style
  readonly kind: string
  readonly text: string
}

const KIND_WIDTH = 9
/** The longest type of an event of a process that is shown, in characters. */
const TYPE_WIDTH = 24
const VIA_WIDTH = 12

/** An event as one line for a person: its time or when it was received, its kind, its resource and text, and how it arrived. */
export function eventLine(event: ResearchEvent, { paint, width }: Pick<Output, 'paint' | 'width'>): string {
  const { sign, style, kind, text } = describeSafely(event)
  const time = clockTime(new Date(event.time ?? event.received))
  const label = `${sign} ${kind.padEnd(KIND_WIDTH)}`
  const resource = resourceOf(event)
  const left = width - time.length - label.length - event.via.length - 6
  const content = oneLine(text === '' ? resource : `${resource}: ${text}`, left)
  return `${paint('dim', time)}  ${paint(style, label)}  ${content}  ${paint('dim', oneLine(event.via, VIA_WIDTH))}`
}

/** The last part of an event's source: the id of a monitor, a group or a run. */
export function resourceOf({ source }: Pick<ResearchEvent, 'source'>): string {
  return source.slice(source.lastIndexOf('/') + 1)
}

/** An event for other programs. An error in it keeps its name and message, which JSON omits. */
export function eventJson(event: ResearchEvent): unknown {
  if (event.type !== 'source.failed') return event
  const { error } = event.data
  const { name, message } = error
  return { ...event, data: { ...event.data, error: { ...error, name, message } } }
}

/** An entry of a log may come from another version of the library, with data of another shape. */
function describeSafely(event: ResearchEvent): Description {
  try {
    return describe(event)
  } catch {
    return describeOther(event)
  }
}

/** An event of a process, or of another version. */
function describeOther({ type, data }: ResearchEvent): Description {
  return { sign: '•', style: 'cyan', kind: oneLine(type, TYPE_WIDTH), text: jsonText(data) }
}

function describe(event: ResearchEvent): Description {
  switch (event.type) {
    case 'monitor.event_stream':
      return { sign: '◆', style: 'magenta', kind: 'change', text: outputText(event.data.output) }
    case 'monitor.snapshot':
      return { sign: '◆', style: 'magenta', kind: 'change', text: outputText(event.data.changed_output) }
    case 'monitor.completion':
      return { sign: '◇', style: 'dim', kind: 'no change', text: '' }
    case 'monitor.error':
      return { sign: '✖', style: 'red', kind: 'failed', text: event.data.error_message }
    case 'task_group.status':
      return { sign: '▸', style: 'blue', kind: 'group', text: statusText(event.data.status) }
    case 'task_run.state':
      return describeRun(event)
    case 'task_run.progress_stats':
      return { sign: '▸', style: 'blue', kind: 'progress', text: progressText(event.data) }
    case 'task_run.progress_msg': {
      const { type, message } = event.data
      return { sign: '▸', style: 'dim', kind: oneLine(lastPart(type), TYPE_WIDTH), text: message }
    }
    case 'findall.status':
      return { sign: '▸', style: 'blue', kind: 'find-all', text: findAllText(event.data.data.status) }
    case 'findall.candidate.generated':
      return { sign: '◇', style: 'dim', kind: 'candidate', text: candidateText(event.data.data) }
    case 'findall.candidate.matched':
      return { sign: '✔', style: 'green', kind: 'matched', text: candidateText(event.data.data) }
    case 'findall.candidate.unmatched':
      return { sign: '✖', style: 'dim', kind: 'unmatched', text: candidateText(event.data.data) }
    case 'findall.candidate.discarded':
      return { sign: '✖', style: 'dim', kind: 'discarded', text: candidateText(event.data.data) }
    case 'findall.candidate.enriched':
      return { sign: '◆', style: 'magenta', kind: 'enriched', text: candidateText(event.data.data) }
    case 'findall.schema.updated':
      return { sign: '▸', style: 'blue', kind: 'schema', text: event.data.data.objective }
    case 'error':
      return { sign: '✖', style: 'red', kind: 'error', text: event.data.error.message }
    case 'stream.gap':
      return { sign: '!', style: 'yellow', kind: 'gap', text: event.data.reason }
    case 'stream.oversized':
      return { sign: '!', style: 'yellow', kind: 'too long', text: `over ${event.data.limit} characters` }
    case 'source.failed':
      return { sign: '✖', style: 'red', kind: 'failed', text: event.data.error.message }
    case 'monitor.cancelled':
      return { sign: '◇', style: 'dim', kind: 'cancelled', text: '' }
    case 'source.live':
      return { sign: '▸', style: 'dim', kind: 'reached', text: '' }
    case 'source.lost':
      return { sign: '!', style: 'yellow', kind: 'lost', text: event.data.message }
    case 'log.tick':
      return { sign: '·', style: 'dim', kind: 'tick', text: '' }
    case 'log.clock':
      return { sign: '!', style: 'yellow', kind: 'clock', text: `${event.data.state} (${event.data.by} ms)` }
    case 'log.gap':
      return { sign: '!', style: 'yellow', kind: 'gap', text: 'entries were deleted before they were read' }
    case 'alert.pending':
      return { sign: '△', style: 'yellow', kind: 'pending', text: alertText(event.data) }
    case 'alert.inactive':
      return { sign: '▽', style: 'dim', kind: 'inactive', text: alertText(event.data) }
    case 'alert.firing':
      return { sign: '▲', style: 'red', kind: 'firing', text: alertText(event.data) }
    case 'alert.resolved':
      return { sign: '▽', style: 'green', kind: 'resolved', text: alertText(event.data) }
    case 'alert.unknown':
      return {
        sign: '?',
        style: 'yellow',
        kind: 'uncertain',
        text: `${keyText(event.data.key)} (${event.data.reason})`,
      }
    case 'alert.known':
      return { sign: '?', style: 'dim', kind: 'known', text: keyText(event.data.key) }
    case 'alert.late':
      return {
        sign: '!',
        style: 'yellow',
        kind: 'late',
        text: `${keyText(event.data.key)} ${event.data.event.id}`,
      }
    case 'gateway.search':
      return { sign: '▸', style: 'dim', kind: 'search', text: event.data.request.search_queries.join(', ') }
    case 'gateway.session':
      return { sign: '▸', style: 'dim', kind: 'session', text: '' }
    case 'gateway.revoked':
      return { sign: '!', style: 'yellow', kind: 'revoked', text: event.data.sub ?? event.data.grant ?? '' }
    case 'unknown':
      return { sign: '?', style: 'yellow', kind: 'unknown', text: jsonText(event.data) }
    default:
      return describeOther(event)
  }
}

function describeRun({ data: { run, output } }: EventOf<'task_run.state'>): Description {
  const text = run.error?.message ?? (output == null ? '' : outputText(output) || 'an empty answer')
  if (run.status === 'completed') return { sign: '✔', style: 'green', kind: run.status, text }
  return { sign: '✖', style: run.status === 'failed' ? 'red' : 'yellow', kind: run.status, text }
}

/** The last part of a type: `search` of `task_run.progress_msg.search`. */
function lastPart(type: string): string {
  return type.slice(type.lastIndexOf('.') + 1)
}

/** The progress of a run: `40 %, 3 of 12 sources read`. */
function progressText({ progress_meter, source_stats: stats }: RunProgressStats): string {
  const { num_sources_read: read, num_sources_considered: considered } = stats
  const sources =
    read === null ? '' : `, ${read}${considered === null ? '' : ` of ${considered}`} sources read`
  return `${Math.round(progress_meter)} %${sources}`
}

/** The state of a FindAll run: `completed (match_limit_met), 3 of 12 candidates matched`. */
function findAllText({ status, metrics, termination_reason: reason }: FindAllRun['status']): string {
  const { matched_candidates_count: matched, generated_candidates_count: generated } = metrics
  return `${status}${reason === null ? '' : ` (${reason})`}, ${matched} of ${generated} candidates matched`
}

/** A candidate: `Acme (https://acme.example): founded 2020 ✔ · employees: 30`. */
function candidateText({ name, url, output }: FindAllCandidate): string {
  const outputs = Object.entries(output ?? {}).map(([field, { value, is_matched }]) => {
    const sign = is_matched == null ? '' : is_matched ? ' ✔' : ' ✖'
    return `${field}: ${typeof value === 'string' ? withoutMarkup(value) : jsonText(value)}${sign}`
  })
  const title = `${name} (${url})`
  return outputs.length === 0 ? title : `${title}: ${outputs.join(' · ')}`
}

/** `monitor=/v1/monitors/m, 3: three errors in an hour`. */
function alertText({ key, value, annotations }: AlertData): string {
  const measured = [keyText(key), value ?? ''].filter((text) => text !== '').join(', ')
  const summary = annotations['summary'] ?? annotations['description'] ?? ''
  return [measured, summary].filter((text) => text !== '').join(': ')
}

/** The values of a key: `monitor=/v1/monitors/m company=Acme`. */
export function keyText(key: Readonly<Record<string, string>>): string {
  return Object.entries(key)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}

/** An output as text: prose unchanged, fields as `name: value`. */
export function outputText(output: TaskOutput): string {
  if (output.type === 'text') return withoutMarkup(output.content)
  const fields = Object.entries(output.content).map(([name, value]) => {
    return `${name}: ${typeof value === 'string' ? withoutMarkup(value) : jsonText(value)}`
  })
  return fields.join(' · ')
}

/** How many of a group's runs have ended. */
export function endedRuns({ num_task_runs, task_run_status_counts: counts }: TaskGroupStatus): number {
  const { queued = 0, running = 0, cancelling = 0, action_required = 0 } = counts ?? {}
  return num_task_runs - queued - running - cancelling - action_required
}

/** The progress of a group: `1 of 3 ended, 1 completed, 2 running`. */
export function statusText(status: TaskGroupStatus): string {
  const counts = Object.entries(status.task_run_status_counts ?? {}).map(
    ([name, count]) => `${count} ${name}`,
  )
  return [`${endedRuns(status)} of ${status.num_task_runs} ended`, ...counts].join(', ')
}

/** `14:03:22`, in the local time zone. */
function clockTime(date: Date): string {
  return Number.isNaN(date.valueOf()) ? '--:--:--' : date.toTimeString().slice(0, 8)
}
