import type { EventOf, ResearchEvent, TaskGroupStatus, TaskOutput } from 'rivulet'
import { jsonText } from './json-text.ts'
import type { Output, Style } from './output.ts'
import { oneLine, withoutMarks } from './plain.ts'

/** What an event says, for a person. */
interface Saying {
  readonly sign: string
  readonly style: Style
  readonly what: string
  readonly text: string
}

const WHAT_WIDTH = 9

/** An event as one line for a person: when it happened, or was received, what it is, what it says about what, and how it arrived. */
export function eventLine(event: ResearchEvent, { paint, width }: Pick<Output, 'paint' | 'width'>): string {
  const { sign, style, what, text } = say(event)
  const time = clockTime(new Date(event.time ?? event.received))
  const label = `${sign} ${what.padEnd(WHAT_WIDTH)}`
  const about = event.source.slice(event.source.lastIndexOf('/') + 1)
  const room = width - time.length - label.length - event.via.length - 6
  const said = oneLine(text === '' ? about : `${about}: ${text}`, room)
  return `${paint('dim', time)}  ${paint(style, label)}  ${said}  ${paint('dim', event.via)}`
}

/** An event as it is for other programs: an error in it has what it says, which JSON leaves out of one. */
export function eventJson(event: ResearchEvent): unknown {
  if (event.type !== 'source.failed') return event
  const { error } = event.data
  const { name, message } = error
  return { ...event, data: { ...event.data, error: { ...error, name, message } } }
}

function say(event: ResearchEvent): Saying {
  switch (event.type) {
    case 'monitor.event_stream':
      return { sign: '◆', style: 'magenta', what: 'change', text: outputText(event.data.output) }
    case 'monitor.snapshot':
      return { sign: '◆', style: 'magenta', what: 'change', text: outputText(event.data.changed_output) }
    case 'monitor.completion':
      return { sign: '◇', style: 'dim', what: 'no change', text: '' }
    case 'monitor.error':
      return { sign: '✖', style: 'red', what: 'failed', text: event.data.error_message }
    case 'task_group.status':
      return { sign: '▸', style: 'blue', what: 'group', text: statusText(event.data.status) }
    case 'task_run.state':
      return sayRun(event)
    case 'error':
      return { sign: '✖', style: 'red', what: 'error', text: event.data.error.message }
    case 'stream.gap':
      return { sign: '!', style: 'yellow', what: 'gap', text: event.data.reason }
    case 'stream.oversized':
      return { sign: '!', style: 'yellow', what: 'too long', text: `over ${event.data.limit} characters` }
    case 'source.failed':
      return { sign: '✖', style: 'red', what: 'failed', text: event.data.error.message }
    case 'monitor.cancelled':
      return { sign: '◇', style: 'dim', what: 'cancelled', text: '' }
    case 'unknown':
      return { sign: '?', style: 'yellow', what: 'unknown', text: jsonText(event.data) }
  }
}

function sayRun({ data: { run, output } }: EventOf<'task_run.state'>): Saying {
  const text = run.error?.message ?? (output == null ? '' : outputText(output) || 'an empty answer')
  if (run.status === 'completed') return { sign: '✔', style: 'green', what: run.status, text }
  return { sign: '✖', style: run.status === 'failed' ? 'red' : 'yellow', what: run.status, text }
}

/** What an output says: prose as it is, fields as `name: value`. */
export function outputText(output: TaskOutput): string {
  if (output.type === 'text') return withoutMarks(output.content)
  const fields = Object.entries(output.content).map(([name, value]) => {
    return `${name}: ${typeof value === 'string' ? withoutMarks(value) : jsonText(value)}`
  })
  return fields.join(' · ')
}

/** How many of a group's runs have ended. */
export function endedRuns({ num_task_runs, task_run_status_counts: counts }: TaskGroupStatus): number {
  const { queued = 0, running = 0, cancelling = 0, action_required = 0 } = counts ?? {}
  return num_task_runs - queued - running - cancelling - action_required
}

/** How far a group is: `1 of 3 ended, 1 completed, 2 running`. */
export function statusText(status: TaskGroupStatus): string {
  const counts = Object.entries(status.task_run_status_counts ?? {}).map(
    ([name, count]) => `${count} ${name}`,
  )
  return [`${endedRuns(status)} of ${status.num_task_runs} ended`, ...counts].join(', ')
}

/** `14:03:22`, in the time zone of whoever reads it. */
function clockTime(date: Date): string {
  return Number.isNaN(date.valueOf()) ? '--:--:--' : date.toTimeString().slice(0, 8)
}
