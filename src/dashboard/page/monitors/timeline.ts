import { isObject, oneLine, readOutput, summaryOf } from '../evidence/evidence.ts'
import type { Evidence, ShownOutput } from '../evidence/evidence.ts'
import { words } from '../parts/format.ts'
import type { MonitorRow } from '../rows.ts'

/** The longest title, in characters. */
const TITLE = 240

/** The kind of a timeline's entry. */
type EntryKind = 'change' | 'completion' | 'error' | 'notice'

/** An entry of a monitor's timeline. */
export interface TimelineEntry {
  readonly key: string
  readonly row: MonitorRow
  readonly kind: EntryKind
  /** When it was recorded, in Unix ms. */
  readonly found: number
  /** When it happened, in the precision of the service: `2026`, `2026-01` or `2026-01-31`. */
  readonly date: string | undefined
  /** The beginning of that date in the reader's zone, in Unix ms. */
  readonly happened: number | undefined
  readonly title: string
  readonly evidence: readonly Evidence[]
  readonly output: unknown
  readonly previous: unknown
}

const known = new WeakMap<MonitorRow, TimelineEntry>()

/** A row as an entry of the timeline. The same object for the same row, so that entries which did not change are not rendered. */
export function timelineEntry(key: string, row: MonitorRow): TimelineEntry {
  const earlier = known.get(row)
  if (earlier !== undefined) return earlier
  const event = isObject(row.event) ? row.event : {}
  const output = event['output'] ?? event['changed_output']
  const shown = readOutput(output)
  const date =
    typeof event['event_date'] === 'string' && event['event_date'] !== '' ? event['event_date'] : undefined
  const entry: TimelineEntry = {
    key,
    row,
    kind: kindOf(row.type),
    found: row.recorded,
    date,
    happened: date === undefined ? undefined : beginningOf(date),
    title: titleOf(row.type, event, output),
    evidence: shown.kind === 'none' ? [] : shown.evidence,
    output,
    previous: event['previous_output'],
  }
  known.set(row, entry)
  return entry
}

function kindOf(type: string): EntryKind {
  if (type === 'monitor.event_stream' || type === 'monitor.snapshot') return 'change'
  if (type === 'monitor.completion') return 'completion'
  return type === 'monitor.error' || type === 'error' ? 'error' : 'notice'
}

function titleOf(type: string, event: Readonly<Record<string, unknown>>, output: unknown): string {
  if (type === 'monitor.error') {
    return typeof event['error_message'] === 'string' ? event['error_message'] : 'An execution failed'
  }
  if (type === 'monitor.completion') return 'Nothing new'
  const shown = readOutput(output)
  // The values alone do not say what changed.
  if (type !== 'monitor.snapshot' || shown.kind !== 'fields') return summaryOf(output, TITLE)
  const changes = shown.fields.map(([name, value]) => `${words(name)}: ${valueText(value)}`)
  const previous = readOutput(event['previous_output'])
  return oneLine([...changes, ...removals(shown, previous)].join(' · '), TITLE)
}

/** The fields that a snapshot no longer has: its basis names them, and only the previous output has them. */
function removals(changed: ShownOutput, previous: ShownOutput): readonly string[] {
  if (changed.kind !== 'fields' || previous.kind !== 'fields') return []
  const left = new Set(changed.fields.map(([name]) => name))
  const had = new Set(previous.fields.map(([name]) => name))
  const gone = changed.evidence.map(({ field }) => field).filter((name) => had.has(name) && !left.has(name))
  return [...new Set(gone)].map((name) => `${words(name)}: removed`)
}

function valueText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** The beginning of a full or partial ISO date in the reader's zone; undefined for another text. */
export function beginningOf(date: string): number | undefined {
  const parts = /^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?/.exec(date)
  if (parts === null) return undefined
  const [, year, month = '01', day = '01'] = parts
  return new Date(Number(year), Number(month) - 1, Number(day)).getTime()
}

/** A full or partial ISO date in words: `March 2026`. */
export function dateText(date: string, locale?: string): string {
  const at = beginningOf(date)
  if (at === undefined) return date
  const options: Intl.DateTimeFormatOptions =
    date.length >= 10
      ? { day: 'numeric', month: 'short', year: 'numeric' }
      : date.length >= 7
        ? { month: 'long', year: 'numeric' }
        : { year: 'numeric' }
  return new Intl.DateTimeFormat(locale, options).format(at)
}
