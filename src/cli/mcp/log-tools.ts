import type { AlertCause, RuleSet } from 'rivulet/rules'
import type { Entry, EventLog, Position } from 'rivulet/log'
import { isObject } from '../../protocol/json.ts'
import * as s from '../../protocol/requests/kinds.ts'
import { defineTool, type Tool } from '../../tools/tool.ts'
import { logEntries } from '../log-entries.ts'

/** Settings of {@link logTools}. */
export interface LogToolsOptions {
  readonly log: EventLog
  /** The rules whose conditions are explained. Default: none. */
  readonly rules?: RuleSet | undefined
  /** The name of the process of alert rules in the log. */
  readonly process: string
}

const DAY = 86_400_000
/** Maximum number of events, and of alerts, of one result. */
const MAX_EVENTS = 200
/** Maximum length of the events of one result, in characters of JSON. A longer result would be cut, and events lost. */
const MAX_LENGTH = 60_000
/** How long a search for an alert and its causes takes, in ms. Agents give up after 60 s. */
const MAX_SEARCH = 30_000
/** Maximum length of a rule file, in characters. */
const MAX_RULES = 50_000
const ALERTS = ['alert.firing', 'alert.resolved', 'alert.unknown', 'alert.known', 'alert.late']
/** Entries of the log's own clock, which are no research. */
const CLOCK: ReadonlySet<string> = new Set(['log.tick', 'log.progress', 'log.clock'])

const time = s.textThat(
  (text) => /^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text)),
  'a time such as 2026-01-31T12:00:00Z',
)
const SINCE = 'Only what was recorded since this time. Default: 24 hours ago.'

interface EventsRequest {
  readonly types?: readonly string[]
  readonly sources?: readonly string[]
  readonly since?: string
  readonly until?: string
  readonly limit?: number
  readonly after?: Position
}

interface AlertRequest {
  readonly alert?: string
  readonly episode?: string
}

/** Tools that read a log, so that a model can say what has changed, and why an alert has fired. */
export function logTools(options: LogToolsOptions): readonly Tool[] {
  return [recentEvents(options), alertEvents(options), explainAlert(options), checkRules()]
}

function recentEvents({ log }: LogToolsOptions): Tool {
  return defineTool({
    name: 'recent_events',
    title: 'Recent events',
    description:
      'Returns what was recorded of monitors, runs and alerts, oldest first. For questions such as: what has changed since yesterday?',
    isReadOnly: true,
    schema: s.options<EventsRequest>({
      types: s.list(s.text(), 'choices', 1),
      sources: s.list(s.text(), 'choices', 1),
      since: time,
      until: time,
      limit: s.integer(1, MAX_EVENTS),
      after: s.text(),
    }),
    fields: {
      types: 'Only events of these types, such as monitor.event_stream, task_run.state or alert.firing.',
      sources: 'Only events of these sources: ids of monitors, groups or runs, or whole sources.',
      since: SINCE,
      until: 'Only what was recorded until this time.',
      limit: `The maximum number of events, up to ${MAX_EVENTS}. Default 50.`,
      after: 'The position of an earlier result, to read on after it.',
    },
    async run({ types, sources, since, until, limit = 50, after }, { signal }) {
      const end = until === undefined ? Infinity : Date.parse(until)
      const isOf = ({ source, type }: Entry) =>
        (types !== undefined || !CLOCK.has(type)) &&
        (sources === undefined || sources.some((given) => source === given || source.endsWith(`/${given}`)))
      const events: object[] = []
      let position = after ?? (await startOf(log, since))
      let length = 0
      let next: string | undefined
      for await (const entry of logEntries(log, signal, { after: position, types })) {
        if (entry.recorded > end) break
        if (isOf(entry)) {
          const event = shownEvent(entry)
          length += JSON.stringify(event).length
          if (events.length === limit || (events.length > 0 && length > MAX_LENGTH)) {
            next = `There are more: call recent_events with after ${JSON.stringify(position)}.`
            break
          }
          events.push(event)
        }
        ;({ position } = entry)
      }
      return { value: { events, position, is_end: next === undefined }, next }
    },
  })
}

function alertEvents({ log, process }: LogToolsOptions): Tool {
  return defineTool({
    name: 'alerts',
    title: 'Alerts',
    description:
      'Returns the alerts that are firing, pending or unknown now, and the events of alerts since a time, newest first.',
    isReadOnly: true,
    schema: s.options<{ readonly since?: string }>({ since: time }),
    fields: { since: SINCE },
    async run({ since }, { signal }) {
      const { ruleStatus } = await import('rivulet/rules')
      const { alerts, isCut } = await ruleStatus(log, { name: process, limit: MAX_EVENTS })
      const recent: object[] = []
      let count = 0
      const after = await startOf(log, since)
      for await (const entry of logEntries(log, signal, { after, types: ALERTS })) {
        recent.push(shownEvent(entry))
        count += 1
        if (recent.length > MAX_EVENTS) recent.shift()
      }
      const is_cut = isCut || count > MAX_EVENTS
      return { value: { open: alerts, recent: recent.toReversed(), is_cut } }
    },
  })
}

function explainAlert({ log, rules }: LogToolsOptions): Tool {
  return defineTool({
    name: 'explain_alert',
    title: 'Explain an alert',
    description:
      'Returns why an alert has fired: its values, the events that caused it and, if its rule is known, each part of the condition.',
    isReadOnly: true,
    schema: s.options<AlertRequest>(
      { alert: s.text(), episode: s.text() },
      { names: ['alert', 'episode'], expected: 'the name of an alert, or an episode' },
    ),
    fields: {
      alert: 'The name of the alert. Its last episode is explained.',
      episode: 'The episode of an event of an alert, for another than the last.',
    },
    async run({ alert, episode }, { signal }) {
      const isAsked = (data: FiringData) =>
        (alert ?? data.alert) === data.alert && (episode ?? data.episode) === data.episode
      const timeout = AbortSignal.timeout(MAX_SEARCH)
      const search: Search = { signal: AbortSignal.any([signal, timeout]), timeout }
      const { firing, data, entries, isCut } = await lastEpisode(log, isAsked, search)
      const { causes, isWhole } = await causesOf(log, firing.position, data.events, search)
      return {
        value: {
          events: entries.map(shownEvent),
          causes: causes.map(shownEvent),
          explanations: await explained(rules, data.alert, causes),
          is_cut: isCut || !isWhole,
        },
      }
    },
  })
}

function checkRules(): Tool {
  return defineTool({
    name: 'rules_check',
    title: 'Check alert rules',
    description:
      'Checks the text of a rule file, and returns its problems with their lines. It changes nothing.',
    isReadOnly: true,
    schema: s.object<{ readonly rules: string }>({ rules: s.anyText(undefined, MAX_RULES) }, {}),
    fields: { rules: 'The content of a rule file, in YAML.' },
    async run({ rules: text }) {
      const { parseRules, RuleError } = await import('rivulet/rules')
      try {
        const { names, disabled } = parseRules(text)
        return { value: { rules: names, disabled, problems: [] } }
      } catch (error) {
        if (!(error instanceof RuleError)) throw error
        return { value: { rules: [], disabled: [], problems: error.problems } }
      }
    },
  })
}

/** The position from which entries are read: of this time, or of 24 hours ago. */
function startOf(log: EventLog, since: string | undefined): Promise<Position> {
  return log.positionAt({ time: since === undefined ? Date.now() - DAY : Date.parse(since) })
}

/** The parts of an alert's data that are read, as far as they have the right shape. */
interface FiringData {
  readonly alert: string
  readonly episode: string
  readonly events: readonly AlertCause[]
}

/** Undefined if it is not the data of an alert: another program may have written the entry. */
function firingData(data: unknown): FiringData | undefined {
  if (!isObject(data)) return undefined
  const { alert, episode, events } = data
  if (typeof alert !== 'string' || typeof episode !== 'string') return undefined
  return { alert, episode, events: Array.isArray(events) ? events.filter(isCause) : [] }
}

function isCause(value: unknown): value is AlertCause {
  if (!isObject(value)) return false
  const { source, id, type, time: at } = value
  const isTime = at === null || typeof at === 'string'
  return typeof source === 'string' && typeof id === 'string' && typeof type === 'string' && isTime
}

interface Episode {
  readonly firing: Entry
  readonly data: FiringData
  /** The event with which it fires, and those with which it is resolved, at most {@link MAX_EVENTS}. */
  readonly entries: Entry[]
  /** Whether there are more. */
  isCut: boolean
}

/** What ends a search: its time, which ends the signal too. */
interface Search {
  readonly signal: AbortSignal
  readonly timeout: AbortSignal
}

/** The last episode of the alerts that are asked for. The alerts of the last days are read first: a log may have those of years. */
async function lastEpisode(
  log: EventLog,
  isAsked: (data: FiringData) => boolean,
  { signal, timeout }: Search,
): Promise<Episode> {
  const now = Date.now()
  const types = ['alert.firing', 'alert.resolved']
  let since: number | undefined
  try {
    for (const start of [now - DAY, now - 30 * DAY, undefined]) {
      let found: Episode | undefined
      const after = await log.positionAt(start === undefined ? 'start' : { time: start })
      for await (const entry of logEntries(log, signal, { after, types })) {
        const data = firingData(entry.data)
        if (data === undefined || !isAsked(data)) continue
        if (entry.type === 'alert.firing') found = { firing: entry, data, entries: [entry], isCut: false }
        else if (data.episode !== found?.data.episode) continue
        else if (found.entries.length < MAX_EVENTS) found.entries.push(entry)
        else found.isCut = true
      }
      if (found !== undefined) return found
      since = start
    }
  } catch (error) {
    if (error !== timeout.reason) throw error
    const message =
      since === undefined
        ? 'The log has too much of the last day to search it for an alert'
        : `No such alert has fired since ${new Date(since).toISOString()}. The log has too much before that to search it`
    throw new Error(message, { cause: error })
  }
  throw new Error('The log has no such alert that has fired')
}

/** An entry for a model, without what only programs need. */
function shownEvent({ type, source, id, time: at, recorded, backfill, data }: Entry): object {
  return {
    type,
    source,
    id,
    time: at,
    recorded: new Date(recorded).toISOString(),
    ...(backfill && { is_of_the_past: true }),
    data,
  }
}

/** The events that had a part in an alert, the last revision of each. They are before the alert's own event. */
async function causesOf(
  log: EventLog,
  end: Position,
  events: readonly AlertCause[],
  { signal, timeout }: Search,
): Promise<{ readonly causes: readonly Entry[]; readonly isWhole: boolean }> {
  const nameOf = ({ source, id }: Pick<AlertCause, 'source' | 'id'>) => JSON.stringify([source, id])
  const wanted = new Set(events.map(nameOf))
  const types = [...new Set(events.map(({ type }) => type))]
  const found = new Map<string, Entry>()
  const times = events.map((event) => Date.parse(event.time ?? '')).filter((at) => !Number.isNaN(at))
  // An event is recorded after its time, unless clocks differ.
  try {
    for (const start of [{ time: Math.min(Date.now(), ...times) - DAY }, 'start'] as const) {
      if (found.size === wanted.size) break
      for await (const entry of logEntries(log, signal, { after: await log.positionAt(start), types })) {
        if (wanted.has(nameOf(entry))) found.set(nameOf(entry), entry)
        if (entry.position === end) break
      }
    }
  } catch (error) {
    if (error !== timeout.reason) throw error
    return { causes: [...found.values()], isWhole: false }
  }
  return { causes: [...found.values()], isWhole: true }
}

async function explained(rules: RuleSet | undefined, alert: string, causes: readonly Entry[]) {
  if (rules?.names.includes(alert) !== true) return []
  const { explainRule } = await import('rivulet/rules')
  return causes.map((event) => explainRule(rules, alert, event))
}
