import type { ResearchEvent } from 'rivulet'
import { sqliteStore } from 'rivulet/log/sqlite'
import { monitorEvent } from '../src/protocol/event.ts'
import { newEntry } from '../src/log/store/new-entry.ts'

const BATCH = 200

/** Fills a new SQLite log with events, and closes it. */
export async function fillLog(
  file: string,
  count: number,
  event: (number: number) => ResearchEvent,
): Promise<void> {
  const store = sqliteStore(file)
  const fence = await store.claim('bench')
  for (let n = 0; n < count; n += BATCH) {
    const entries = Array.from({ length: BATCH }, (_, i) => newEntry(event(n + i)))
    await store.append([{ fence, expect: null, entries }])
  }
  await store.close()
}

/** An event of about 400 bytes as JSON. */
export function detection(number: number, monitorId: string): ResearchEvent {
  const output = { type: 'text', content: 'x'.repeat(80), basis: [] }
  const wire = {
    event_type: 'event_stream',
    event_id: `mevt_${number}`,
    event_group_id: 'mevtgrp_1',
    output,
  } as const
  return monitorEvent(monitorId, { ...wire, event_date: '2026-01-01' }, 'poll', 0)
}
