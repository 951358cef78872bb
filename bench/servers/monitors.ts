/**
 * Monitors with events to page through (§4.1). A monitor's id is `{events}x{bytes}x{ms}`, with the time per page. Pages are created
 * at the first request, during the warm-up.
 */
import { createServer } from 'node:http'
import type { MonitorEvent } from 'rivulet'
import { listen } from '../server.ts'

const pages = new Map<string, readonly Buffer[]>()

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const [, monitor = ''] = /^\/v1\/monitors\/([^/]+)\/events$/.exec(pathname) ?? []
  const limit = Number(searchParams.get('limit') ?? 20)
  const page = pagesOf(monitor, limit)[Number(searchParams.get('cursor') ?? 0)]
  const answer = () => {
    response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(page)
  }
  const [, , ms = 0] = monitor.split('x').map(Number)
  if (ms === 0) answer()
  else setTimeout(answer, ms)
})
listen(server)

function pagesOf(monitor: string, limit: number): readonly Buffer[] {
  const key = `${monitor} ${limit}`
  let made = pages.get(key)
  if (made === undefined) {
    made = [...rendered(monitor, limit)]
    pages.set(key, made)
  }
  return made
}

/** The pages, newest first; the cursor is the number of the page. */
function* rendered(monitor: string, limit: number): Generator<Buffer> {
  const [events = 0, bytes = 0] = monitor.split('x').map(Number)
  for (let newest = events; newest > 0; newest -= limit) {
    const length = Math.min(limit, newest)
    const next = newest > limit && { next_cursor: String((events - newest) / limit + 1) }
    const page = { events: Array.from({ length }, (_, at) => change(newest - at, bytes)), ...next }
    yield Buffer.from(JSON.stringify(page))
  }
}

/** A change of a search monitor (§2.2), with an excerpt that fills up the bytes. */
function change(number: number, bytes: number): MonitorEvent {
  const excerpts = ['']
  const event = {
    event_type: 'event_stream',
    event_id: `mevt_${number.toString(16).padStart(32, '0')}`,
    event_group_id: `mevtgrp_${Math.ceil(number / 5)
      .toString(16)
      .padStart(32, '0')}`,
    event_date: '2026-01-01',
    output: {
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
    },
  } as const satisfies MonitorEvent
  excerpts[0] = 'The cell kept its charge. '
    .repeat(Math.ceil(bytes / 26))
    .slice(0, Math.max(0, bytes - JSON.stringify(event).length))
  return event
}
