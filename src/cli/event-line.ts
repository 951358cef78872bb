import type {
  EventOf,
  FindAllRun,
  ResearchEvent,
  ResearchEventData,
  ResearchEventType,
  RunProgressStats,
  TaskGroupStatus,
  TaskOutput,
  TaskRunState,
} from 'rivulet'
import type { AlertData } from 'rivulet/rules'
import { withCode } from './exit.ts'
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
    return Object.hasOwn(DESCRIPTIONS, event.type) ? describe(event) : describeOther(event)
  } catch {
    return describeOther(event)
  }
}

/** An event of a process, or of another version. */
function describeOther({ type, data }: ResearchEvent): Description {
  return { sign: '•', style: 'cyan', kind: oneLine(type, TYPE_WIDTH), text: jsonText(data) }
}

function describe<Type extends ResearchEventType>({ type, data }: EventOf<Type>): Description {
  const described = DESCRIPTIONS[type]
  if (typeof described === 'function') return described(data)
  const [sign, style, kind, textOf] = described
  return { sign, style, kind, text: textOf?.(data) ?? '' }
}

/** Description of each type: its sign, style and kind, with the text if it has one; or what depends on the data. */
const DESCRIPTIONS: {
  readonly [Type in ResearchEventType]:
    | ((data: ResearchEventData[Type]) => Description)
    | readonly [sign: string, style: Style, kind: string, textOf?: (data: ResearchEventData[Type]) => string]
} = {
  'monitor.event_stream': ['◆', 'magenta', 'change', ({ output }) => outputText(output)],
  'monitor.snapshot': ['◆', 'magenta', 'change', ({ changed_output }) => outputText(changed_output)],
  'monitor.completion': ['◇', 'dim', 'no change'],
  'monitor.error': ['✖', 'red', 'failed', ({ error_message }) => error_message],
  'monitor.cancelled': ['◇', 'dim', 'cancelled'],
  'task_group.status': ['▸', 'blue', 'group', ({ status }) => statusText(status)],
  'task_run.state': describeRun,
  'task_run.progress_stats': ['▸', 'blue', 'progress', progressText],
  'task_run.progress_msg': ({ type, message }) => {
    return { sign: '▸', style: 'dim', kind: oneLine(lastPart(type), TYPE_WIDTH), text: message }
  },
  'findall.status': ['▸', 'blue', 'find-all', ({ data }) => findAllText(data.status)],
  'findall.candidate.generated': ['◇', 'dim', 'candidate', candidateText],
  'findall.candidate.matched': ['✔', 'green', 'matched', candidateText],
  'findall.candidate.unmatched': ['✖', 'dim', 'unmatched', candidateText],
  'findall.candidate.discarded': ['✖', 'dim', 'discarded', candidateText],
  'findall.candidate.enriched': ['◆', 'magenta', 'enriched', candidateText],
  'findall.schema.updated': ['▸', 'blue', 'schema', ({ data }) => data.objective],
  error: ['✖', 'red', 'error', ({ error }) => error.message],
  'stream.gap': ['!', 'yellow', 'gap', ({ reason }) => reason],
  'stream.oversized': ['!', 'yellow', 'too long', ({ limit }) => `over ${limit} characters`],
  'source.failed': ['✖', 'red', 'failed', ({ error }) => withCode(error)],
  'source.live': ['▸', 'dim', 'reached'],
  'source.lost': ['!', 'yellow', 'lost', ({ message }) => message],
  'source.behind': ['!', 'yellow', 'behind', ({ through }) => `since ${through ?? 'the beginning'}`],
  'source.caught_up': ['▸', 'dim', 'caught up'],
  'log.tick': ['·', 'dim', 'tick'],
  'log.progress': ['·', 'dim', 'progress', ({ through }) => through ?? 'removed'],
  'log.clock': ['!', 'yellow', 'clock', ({ state, by }) => `${state} (${by} ms)`],
  'log.gap': ['!', 'yellow', 'gap', () => 'entries were deleted before they were read'],
  'alert.pending': ['△', 'yellow', 'pending', alertText],
  'alert.inactive': ['▽', 'dim', 'inactive', alertText],
  'alert.firing': ['▲', 'red', 'firing', alertText],
  'alert.resolved': ['▽', 'green', 'resolved', alertText],
  'alert.unknown': ['?', 'yellow', 'uncertain', ({ key, reason }) => `${keyText(key)} (${reason})`],
  'alert.known': ['?', 'dim', 'known', ({ key }) => keyText(key)],
  'alert.late': [
    '!',
    'yellow',
    'late',
    ({ key, event, count }) => `${keyText(key)} ${event.id}${count > 1 ? ` and ${count - 1} more` : ''}`,
  ],
  'gateway.search': ['▸', 'dim', 'search', ({ request }) => request.search_queries.join(', ')],
  'gateway.session': ['▸', 'dim', 'session'],
  'gateway.revoked': ['!', 'yellow', 'revoked', ({ sub, grant }) => sub ?? grant ?? ''],
  'window.result': ['▦', 'cyan', 'window', ({ key, values }) => `${key} ${JSON.stringify(values)}`],
  'join.result': ['⋈', 'cyan', 'join', ({ key, left, right }) => `${key} ${JSON.stringify({ left, right })}`],
  'stage.dropped': ['!', 'yellow', 'dropped', ({ key, count, reason }) => `${key} ${count} (${reason})`],
  unknown: ['?', 'yellow', 'unknown', jsonText],
}

function describeRun({ run, output }: TaskRunState): Description {
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
function candidateText({
  data: { name, url, output },
}: ResearchEventData['findall.candidate.generated']): string {
  const outputs = Object.entries(output ?? {}).map(([field, { value, is_matched }]) => {
    const sign = is_matched == null ? '' : is_matched ? ' ✔' : ' ✖'
    return `${field}: ${typeof value === 'string' ? withoutMarkup(value) : jsonText(value)}${sign}`
  })
  const title = `${name} (${url})`
  return outputs.length === 0 ? title : `${title}: ${outputs.join(' · ')}`
}

/** `monitor=/v1/monitors/m, 3: three errors in an hour (events may be missing)`. */
function alertText({ key, value, annotations, complete }: AlertData): string {
  const measured = [keyText(key), value ?? ''].filter((text) => text !== '').join(', ')
  const summary = annotations['summary'] ?? annotations['description'] ?? ''
  const text = [measured, summary].filter((part) => part !== '').join(': ')
  return complete ? text : `${text} (events may be missing)`
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
