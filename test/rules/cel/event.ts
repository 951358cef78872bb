import type { ResearchEvent } from '../../../src/protocol/event.ts'
import { monitorEvent } from '../../../src/protocol/event.ts'
import { viewOf, type EventView } from '../../../src/rules/cel/index.ts'

/** A finding about Acme, with what `content` changes. */
export function finding(content: Readonly<Record<string, unknown>> = {}): ResearchEvent {
  const output = {
    type: 'json',
    content: { company: 'Acme', count: 3, ratio: 0.5, list: [1, 2, 3], nothing: null, ...content },
    basis: [
      {
        field: 'company',
        reasoning: 'r',
        confidence: 'high',
        citations: [
          { url: 'https://news.example.com/a', excerpts: ['The  ACME\ncorporation'] },
          { url: 'https://www.example.com/b' },
          { url: 'https://paper.co.uk/c' },
          { url: 'javascript:alert(1)' },
        ],
      },
      { field: 'count', reasoning: 'r', confidence: 'low', citations: [{ url: 'https://paper.co.uk/c' }] },
    ],
  }
  const wire = {
    event_type: 'event_stream',
    event_id: 'e1',
    event_group_id: 'g1',
    event_date: '2026-01-02',
    output,
  }
  return monitorEvent('mon_1', wire, 'poll', Date.UTC(2026, 0, 3))
}

/** The view of {@link finding}. */
export function found(content: Readonly<Record<string, unknown>> = {}): EventView {
  return viewOf(finding(content))
}
