import type { Monitor } from '../../protocol/monitor.ts'
import type { FieldBasis, TaskOutput } from '../../protocol/output.ts'
import {
  cancelledEvent,
  gapEvent,
  groupEvent,
  groupSource,
  monitorEvent,
  monitorSource,
  runEvent,
  runSource,
} from '../../protocol/event.ts'
import type { ResearchEvent } from '../../protocol/event.ts'
import { findAllEvent, findAllSource } from '../../protocol/find-all-event.ts'
import { liveEvent, lostEvent } from '../../protocol/log-event.ts'
import { runTraceEvent } from '../../protocol/run-trace-event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { RuleInput } from '../evaluate/event-time.ts'
import type { GivenEvent } from './schema.ts'

/** The source of an event without a subject. */
const MONITOR = 'mon_1'
const GROUP = 'tgrp_1'
const RUN = 'trun_1'
const FIND_ALL = 'findall_1'

/** Makes an event of a test. @param at Its time in Unix ms. @param recorded When it is recorded. */
export function testEvent(given: GivenEvent, id: string, at: number, recorded: number): RuleInput {
  const { backfill = false, revision = 1 } = given
  return { ...eventOf(given, id, at), recorded, backfill, revision }
}

function eventOf(given: GivenEvent, id: string, at: number): ResearchEvent {
  // A run that failed has an `error`, too.
  if (given.state !== undefined) return runState(given.state, given, at)
  if (given.error !== undefined) return errorOf(given.error, given, id, at)
  return (
    monitorEventOf(given, id, at) ??
    runTraceOf(given, id, at) ??
    findAllEventOf(given, id, at) ??
    groupStatusOf(given, id, at) ??
    sourceEventOf(given, id, at) ??
    authorsEvent(given, id, at)
  )
}

function monitorEventOf(given: GivenEvent, id: string, at: number): ResearchEvent | undefined {
  const { monitor = MONITOR, event_date = null } = given
  const time = rfc3339(at)
  const detected = { event_id: id, event_group_id: `${id}_group`, event_date }
  if (given.event_stream !== undefined) {
    const output = outputOf(given.event_stream, given)
    return monitorEvent(monitor, { event_type: 'event_stream', ...detected, output }, 'poll', at)
  }
  if (given.snapshot !== undefined) {
    const changed_output = outputOf(given.snapshot, given)
    const previous_output = outputOf(given.previous ?? (typeof given.snapshot === 'string' ? '' : {}), {})
    const wire = { event_type: 'snapshot', ...detected, changed_output, previous_output }
    return monitorEvent(monitor, wire, 'poll', at)
  }
  if (given.completion !== undefined)
    return monitorEvent(monitor, { event_type: 'completion', timestamp: time }, 'poll', at)
  if (given.cancelled === undefined) return undefined
  const settings = { query: 'a query' }
  const common = { monitor_id: monitor, frequency: '1h', processor: 'lite', created_at: time } as const
  return cancelledEvent(
    monitor,
    {
      ...common,
      type: 'event_stream',
      status: 'cancelled',
      settings,
      ...textMetadata(given),
    },
    'poll',
    at,
  )
}

/** Monitors have texts alone. */
function textMetadata({ metadata }: GivenEvent): Pick<Monitor, 'metadata'> {
  if (metadata === undefined) return {}
  const texts = Object.entries(metadata).map(([name, value]) => [name, String(value)])
  return { metadata: Object.fromEntries(texts) }
}

/** An error of a group if the event names one, else of a monitor. */
function errorOf(
  message: string,
  { monitor = MONITOR, group }: GivenEvent,
  id: string,
  at: number,
): ResearchEvent {
  if (group === undefined) {
    const wire = { event_type: 'error', error_message: message, timestamp: rfc3339(at) }
    return monitorEvent(monitor, wire, 'poll', at)
  }
  const error = { ref_id: id, message }
  return groupEvent(group, { type: 'error', event_id: id, error }, 'stream', undefined, at)
}

function runState(status: string, given: GivenEvent, at: number): ResearchEvent {
  const { run: id = RUN, metadata } = given
  const time = rfc3339(at)
  const run = {
    run_id: id,
    status,
    is_active: false,
    processor: 'base',
    created_at: time,
    modified_at: time,
    error: status === 'failed' ? { ref_id: id, message: given.error ?? 'the run failed' } : null,
    ...(given.group !== undefined && { taskgroup_id: given.group }),
    ...(metadata && { metadata }),
  }
  const output = given.output === undefined ? null : outputOf(given.output, given)
  // As a service sends it: its status may be one that this version does not know.
  const input =
    given.input === undefined
      ? null
      : { processor: 'base', input: given.input, ...(metadata && { metadata }) }
  const wire = { type: 'task_run.state', run, input, output } as unknown as Parameters<typeof runEvent>[0]
  return runEvent(wire, 'stream', undefined, at)
}

function runTraceOf(given: GivenEvent, id: string, at: number): ResearchEvent | undefined {
  const { run = RUN } = given
  if (given.progress !== undefined) {
    const source_stats = { num_sources_considered: null, num_sources_read: null, sources_read_sample: null }
    const wire = { type: 'task_run.progress_stats', source_stats, progress_meter: given.progress }
    // The stream gives each of two messages with equal content its own id.
    return { ...runTraceEvent(run, wire, 'stream', at), id }
  }
  if (given.message === undefined) return undefined
  const wire = {
    type: 'task_run.progress_msg.exec_status',
    message: given.message,
    timestamp: rfc3339(at),
  }
  return runTraceEvent(run, wire, 'stream', at)
}

/** The change of a candidate, or the status of a FindAll run. */
function findAllEventOf(given: GivenEvent, id: string, at: number): ResearchEvent | undefined {
  const timestamp = rfc3339(at)
  if (given.candidate !== undefined) {
    const type = `findall.candidate.${given.candidate}`
    const data = candidateOf(given.candidate, given)
    return findAllEvent(given.find_all ?? FIND_ALL, { type, timestamp, data }, 'stream', id, at)
  }
  if (given.status === undefined || given.find_all === undefined) return undefined
  const metrics = { generated_candidates_count: 0, matched_candidates_count: 0 }
  const status = { status: 'running', is_active: true, metrics, termination_reason: null, ...given.status }
  const { find_all: findall_id, metadata } = given
  const data = { findall_id, generator: 'core', status, ...(metadata && { metadata }) }
  return findAllEvent(given.find_all, { type: 'findall.status', timestamp, data }, 'stream', id, at)
}

function candidateOf(change: NonNullable<GivenEvent['candidate']>, given: GivenEvent) {
  const { name = 'Acme', output = {} } = given
  const { content, basis } = outputOf(typeof output === 'string' ? { output } : output, given)
  const isMatched = change === 'matched'
  const outputs = Object.entries(content).map(([field, value]) => [
    field,
    change === 'enriched'
      ? { value, type: 'enrichment' }
      : { value, type: 'match_condition', is_matched: isMatched },
  ])
  return {
    // A candidate has the same id in all its events.
    candidate_id: `candidate_${name}`,
    name,
    url: 'https://source.example/',
    match_status: change === 'enriched' ? 'matched' : change,
    output: Object.fromEntries(outputs),
    basis,
  }
}

function groupStatusOf(given: GivenEvent, id: string, at: number): ResearchEvent | undefined {
  if (given.status === undefined) return undefined
  const { group = GROUP } = given
  const status = { num_task_runs: 0, task_run_status_counts: {}, is_active: true, ...given.status }
  return groupEvent(group, { type: 'task_group_status', event_id: id, status }, 'stream', undefined, at)
}

function sourceEventOf(given: GivenEvent, id: string, at: number): ResearchEvent | undefined {
  const source = sourceOf(given)
  if (given.gap !== undefined)
    return gapEvent(source, { from: null, to: null, reason: given.gap }, 'poll', id, at)
  if (given.live !== undefined) return liveEvent(source, id, undefined, at)
  if (given.lost !== undefined) return lostEvent(source, id, given.lost, at)
  return undefined
}

/** An event of any type. The data is the author's, as on the wire. Conditions accept any. */
function authorsEvent(given: GivenEvent, id: string, at: number): ResearchEvent {
  const time = rfc3339(at)
  return {
    id,
    source: sourceOf(given),
    type: given.type,
    time,
    data: given.data ?? null,
    received: time,
    via: 'poll',
  } as ResearchEvent
}

/** The source of an event, from its subject in the test, or from its kind. */
function sourceOf({ source, monitor, group, run, find_all, type }: GivenEvent): string {
  if (source !== undefined) return source
  if (run !== undefined) return runSource(run)
  if (find_all !== undefined) return findAllSource(find_all)
  if (group !== undefined) return groupSource(group)
  if (monitor !== undefined) return monitorSource(monitor)
  if (type?.startsWith('task_run.') === true) return runSource(RUN)
  if (type?.startsWith('findall.') === true) return findAllSource(FIND_ALL)
  return type === 'task_group.status' ? groupSource(GROUP) : monitorSource(MONITOR)
}

function outputOf(
  content: NonNullable<GivenEvent['event_stream']>,
  given: Pick<GivenEvent, 'citations' | 'confidence' | 'excerpts'>,
): TaskOutput {
  if (typeof content === 'string') {
    return { type: 'text', content, basis: [basisOf('output', given)] }
  }
  const fields = new Set(Object.keys(content))
  for (const each of [given.citations, given.confidence, given.excerpts])
    if (typeof each === 'object' && !Array.isArray(each))
      for (const field of Object.keys(each)) fields.add(field)
  return { type: 'json', content, basis: Array.from(fields, (field) => basisOf(field, given)) }
}

function basisOf(
  field: string,
  { citations, confidence, excerpts }: Pick<GivenEvent, 'citations' | 'confidence' | 'excerpts'>,
): FieldBasis {
  const urls = forField(citations, field) ?? []
  const passages = forField(excerpts, field)
  return {
    field,
    reasoning: '',
    citations: passages === undefined ? urls.map((url) => ({ url })) : cited(urls, passages),
    confidence: (typeof confidence === 'string' ? confidence : confidence?.[field]) ?? null,
  }
}

/** Passages belong to the first page. */
function cited(urls: readonly string[], excerpts: readonly string[]): NonNullable<FieldBasis['citations']> {
  const [first = 'https://source.example/', ...others] = urls
  return [{ url: first, excerpts }, ...others.map((url) => ({ url }))]
}

function forField(
  lists: readonly string[] | Readonly<Record<string, readonly string[]>> | undefined,
  field: string,
): readonly string[] | undefined {
  return isList(lists) ? lists : lists?.[field]
}

function isList(lists: unknown): lists is readonly string[] {
  return Array.isArray(lists)
}
