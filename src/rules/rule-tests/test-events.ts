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
import { liveEvent, lostEvent } from '../../protocol/log-event.ts'
import { rfc3339 } from '../../protocol/timestamp.ts'
import type { RuleInput } from '../evaluate/event-time.ts'
import type { GivenEvent } from './schema.ts'

/** What an event without a subject comes from. */
const MONITOR = 'mon_1'
const GROUP = 'tgrp_1'
const RUN = 'trun_1'

/** Makes an event of a test. @param at Its time in Unix ms. @param recorded When it is recorded. */
export function testEvent(given: GivenEvent, id: string, at: number, recorded: number): RuleInput {
  const { backfill = false, revision = 1 } = given
  return { ...eventOf(given, id, at), recorded, backfill, revision }
}

function eventOf(given: GivenEvent, id: string, at: number): ResearchEvent {
  const { monitor = MONITOR, group = GROUP, run = RUN, event_date = null } = given
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
  // A run that failed has an `error`, too.
  if (given.state !== undefined) return runState(given.state, run, given, time, at)
  if (given.error !== undefined) {
    if (given.group === undefined) {
      return monitorEvent(
        monitor,
        { event_type: 'error', error_message: given.error, timestamp: time },
        'poll',
        at,
      )
    }
    const error = { ref_id: id, message: given.error }
    return groupEvent(group, { type: 'error', event_id: id, error }, 'stream', undefined, at)
  }
  if (given.cancelled !== undefined) {
    const settings = { query: 'a query' }
    const common = { monitor_id: monitor, frequency: '1h', processor: 'lite', created_at: time } as const
    return cancelledEvent(
      monitor,
      { ...common, type: 'event_stream', status: 'cancelled', settings },
      'poll',
      at,
    )
  }
  if (given.status !== undefined) {
    const status = { num_task_runs: 0, task_run_status_counts: {}, is_active: true, ...given.status }
    return groupEvent(group, { type: 'task_group_status', event_id: id, status }, 'stream', undefined, at)
  }
  const source = sourceOf(given)
  if (given.gap !== undefined)
    return gapEvent(source, { from: null, to: null, reason: given.gap }, 'poll', id, at)
  if (given.live !== undefined) return liveEvent(source, id, undefined, at)
  if (given.lost !== undefined) return lostEvent(source, id, given.lost, at)
  // The data is the author's, as on the wire. Conditions accept any.
  return {
    id,
    source,
    type: given.type,
    time,
    data: given.data ?? null,
    received: time,
    via: 'poll',
  } as ResearchEvent
}

function runState(status: string, id: string, given: GivenEvent, time: string, at: number): ResearchEvent {
  const run = {
    run_id: id,
    status,
    is_active: false,
    processor: 'base',
    created_at: time,
    modified_at: time,
    error: status === 'failed' ? { ref_id: id, message: given.error ?? 'the run failed' } : null,
    ...(given.group !== undefined && { taskgroup_id: given.group }),
  }
  const output = given.output === undefined ? null : outputOf(given.output, given)
  // As a service sends it: its status may be one that this version does not know.
  const input = given.input === undefined ? null : { processor: 'base', input: given.input }
  const wire = { type: 'task_run.state', run, input, output } as unknown as Parameters<typeof runEvent>[0]
  return runEvent(wire, 'stream', undefined, at)
}

/** The source of an event, by the subject that is written, or by what the event is. */
function sourceOf({ source, monitor, group, run, type }: GivenEvent): string {
  if (source !== undefined) return source
  if (run !== undefined) return runSource(run)
  if (group !== undefined) return groupSource(group)
  if (monitor !== undefined) return monitorSource(monitor)
  if (type === 'task_run.state') return runSource(RUN)
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
