import type { LogStore, NewEntry, StreamAppend } from '../../../src/log/store/contract.ts'
import { monitorEvent, runEvent } from '../../../src/protocol/event.ts'
import type { ResearchEvent } from '../../../src/protocol/event.ts'
import { newEntry } from '../../../src/log/store/new-entry.ts'

/** The detection with this number. */
function detection(number: number, content = 'found'): ResearchEvent {
  const wire = {
    event_type: 'event_stream',
    event_id: `mevt_${number}`,
    event_group_id: 'mevtgrp_1',
    event_date: '2026-01-01',
    output: { type: 'text', content, basis: [] },
  }
  return monitorEvent('monitor_1', wire, 'poll', 0)
}

/** The detections from one number to another. */
export function detections(first: number, last: number, content?: string): NewEntry[] {
  return Array.from({ length: last - first + 1 }, (_, index) => newEntry(detection(first + index, content)))
}

/** A completed run, with its output or without. */
export function completedRun(id: string, output?: string): ResearchEvent {
  const run = {
    run_id: id,
    interaction_id: id,
    status: 'completed',
    is_active: false,
    processor: 'base',
    metadata: {},
    created_at: '2026-01-01T00:00:00Z',
    modified_at: '2026-01-01T00:00:01Z',
  } as const
  return runEvent(
    { run, output: output === undefined ? null : { type: 'text', content: output, basis: [] } },
    'poll',
  )
}

/** Claims the stream `s` and appends to it. */
export async function appendTo(log: LogStore, entries: readonly NewEntry[], position = '1') {
  const fence = await log.claim('s')
  const [expect = null] = await log.streamPositions(['s'])
  return log.append([{ fence, expect, position, entries } satisfies StreamAppend])
}

/** All that the log has. */
export async function readAll(log: LogStore) {
  const entries = []
  let position = await log.positionAt('start')
  for (;;) {
    const page = await log.read(position, { limit: 1_000 })
    entries.push(...page.entries)
    position = page.position
    if (page.isEnd) return entries
  }
}
