/**
 * Groups and monitors of any size, generated while they are read, so that the server stores nothing. The name of a group or monitor
 * starts with its number of events: `1000000-a`.
 */
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { listen } from '../server.ts'
import { WRITE_BYTES, writeStream } from './event-stream.ts'
import { endedGroup, runFrame } from './run-frames.ts'

const EVENT_BYTES = 400
/** The first number, so that all have the same number of digits. */
const FIRST = 100_000_001
const PLACEHOLDER = 100_000_000
/** New events of a monitor per poll. */
const NEWS = 50

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const [, kind, name = '', what] =
    /^\/v1(?:beta)?\/(monitors|tasks\/groups)\/([^/]+)(?:\/(runs|events))?$/.exec(pathname) ?? []
  const events = Number(name.split('-')[0])
  if (kind === 'monitors') {
    const limit = Number(searchParams.get('limit') ?? 20)
    const cursor = searchParams.get('cursor')
    const newest = cursor === null ? newestOf(name, events) : Number(cursor)
    json(response, page(newest, limit))
  } else if (what === undefined) {
    json(response, JSON.stringify(endedGroup(events)))
  } else {
    void writeStream(response, what === 'runs' ? runs(name, events) : [statusFrame(events)])
  }
})
listen(server)

function json(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}

function* runs(group: string, events: number): Generator<string> {
  const template = runFrame(group, PLACEHOLDER, EVENT_BYTES)
  let frames = ''
  for (let number = 0; number < events; number++) {
    frames += template.replaceAll(String(PLACEHOLDER), String(FIRST + number))
    if (frames.length < WRITE_BYTES && number < events - 1) continue
    yield frames
    frames = ''
  }
}

/** The group's events stream (§4.4), with only the last event. */
function statusFrame(events: number): string {
  const status = `{"num_task_runs":${events},"task_run_status_counts":{"completed":${events}},"is_active":false}`
  return `event: task_group_status\ndata: {"type":"task_group_status","event_id":"end","status":${status}}\n\n`
}

/** The number of events of each followed monitor so far. */
const found = new Map<string, number>()

/** The number of a monitor's newest event; for a `…-followed` one, as of this poll. */
function newestOf(monitor: string, events: number): number {
  if (!monitor.endsWith('-followed')) return events
  const newest = Math.min((found.get(monitor) ?? 0) + NEWS, events)
  found.set(monitor, newest)
  return newest
}

/** A page of events, newest first (§4.1); its cursor is the number of the next event. */
function page(newest: number, limit: number): string {
  const oldest = Math.max(newest - limit, 0)
  const events: string[] = []
  for (let number = newest; number > oldest; number--) events.push(change(FIRST + number))
  const next = oldest > 0 ? `,"next_cursor":"${oldest}"` : ''
  return `{"events":[${events.join(',')}]${next}}`
}

function change(number: number): string {
  return (
    `{"event_type":"event_stream","event_id":"mevt_${number}","event_group_id":"mevtgrp_1",` +
    `"event_date":"2026-01-01","output":{"type":"text","content":"${'x'.repeat(100)}","basis":[]}}`
  )
}
