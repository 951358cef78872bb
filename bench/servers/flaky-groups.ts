/**
 * Groups of ended runs as `groups.ts` has them, whose streams fail: each connection ends after about an eighth of the events, within an
 * event or, every fourth, cleanly; the connection after the first is refused with a 503. Resumed after an event, a stream repeats
 * the events that were sent in one write with it.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { ServerResponse } from 'node:http'
import { listen } from '../server.ts'
import { WRITE_BYTES } from './event-stream.ts'
import { endedGroup, runFrame } from './run-frames.ts'

const CONNECTIONS = 8

/** A group's frames. */
interface Group {
  readonly chunks: readonly Buffer[]
  /** The id of the last event in each chunk. */
  readonly lastIds: readonly number[]
  /** Connections since the stream was read from its beginning. */
  connections: number
}

const groups = new Map<string, Group>()

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost')
  const [, name = '', runs] = /^\/v1(?:beta)?\/tasks\/groups\/([^/]+)(\/runs)?$/.exec(pathname) ?? []
  if (runs === undefined) {
    const body = JSON.stringify(endedGroup(Number(name.split('x')[0])))
    response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    return
  }
  void writeRuns(response, groupOf(name), searchParams.get('last_event_id'))
})
listen(server)

async function writeRuns(response: ServerResponse, group: Group, after: string | null): Promise<void> {
  const { chunks, lastIds } = group
  if (after === null) group.connections = 0
  const connection = group.connections++
  if (connection === 1) return void response.writeHead(503).end()
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write('retry: 1\n\n')
  const from = after === null ? 0 : lastIds.findIndex((id) => id >= Number(after))
  const until = from + Math.ceil(chunks.length / CONNECTIONS)
  const left = new AbortController()
  response.once('close', () => left.abort())
  for (const chunk of chunks.slice(from, until)) {
    if (left.signal.aborted) return
    if (!response.write(chunk)) await once(response, 'drain', left).catch(() => {})
  }
  const next = chunks[until]
  if (next === undefined || connection % 4 === 3) return void response.end()
  response.write(next.subarray(0, next.length / 2), () => response.destroy())
}

function groupOf(name: string): Group {
  let group = groups.get(name)
  if (group === undefined) {
    group = rendered(name)
    groups.set(name, group)
  }
  return group
}

function rendered(name: string): Group {
  const [events = 0, bytes = 0] = name.split('x').map(Number)
  const chunks: Buffer[] = []
  const lastIds: number[] = []
  let frames = ''
  for (let id = 1; id <= events; id++) {
    frames += runFrame(name, id, bytes)
    if (frames.length < WRITE_BYTES && id < events) continue
    chunks.push(Buffer.from(frames))
    lastIds.push(id)
    frames = ''
  }
  return { chunks, lastIds, connections: 0 }
}
