import type { ResearchEvent } from 'rivulet'
import { monitorEvent } from '../../src/protocol/event.ts'

/** Bytes of an event as JSON, about. */
const BYTES = 900

/** A change that a monitor has found, of about 900 bytes as JSON. */
function finding(number: number, source: number): ResearchEvent {
  const monitor = `monitor_${source}`
  const excerpts = ['']
  const output = {
    type: 'json',
    content: { headline: `Cell number ${number} passes its test`, company: 'Example Cells', score: number },
    basis: [
      {
        field: 'headline',
        reasoning: 'The article reports the result of the test.',
        citations: [{ url: `https://example.com/news/${number}`, title: 'News of the day', excerpts }],
        confidence: 'high',
      },
    ],
  } as const
  const id = `mevt_${source}_${number.toString(16).padStart(24, '0')}`
  const event = monitorEvent(
    monitor,
    {
      event_type: 'event_stream',
      event_id: id,
      event_group_id: `mevtgrp_${Math.ceil(number / 5)}`,
      event_date: '2026-01-01',
      output,
    },
    'poll',
    0,
  )
  excerpts[0] = 'The cell kept its charge. '.repeat(40).slice(0, BYTES - JSON.stringify(event).length)
  return event
}

/** Events of several sources, one of each in turn. @param first The number of the first source. */
export function findings(count: number, sources: number, first = 0): readonly ResearchEvent[] {
  return Array.from({ length: count }, (_, at) => finding(Math.floor(at / sources), first + (at % sources)))
}
